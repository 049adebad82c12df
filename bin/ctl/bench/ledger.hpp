// What the entities of `bench handoff` write down: which messages came, and how long a move kept
// one of them waiting.
#pragma once

#include <chrono>
#include <cstdint>
#include <msgpack.hpp>
#include <set>
#include <shardbus/status.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/histogram.hpp"

namespace shardbusctl::bench {

// The messages of one sender to one entity are numbered from 0.
struct Account {
  std::uint64_t expected = 0;       // the next number
  std::set<std::uint64_t> missing;  // below it, and not handled yet
  std::uint64_t duplicates = 0;
  std::uint64_t out_of_order = 0;
  MSGPACK_DEFINE_ARRAY(expected, missing, duplicates, out_of_order)

  void note(std::uint64_t number);
};

// Of all entities together.
struct Totals {
  std::uint64_t handled = 0, lost = 0, duplicates = 0, out_of_order = 0;

  // `sent` messages of one sender should have been handled by one entity.
  void add(const Account& account, std::uint64_t sent);
};

// One entity: accounts by sender, and the state that moves. Times are of std::chrono::steady_clock,
// so all that share an entity have to be on one machine.
class Ledger {
 public:
  using Nanoseconds = std::int64_t;

  void note(std::uint32_t sender, std::uint64_t number);
  [[nodiscard]] std::string save(Nanoseconds now) const;
  shardbus::Status load(std::string_view state, Nanoseconds now);

  // The pause of the last move, once: from the end of the old life to the first message that is
  // handled, as far as that message was there to be handled; at least until the state was here.
  // Nothing to tell: -1.
  [[nodiscard]] Nanoseconds take_pause(Nanoseconds sent, Nanoseconds now);
  [[nodiscard]] const std::vector<Account>& accounts() const { return accounts_; }

 private:
  std::vector<Account> accounts_;
  Nanoseconds saved_at_ = -1;
  Nanoseconds travelled_ = 0;
};

}  // namespace shardbusctl::bench
