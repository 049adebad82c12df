#include "ctl/bench/ledger.hpp"

#include <algorithm>
#include <shardbus/codec.hpp>
#include <tuple>
#include <utility>

namespace shardbusctl::bench {
namespace {

using Accounts = std::vector<Account>;
using State = std::tuple<std::int64_t, Accounts>;

}  // namespace

void Account::note(std::uint64_t number) {
  if (number == expected) {
    ++expected;
    return;
  }
  if (number > expected) {
    for (; expected < number; ++expected) missing.insert(expected);
    ++expected;
    return;
  }
  if (missing.erase(number) != 0) {
    ++out_of_order;
  } else {
    ++duplicates;
  }
}

void Totals::add(const Account& account, std::uint64_t sent) {
  const std::uint64_t seen = account.expected - account.missing.size();
  handled += seen;
  lost += account.missing.size() + (sent > account.expected ? sent - account.expected : 0);
  duplicates += account.duplicates;
  out_of_order += account.out_of_order;
}

void Ledger::note(std::uint32_t sender, std::uint64_t number) {
  if (sender >= accounts_.size()) accounts_.resize(sender + 1);
  accounts_[sender].note(number);
}

std::string Ledger::save(Nanoseconds now) const {
  return std::string(shardbus::pack(std::tuple<std::int64_t, const Accounts&>(now, accounts_)));
}

shardbus::Status Ledger::load(std::string_view state, Nanoseconds now) {
  auto loaded = shardbus::unpack<State>(state);
  if (!loaded) return loaded.error();
  auto& [saved_at, accounts] = *loaded;
  accounts_ = std::move(accounts);
  saved_at_ = saved_at;
  travelled_ = now - saved_at;
  return {};
}

Ledger::Nanoseconds Ledger::take_pause(Nanoseconds sent, Nanoseconds now) {
  if (saved_at_ < 0) return -1;
  const Nanoseconds waited = now - std::max(sent, saved_at_);
  const Nanoseconds came = saved_at_ + travelled_;
  saved_at_ = -1;
  // A message that was sent once the state was here has not waited for the move.
  return sent >= came ? travelled_ : std::max(travelled_, waited);
}

}  // namespace shardbusctl::bench
