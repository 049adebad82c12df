// How a new coordinator finds out who owns what: reports of all members that can be asked, highest
// generation first. What cannot be known yet is held, never guessed.
#include <algorithm>

#include "base/model/table.hpp"
#include "core/coordinator/coordinator.hpp"

namespace shardbus::coordinator {

void Coordinator::adopt(const AllocationTable& known) {
  table_ = known;
  for (const TypeTable& rows : table_.types) {
    Type* type = ensure_type(rows.name, rows.shard_count);
    if (type == nullptr) continue;
    for (std::size_t i = 0; i < type->shards.size(); ++i) type->shards[i].entry = rows.entries[i];
  }
}

void Coordinator::start_collecting(const AllocationTable& known) {
  mode_ = Mode::collecting;
  collecting_since_ = kNever;
  types_.clear();
  adopt(known);
  missing_.clear();
  former_.clear();
  for (const Peer& peer : peers_) insert(missing_, peer.key);
  ask_at_ = Time{};
}

void Coordinator::ask_reports(Time now, std::vector<Output>& out) {
  std::erase_if(missing_, [this](NodeKey key) { return !alive(key); });
  if (missing_.empty()) return;
  if (now >= ask_at_) {
    for (const NodeKey key : missing_) {
      if (usable(key)) out.emplace_back(AskReport{key, ReportRequest{term_, config_.self}});
    }
    ask_at_ = now + config_.resend;
  }
  deadline_ = std::min(deadline_, ask_at_);
}

void Coordinator::rebuild(Time now, std::vector<Output>& out) {
  const bool waits =
      std::any_of(missing_.begin(), missing_.end(), [this](NodeKey key) { return usable(key); });
  if (waits) return;
  // Reports have all entries; what operators ordered is in the newest table alone.
  collecting_since_ = std::min(collecting_since_, now);
  const Time patience = collecting_since_ + config_.table_patience;
  if (newer_table_ && now < patience) {
    deadline_ = std::min(deadline_, patience);
    return;
  }
  mode_ = Mode::active;
  new_version_ = true;
  for (auto& [name, type] : types_) {
    for (std::uint32_t i = 0; i < type.shards.size(); ++i) {
      resolve(now, ShardName{name, ShardId{i}}, type.shards[i]);
    }
  }
  out.emplace_back(Note{"coordinator.rebuilt", "term " + std::to_string(term_.value) + ", " +
                                                   std::to_string(types_.size()) + " types"});
}

// A late report, or the end of a member that could not be asked, settles what was held.
void Coordinator::resolve_pending(Time now) {
  for (auto& [name, type] : types_) {
    for (std::uint32_t i = 0; i < type.shards.size(); ++i) {
      Shard& shard = type.shards[i];
      if (shard.op.kind != OpKind::none || (!shard.held && shard.claims.empty())) continue;
      resolve(now, ShardName{name, ShardId{i}}, shard);
      if (missing_.empty() && !shard.held) shard.claims.clear();
    }
  }
}

bool Coordinator::somebody_is_missing() const {
  return !missing_.empty();
}

// Alive, but it has not said what it owns.
bool Coordinator::unheard(NodeKey key) const {
  return alive(key) && contains(missing_, key);
}

// The living node that still has the shard's state: the owner or sender of the highest generation.
NodeKey Coordinator::keeper_of(const Shard& shard) const {
  NodeKey keeper;
  Generation best;
  for (const Claim& claim : shard.claims) {
    const bool owns = claim.state == RegionState::owner;
    if ((!owns && claim.state != RegionState::sending) || !alive(claim.node)) continue;
    // Of one generation the owner has it: whoever still sends has not seen the ack yet.
    const bool better = owns ? claim.generation >= best : claim.generation > best;
    if (!better) continue;
    best = claim.generation;
    keeper = claim.node;
  }
  return keeper;
}

// The table here may have missed the last moves; it must not go back behind them meanwhile.
void Coordinator::learn_owner(const ShardName& name, Shard& shard) {
  for (const Claim& claim : shard.claims) {
    if (claim.state != RegionState::owner || !alive(claim.node)) continue;
    if (claim.generation <= shard.entry.generation) continue;
    set_entry(name, shard, TableEntry{claim.node, claim.generation}, Cause::reported);
  }
}

void Coordinator::resolve(Time now, const ShardName& name, Shard& shard) {
  shard.held = false;
  learn_owner(name, shard);
  Claim top;  // what the table says, unless somebody reports a generation at least as high
  top.node = shard.entry.owner;
  top.generation = shard.entry.generation;
  bool reported = false;
  const auto strength = [](RegionState state) { return state == RegionState::owner ? 1 : 0; };
  for (const Claim& claim : shard.claims) {
    const bool better = claim.generation > top.generation ||
                        (claim.generation == top.generation &&
                         (!reported || strength(claim.state) > strength(top.state)));
    if (!better) continue;
    top = claim;
    reported = true;
  }
  if (reported && resolve_open_claim(now, name, shard, top, keeper_of(shard))) return;
  if (top.node == kNoNode) {
    for (const Claim& claim : shard.claims) {  // it has not seen that table
      if (claim.state == RegionState::owner) wait_for_former(now, shard, claim.node);
    }
  }
  const Generation& known = shard.entry.generation;
  if (known.term == term_ && known.claimant == config_.self) return;  // newer than any report
  const NodeKey owner = top.node;
  if (owner == kNoNode) {
    shard.held = somebody_is_missing();
    return;
  }
  if (!alive(owner)) return;  // schedule() gives it a new home
  if (contains(missing_, owner)) {
    shard.held = true;
    return;
  }
  // Its owner reported, and not this shard: nobody who was heard has it.
  if (!reported) {
    rare_.hit(Mark::owner_let_go);
    set_entry(name, shard, TableEntry{kNoNode, shard.entry.generation}, Cause::lost);
    shard.held = somebody_is_missing();
  }
}

// Whether somebody who merely cannot be heard may have what the highest claim is about: to freeze
// that claim, or to give the shard away, would take it from a living owner. Only its report or its
// end tells.
bool Coordinator::waits_for_partner(const Shard& shard, const Claim& top, NodeKey keeper) const {
  switch (top.state) {
    case RegionState::incoming:
    case RegionState::frozen:
    case RegionState::sending:
      return unheard(top.other) || (keeper == kNoNode && unheard(shard.entry.owner));
    case RegionState::owner:
    case RegionState::forward:
    case RegionState::none:
      return false;
  }
  return false;
}

// Returns whether the highest reported claim settles the matter.
bool Coordinator::resolve_open_claim(Time now, const ShardName& name, Shard& shard,
                                     const Claim& top, NodeKey keeper) {
  if (waits_for_partner(shard, top, keeper)) {
    rare_.hit(Mark::partner_unheard);
    shard.held = true;
    return true;
  }
  switch (top.state) {
    case RegionState::owner:
      set_entry(name, shard, TableEntry{top.node, top.generation}, Cause::reported);
      return true;
    case RegionState::incoming:
      // Where the old owner is dead, its name says that nobody else can have the shard.
      start_freeze(now, shard, top.node, top.generation, keeper != kNoNode ? keeper : top.other);
      return true;
    case RegionState::sending:
    case RegionState::forward: {
      const bool next_alive = alive(top.other);
      if (unheard(top.other)) {
        // It gave the shard away to a node that cannot be asked now.
        rare_.hit(Mark::given_to_unheard);
        set_entry(name, shard, TableEntry{top.other, top.generation}, Cause::reported);
        shard.held = true;
      } else if (next_alive) {
        start_freeze(now, shard, top.other, top.generation, keeper);
      } else if (!may_rehome(name.type)) {
        shard.held = true;  // its next owner may have got it, and still run it
      } else if (keeper != kNoNode) {
        start(now, shard, OpKind::rehome, kNoNode, keeper, kNoNode, Cause::undone);
      } else {
        set_entry(name, shard, TableEntry{kNoNode, top.generation}, Cause::lost);
      }
      return true;
    }
    case RegionState::frozen:
      rare_.hit(Mark::reported_frozen);
      if (keeper != kNoNode) {
        start(now, shard, OpKind::rehome, kNoNode, keeper, kNoNode, Cause::undone).frozen =
            top.generation;
      } else if (!alive(shard.entry.owner) || shard.entry.generation < top.generation) {
        set_entry(name, shard, TableEntry{kNoNode, top.generation}, Cause::lost);
        shard.held = somebody_is_missing();
      }
      return true;
    case RegionState::none:
      return false;
  }
  return false;
}

}  // namespace shardbus::coordinator
