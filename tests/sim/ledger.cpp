#include "sim/ledger.hpp"

#include <algorithm>
#include <cstring>

#include "base/model/text.hpp"

namespace shardbus::sim {
namespace {

// Deadlines are kept in steps of 8 ms and looked at every 5 ms.
constexpr Duration kLateAtMost = std::chrono::milliseconds(25);

}  // namespace

bool is_full(Errc code) {
  return code == Errc::overloaded || code == Errc::mailbox_full;
}

std::string Ticket::bytes() const {
  const std::uint64_t words[] = {caller.value, inside ? 1U : 0U, entity, number, nonce};
  std::string out(sizeof words, '\0');
  std::memcpy(out.data(), words, sizeof words);
  return out;
}

std::optional<Ticket> Ticket::parse(std::string_view bytes) {
  std::uint64_t words[5] = {};
  if (bytes.size() != sizeof words) return std::nullopt;
  std::memcpy(words, bytes.data(), sizeof words);
  return Ticket{NodeKey{words[0]}, words[1] != 0, static_cast<std::uint32_t>(words[2]),
                static_cast<std::uint32_t>(words[3]), words[4]};
}

std::string Ledger::text(const Ticket& ticket) const {
  return "message " + std::to_string(ticket.number) + " of " + to_text(ticket.caller) +
         (ticket.inside ? "'s handlers" : "") + " to " + config_.entities.at(ticket.entity);
}

std::string Ledger::text(const OpenAsk& ask) const {
  return text(Ticket{ask.caller, ask.inside, ask.entity, ask.number, 0});
}

// --- callers ---

Ticket Ledger::issue(Ticket ticket, Fate fate) {
  ++sent_;
  Flow& flow = flows_[{ticket.caller, ticket.inside, ticket.entity}];
  fate.nonce = ticket.nonce;
  flow.fates.push_back(fate);
  ticket.number = static_cast<std::uint32_t>(flow.fates.size());
  if (config_.trace) {
    config_.trace(ticket.caller, (fate.ask ? "asks " : "tells ") + text(ticket));
  }
  return ticket;
}

Ticket Ledger::told(const Ticket& ticket) {
  return issue(ticket, {});
}

Ticket Ledger::asked(const Ticket& ticket, Time deadline, bool must) {
  Fate fate;
  fate.ask = true;
  fate.must = must;
  fate.deadline = deadline;
  const Ticket made = issue(ticket, fate);
  open_.insert({made.caller, deadline, made.inside, made.entity, made.number});
  return made;
}

Ledger::Fate* Ledger::find(const Ticket& ticket) {
  const auto flow = flows_.find({ticket.caller, ticket.inside, ticket.entity});
  if (flow == flows_.end() || ticket.number == 0) return nullptr;
  if (ticket.number > flow->second.fates.size()) return nullptr;
  return &flow->second.fates[ticket.number - 1];
}

void Ledger::refused(const Ticket& ticket, Errc code) {
  Fate& fate = *find(ticket);
  fate.over = true;
  fate.code = code;
  if (config_.trace) config_.trace(ticket.caller, "refused " + text(ticket));
  if (fate.handled) fail(text(ticket) + " was refused, but handled");
  if (config_.lossless && !is_full(code)) {
    fail(text(ticket) + " was refused without a fault: " + std::string(error_info(code).name));
  }
}

void Ledger::ended(Time now, const Ticket& ticket, const ReplyView& reply) {
  if (gone_.contains(ticket.caller)) return;
  Fate& fate = *find(ticket);
  const ErrorInfo& info = error_info(reply.error);
  const std::string name(reply.ok() ? "ok" : info.name);
  if (config_.trace) config_.trace(ticket.caller, "ended " + text(ticket) + " " + name);
  if (fate.over) {
    return fail(text(ticket) + " ended twice: " + std::string(error_info(fate.code).name) +
                ", then " + name);
  }
  fate.over = true;
  fate.code = reply.error;
  const OpenAsk ask{ticket.caller, fate.deadline, ticket.inside, ticket.entity, ticket.number};
  open_.erase(ask);
  if (reply.ok()) {
    ++answered_;
    const std::optional<Ticket> echo = Ticket::parse(reply.payload);
    if (!echo || echo->nonce != ticket.nonce) fail(text(ticket) + " got the answer to another ask");
    if (!fate.handled) fail(text(ticket) + " was answered, but not handled");
  } else if (!info.may_have_happened && fate.handled) {
    fail(text(ticket) + " ended in " + name + ", which says not delivered, but was handled");
  } else if ((fate.must || config_.lossless) && !is_full(reply.error)) {
    fail(text(ticket) + " ended in " + name + " without a fault: " + std::string(reply.text));
  }
  check_time(now, ask);
}

const Ledger::OpenAsk* Ledger::first_open(NodeKey caller) const {
  const auto next = open_.lower_bound(OpenAsk{caller});
  return next == open_.end() || next->caller != caller ? nullptr : &*next;
}

void Ledger::gone(NodeKey caller) {
  gone_.insert(caller);
  while (const OpenAsk* ask = first_open(caller)) open_.erase(OpenAsk(*ask));
}

void Ledger::closed(NodeKey caller) {
  if (const OpenAsk* ask = first_open(caller)) {
    fail(text(*ask) + " never ended: its node stopped in good order");
  }
  gone(caller);
}

void Ledger::check_due(Time now, NodeKey caller) {
  if (const OpenAsk* ask = first_open(caller)) check_time(now, *ask);
}

void Ledger::check_time(Time now, const OpenAsk& ask) {
  if (now <= ask.deadline + kLateAtMost) return;  // most of them
  if (now <= std::max(ask.deadline, awake_[ask.caller]) + kLateAtMost) return;
  fail(text(ask) + " did not end until " + to_text(now - ask.deadline) + " after its deadline");
}

// --- entities ---

void Ledger::begun_without_right(NodeKey at, const Ticket& ticket) {
  fail(text(ticket) + " of a strict type is begun by " + to_text(at) + ", whose lease is over");
}

void Ledger::handled(NodeKey at, Generation generation, const Ticket& ticket, std::uint64_t count) {
  ++handled_;
  Fate* const fate = find(ticket);
  if (config_.trace) config_.trace(at, "handles " + text(ticket));
  if (fate == nullptr || fate->nonce != ticket.nonce) {
    return fail(to_text(at) + " handled something that nobody sent");
  }
  if (std::exchange(fate->handled, true)) {
    return fail(text(ticket) + " was handled twice, at last by " + to_text(at));
  }
  const bool void_now = gone_.contains(ticket.caller);
  if (fate->over && !fate->ask && !void_now) {
    return fail(text(ticket) + " was refused, but handled by " + to_text(at));
  }
  if (fate->over && !void_now && !error_info(fate->code).may_have_happened) {
    return fail(text(ticket) + " ended in " + std::string(error_info(fate->code).name) +
                ", which says not delivered, but is handled by " + to_text(at));
  }
  check_order(at, generation, ticket, flows_[{ticket.caller, ticket.inside, ticket.entity}]);
  check_right(at, generation, ticket);
  EntityRecord& record = entities_[ticket.entity];
  if (++record.handled != count && config_.lossless) {
    fail(config_.entities.at(ticket.entity) + " at " + to_text(at) + " remembers " +
         std::to_string(count) + " messages of " + std::to_string(record.handled) +
         ": its state was lost on a planned move");
  }
}

void Ledger::forget_rights() {
  for (auto& [entity, record] : entities_) record.right = {};
  for (auto& [name, flow] : flows_) flow.last_right = {};
}

void Ledger::check_order(NodeKey at, Generation generation, const Ticket& ticket, Flow& flow) {
  const bool late = ticket.number < flow.last;
  const bool cut_off = config_.overlap_allowed && generation < flow.last_right;
  if (late && !cut_off) {
    fail(text(ticket) + " was handled after message " + std::to_string(flow.last) + ", by " +
         to_text(at) + " " + to_text(generation) + " after " + to_text(flow.last_right));
  }
  if (late) return;
  flow.last = ticket.number;
  flow.last_right = generation;
}

void Ledger::check_right(NodeKey at, Generation generation, const Ticket& ticket) {
  EntityRecord& record = entities_[ticket.entity];
  if (generation < record.right && !config_.overlap_allowed) {
    fail(text(ticket) + " was handled by " + to_text(at) + " " + to_text(generation) + ", but " +
         to_text(record.at) + " runs the entity under " + to_text(record.right));
  }
  if (generation == record.right && at != record.at) {
    fail(config_.entities.at(ticket.entity) + " runs at " + to_text(at) + " and at " +
         to_text(record.at) + " under one right, " + to_text(generation));
  }
  if (generation < record.right) return;
  record.right = generation;
  record.at = at;
}

std::string Ledger::unfinished() const {
  if (!open_.empty()) return text(*open_.begin()) + " is still open";
  if (!config_.lossless) return {};
  for (const auto& [name, flow] : flows_) {
    for (std::uint32_t i = 0; i < flow.fates.size(); ++i) {
      if (flow.fates[i].handled) continue;
      const Ticket lost{name.caller, name.inside, name.entity, i + 1, 0};
      return text(lost) + " was accepted, but never handled";
    }
  }
  return {};
}

}  // namespace shardbus::sim
