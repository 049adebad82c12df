// Operators' orders, and what became of the table.
#include "base/model/table.hpp"
#include "base/model/text.hpp"
#include "runtime/control/control_plane.hpp"

namespace shardbus::control {

coordinator::Ordered ControlPlane::order(Time now, const coordinator::Order& order) {
  if (!enter(now)) return {Errc::stopped, {}};
  apply(election_.step(now_, election::Tick{}));  // the right may just have ended
  if (!deciding()) return {Errc::not_ready, "this node does not decide; ask the coordinator again"};
  if (order.kind == coordinator::OrderKind::confirm) return confirm(order);
  coordinator::Ordered answer;
  for (coordinator::Output& output : coordinator_.step(now_, order)) {
    if (auto* ordered = std::get_if<coordinator::Ordered>(&output)) answer = std::move(*ordered);
  }
  event(Severity::info, "order.taken",
        to_text(order) + (order.actor.empty() ? "" : " by " + order.actor) + ": " +
            (answer.code == Errc::ok ? "taken" : answer.text));
  return answer;
}

coordinator::Ordered ControlPlane::confirm(const coordinator::Order& order) {
  if (!membership_.set().evidence) {
    return {Errc::invalid_argument, "no member was removed by evidence alone"};
  }
  confirmed_ = true;
  confirmed_in_ = vote().term;
  confirmed_members_ = keys_of(membership_.set().members);
  event(Severity::warn, "membership.confirmed",
        "who was removed by evidence is gone for good, says " +
            (order.actor.empty() ? "an operator" : order.actor));
  return {};
}

void ControlPlane::note_change(Change change) {
  if (history_.size() == kHistoryMax) history_.pop_front();
  history_.push_back(std::move(change));
}

// Called before the delta is applied, while the table still has the former owners.
void ControlPlane::note_delta(const TableDelta& delta) {
  std::uint64_t lost = 0;
  for (const TableChange& change : delta.changes) {
    const TableEntry* before = find_entry(table_, change.shard);
    const bool taken = before != nullptr && before->owner == self_ && change.entry.owner != self_;
    lost += taken && change.cause == Cause::lost ? 1 : 0;
    note_change({now_, delta.to, change.shard, before == nullptr ? kNoNode : before->owner,
                 change.entry, true, change.cause, change.actor});
  }
  report_overlap(lost, "the others held this node for gone");
}

void ControlPlane::note_table(const AllocationTable& table) {
  for (const TypeTable& type : table.types) {
    for (std::uint32_t i = 0; i < type.entries.size(); ++i) {
      const ShardName shard{type.name, ShardId{i}};
      const TableEntry* before = find_entry(table_, shard);
      if (before != nullptr ? *before == type.entries[i] : type.entries[i] == TableEntry{})
        continue;
      note_change({now_,
                   table.version,
                   shard,
                   before == nullptr ? kNoNode : before->owner,
                   type.entries[i],
                   false,
                   Cause::placed,
                   {}});
    }
  }
}

}  // namespace shardbus::control
