// What an active coordinator does next: repairs ops whose partners are gone, gives every shard a
// home, levels the load, and repeats commands until they are answered.
#include <algorithm>
#include <utility>

#include "core/coordinator/coordinator.hpp"

namespace shardbus::coordinator {

void Coordinator::schedule(Time now, std::vector<Output>& out) {
  learn_types();
  std::size_t shards = 0;
  std::size_t moving = 0;
  for (auto& [name, type] : types_) {
    for (std::uint32_t i = 0; i < type.shards.size(); ++i) {
      repair(now, ShardName{name, ShardId{i}}, type.shards[i]);
      if (type.shards[i].op.kind == OpKind::handoff) ++moving;
    }
    shards += type.shards.size();
  }
  const std::size_t limit =
      std::clamp(shards * config_.moves_percent / 100, config_.moves_min, config_.moves_max);
  std::size_t budget = limit > moving ? limit - moving : 0;
  budget = start_wanted(now, budget);
  Loads totals = loads();
  for (auto& [name, type] : types_) plan_type(now, name, type, totals, budget);
  for (auto& [name, type] : types_) {
    for (std::uint32_t i = 0; i < type.shards.size(); ++i) {
      send_due(now, ShardName{name, ShardId{i}}, type.shards[i], out);
    }
  }
}

void Coordinator::learn_types() {
  for (const Peer& peer : peers_) {
    if (peer.state != MemberState::up || peer.dead) continue;
    for (const HostedType& hosted : peer.hosts) {
      const bool fits = hosted.shard_count > 0 && ensure_type(hosted.name, hosted.shard_count);
      if (!fits) ++ignored_reports_;
    }
  }
  note_strict();
}

// Also of hosts that leave or died: their shards are what has to be waited for.
void Coordinator::note_strict() {
  for (const Peer& peer : peers_) {
    for (const HostedType& hosted : peer.hosts) {
      const auto type = types_.find(hosted.name);
      if (type != types_.end() && hosted.placement.strict) type->second.strict = true;
    }
  }
}

void Coordinator::repair(Time now, const ShardName& name, Shard& shard) {
  const Op op = shard.op;
  switch (op.kind) {
    case OpKind::none:
      return;
    case OpKind::rehome:
      if (alive(op.to)) return;
      rare_.hit(Mark::rehome_target_died);
      shard.op = Op{};
      set_entry(name, shard, TableEntry{kNoNode, op.generation}, Cause::lost);
      return;
    case OpKind::handoff:
    case OpKind::freeze: {
      const NodeKey keeper = op.kind == OpKind::handoff ? op.from : op.prefer;
      if (!alive(op.to)) {
        if (!may_rehome(name.type)) return;  // it may have got the shard, and still run it
        rare_.hit(Mark::handoff_target_died);
        shard.op = Op{};
        if (alive(keeper)) {
          start(now, shard, OpKind::rehome, kNoNode, keeper, kNoNode, Cause::undone);
        } else {
          set_entry(name, shard, TableEntry{kNoNode, op.generation}, Cause::lost);
        }
      } else if (op.kind == OpKind::handoff &&
                 (!alive(op.from) || now >= op.started + config_.handoff_timeout)) {
        rare_.hit(alive(op.from) ? Mark::handoff_timed_out : Mark::handoff_source_died);
        start_freeze(now, shard, op.to, op.generation, op.from);
      }
      return;
    }
  }
}

void Coordinator::plan_type(Time now, const std::string& name, Type& type, Loads& totals,
                            std::size_t& budget) {
  for (const Shard& shard : type.shards) {
    if (now < shard.rests_until) deadline_ = std::min(deadline_, shard.rests_until);
  }
  PlacementSnapshot view = snapshot(now, name, type, totals, budget);
  if (view.nodes.empty()) return drop_unhosted(now, name, type, view);
  type.unhosted_since = kNever;
  if (view.nodes.size() == 1 &&
      std::find(view.owners.begin(), view.owners.end(), kNoNode) == view.owners.end()) {
    const NodeKey only = view.nodes.front().key;
    const bool all = std::all_of(view.owners.begin(), view.owners.end(),
                                 [only](NodeKey owner) { return owner == only; });
    if (all) return;
  }
  const std::size_t before = view.move_limit;
  apply_plan(now, name, type, view, totals);
  std::size_t used = 0;
  for (std::size_t i = 0; i < type.shards.size(); ++i) {
    if (!view.fixed[i] && type.shards[i].op.kind == OpKind::handoff) ++used;
  }
  budget = before > used ? before - used : 0;
}

PlacementSnapshot Coordinator::snapshot(Time now, const std::string& name, const Type& type,
                                        const Loads& totals, std::size_t budget) const {
  PlacementSnapshot view;
  view.type = name;
  view.move_limit = budget;
  view.rebalance = why_frozen().empty();
  const std::vector<const Peer*> homes = homes_for(name, type.shards.size());
  // All say the same, but for a moment when two begin to host it at once.
  if (!homes.empty()) view.settings = find_hosted(homes.front()->hosts, name)->placement;
  for (const Peer* peer : homes) {
    const auto total = totals.find(peer->key);
    view.nodes.push_back(PlacementNode{peer->key, total == totals.end() ? 0 : total->second,
                                       peer->traits, peer->name});
  }
  for (std::uint32_t i = 0; i < type.shards.size(); ++i) {
    const Shard& shard = type.shards[i];
    const NodeKey target = shard.op.kind != OpKind::none ? shard.op.to : shard.entry.owner;
    view.owners.push_back(alive(target) ? target : kNoNode);
    view.pins.push_back(pin_of(ShardName{name, ShardId{i}}));
    view.fixed.push_back(fixed(ShardName{name, ShardId{i}}, shard, find(target)));
    view.resting.push_back(now < shard.rests_until);
  }
  // The totals count this type too; what is left are the others.
  for (PlacementNode& node : view.nodes) {
    const auto own = std::count(view.owners.begin(), view.owners.end(), node.key);
    node.total -= std::min(node.total, static_cast<std::uint64_t>(own));
  }
  return view;
}

// Of a strict type a member that has not reported may own any shard, whatever the table says. What
// nobody that was heard hosts may be strict; what was strict once stays so, whoever is left.
bool Coordinator::may_rehome(const std::string& name) const {
  const auto type = types_.find(name);
  const bool known = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return find_hosted(peer.hosts, name) != nullptr;
  });
  const bool strict = type != types_.end() && type->second.strict;
  return (known && !strict) || (strict_homes_ && missing_.empty());
}

// Whether nothing is to be done with a shard now. `owner`: the one it has, or gets.
bool Coordinator::fixed(const ShardName& name, const Shard& shard, const Peer* owner) const {
  const bool busy = shard.op.kind != OpKind::none || shard.held || shard.wanted;
  if (busy || alive(shard.former)) return true;
  if (!first_homes_ && !shard.entry.generation.known()) return true;
  if (owner == nullptr || owner->dead) return !may_rehome(name.type);
  if (!owner->reachable || !owner->heard) return true;
  // What a cordoned node has, it keeps.
  const std::size_t count = types_.at(name.type).shards.size();
  const Peer* pin = find(pin_of(name));
  const bool wanted =
      pin != nullptr && pin != owner && !cordoned(*pin) && may_own(*pin, name.type, count);
  return cordoned(*owner) && !draining(*owner) && !wanted && may_own(*owner, name.type, count);
}

// Whether anybody is left who could host what a leaving node gives up.
bool Coordinator::somebody_stays() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    const bool stays = peer.state == MemberState::up || peer.state == MemberState::joining;
    return stays && !peer.dead && !peer.leaving;
  });
}

// For how long an owner keeps shards that it does not host any more, and nobody else does: one that
// leaves has sent its workers away, so they are about to host the type elsewhere.
Duration Coordinator::patience_with(NodeKey owner) const {
  const Peer* peer = find(owner);
  const bool leaves = peer != nullptr && !peer->dead && peer->leaving;
  return leaves && somebody_stays() ? config_.handoff_timeout : config_.unhosted_patience;
}

// Nobody hosts the type: what its owners cannot run is owned by nobody, after a while. A living
// owner that merely cannot be heard keeps its shards. They may come to a node again when that owner
// has let go.
void Coordinator::drop_unhosted(Time now, const std::string& name, Type& type,
                                const PlacementSnapshot& snapshot) {
  type.unhosted_since = std::min(type.unhosted_since, now);
  const bool all_heard = std::all_of(peers_.begin(), peers_.end(),
                                     [](const Peer& peer) { return peer.dead || peer.heard; });
  if (!all_heard) return;
  for (std::uint32_t i = 0; i < type.shards.size(); ++i) {
    Shard& shard = type.shards[i];
    if (snapshot.fixed[i] || shard.entry.owner == kNoNode) continue;
    const Peer* owner = find(shard.entry.owner);
    const bool joining = owner != nullptr && !owner->dead && owner->state == MemberState::joining;
    if (joining) continue;
    const bool hosts = owner != nullptr && find_hosted(owner->hosts, name) != nullptr;
    const Time end = type.unhosted_since +
                     (hosts ? config_.unhosted_patience : patience_with(shard.entry.owner));
    if (now < end) {
      deadline_ = std::min(deadline_, end);
      continue;
    }
    rare_.hit(Mark::unhosted);
    wait_for_former(now, shard, shard.entry.owner);
    set_entry(ShardName{name, ShardId{i}}, shard, TableEntry{kNoNode, next_generation()},
              Cause::unhosted);
  }
}

void Coordinator::wait_for_former(Time now, Shard& shard, NodeKey owner) {
  if (!alive(owner)) return;
  shard.former = owner;
  if (former_.empty()) ask_former_at_ = now + config_.resend / 10;  // the table goes first
  insert(former_, owner);
}

void Coordinator::ask_former(Time now, std::vector<Output>& out) {
  std::erase_if(former_, [this](NodeKey key) { return !alive(key); });
  if (former_.empty()) return;
  if (now >= ask_former_at_) {
    for (const NodeKey key : former_) {
      if (usable(key)) out.emplace_back(AskReport{key, ReportRequest{term_, config_.self}});
    }
    ask_former_at_ = now + config_.resend;
  }
  deadline_ = std::min(deadline_, ask_former_at_);
}

Cause Coordinator::cause_of(const PlacementSnapshot& view, const PlacementMove& move) const {
  const Peer* owner = find(move.from);
  if (view.pins[move.shard.value] == move.to) return Cause::pinned;
  if (owner != nullptr && !owner->leaving && draining(*owner)) return Cause::drained;
  const bool stays = std::any_of(view.nodes.begin(), view.nodes.end(),
                                 [&](const PlacementNode& node) { return node.key == move.from; });
  return stays ? Cause::balance : Cause::leaving;
}

// The strategy is not trusted: a move that does not fit the present state is left out, and what it
// leaves without a home gets one all the same.
void Coordinator::apply_plan(Time now, const std::string& name, Type& type,
                             const PlacementSnapshot& view, Loads& totals) {
  std::vector<PlacementMove> planned;
  const std::string failure = ask_planner(view, planned);
  const bool planned_well = failure.empty();
  if (!planned_well) {
    notes_.push_back(Note{"coordinator.planner_failed", view.type + ": " + failure});
  }
  apply_moves(now, name, type, view, planned, totals);
  PlacementSnapshot rest = view;
  std::size_t homeless = 0;
  for (std::size_t i = 0; i < type.shards.size(); ++i) {
    rest.fixed[i] = view.fixed[i] || type.shards[i].op.kind != OpKind::none;
    homeless += !rest.fixed[i] && view.owners[i] == kNoNode ? 1 : 0;
  }
  if ((planned_well && homeless == 0) || !config_.fallback) return;
  if (homeless > 0) {
    notes_.push_back(Note{"coordinator.planner_failed",
                          name + ": no home for " + std::to_string(homeless) + " shards"});
  }
  rest.rebalance = false;
  rest.move_limit = planned_well ? 0 : view.move_limit;
  apply_moves(now, name, type, rest, config_.fallback(rest), totals);
}

std::string Coordinator::ask_planner(const PlacementSnapshot& view,
                                     std::vector<PlacementMove>& moves) const {
  try {
    moves = config_.planner(view);
    return {};
  } catch (const std::exception& error) {
    return *error.what() == '\0' ? "it threw" : error.what();
  } catch (...) {
    return "it threw no std::exception";
  }
}

void Coordinator::apply_moves(Time now, const std::string& name, Type& type,
                              const PlacementSnapshot& view,
                              const std::vector<PlacementMove>& planned, Loads& totals) {
  std::size_t moves = 0;
  Loads moving = moves_by_node(now);
  for (const PlacementMove& move : planned) {
    const std::uint32_t i = move.shard.value;
    const bool known = i < type.shards.size() && !view.fixed[i] && move.to != move.from &&
                       view.owners[i] == move.from && type.shards[i].op.kind == OpKind::none &&
                       std::any_of(view.nodes.begin(), view.nodes.end(),
                                   [&](const PlacementNode& node) { return node.key == move.to; });
    if (!known || (move.from != kNoNode && moves >= view.move_limit)) {
      notes_.push_back(Note{"coordinator.bad_move", name + ":" + std::to_string(i)});
      continue;
    }
    Shard& shard = type.shards[i];
    const Cause cause = cause_of(view, move);
    if (move.from != kNoNode) {
      const bool free =
          takes_move(moving, totals, move.from) && takes_move(moving, totals, move.to);
      if (!free) {  // planned again when another one is through, or slow
        deadline_ = std::min(deadline_, now + config_.slow_move);
        continue;
      }
      ++moving[move.from];
      ++moving[move.to];
    }
    --totals[shard.entry.owner];
    ++totals[move.to];
    if (move.from == kNoNode) {
      const bool lost = shard.entry.owner != kNoNode;
      start(now, shard, OpKind::rehome, kNoNode, move.to, kNoNode,
            lost ? Cause::lost : Cause::placed);
    } else {
      start(now, shard, OpKind::handoff, move.from, move.to, move.from, cause).actor =
          actor_of(cause, ShardName{name, move.shard}, move);
      ++moves;
    }
  }
}

// Moves take milliseconds, and one after the other each is shorter. One that takes longer waits for
// a handler, and the others need not.
Coordinator::Loads Coordinator::moves_by_node(Time now) const {
  Loads moving;
  for (const auto& [name, type] : types_) {
    for (const Shard& shard : type.shards) {
      if (shard.op.kind != OpKind::handoff || now >= shard.op.started + config_.slow_move) continue;
      ++moving[shard.op.from];
      ++moving[shard.op.to];
    }
  }
  return moving;
}

// Where a node has many shards each of them is small.
bool Coordinator::takes_move(const Loads& moving, const Loads& totals, NodeKey node) const {
  const auto load = totals.find(node);
  const auto busy = moving.find(node);
  const std::size_t shards = load == totals.end() ? 0 : load->second;
  const std::size_t limit = std::max(config_.moves_per_node, shards / config_.shards_per_move);
  return busy == moving.end() || busy->second < limit;
}

Op& Coordinator::start(Time now, Shard& shard, OpKind kind, NodeKey from, NodeKey to,
                       NodeKey prefer, Cause cause) {
  shard.held = false;
  shard.op = Op{kind, from, to, prefer, next_generation(), {}, now, Time{}, cause, {}};
  return shard.op;
}

void Coordinator::start_freeze(Time now, Shard& shard, NodeKey to, Generation generation,
                               NodeKey prefer) {
  const Op before = shard.op;
  shard.held = false;
  shard.op = Op{OpKind::freeze, prefer,       to,          prefer, generation, {}, now,
                Time{},         before.cause, before.actor};
}

void Coordinator::send_due(Time now, const ShardName& name, Shard& shard,
                           std::vector<Output>& out) {
  Op& op = shard.op;
  if (op.kind == OpKind::none) return;
  if (now >= op.resend_at) {
    const auto count = static_cast<std::uint32_t>(types_.at(name.type).shards.size());
    op.resend_at = now + config_.resend;
    switch (op.kind) {
      case OpKind::rehome:
        out.emplace_back(Command{op.to, RehomeShard{name, count, op.generation, op.frozen}});
        break;
      case OpKind::handoff:
        // The next owner first: then it is usually ready when the stream comes.
        out.emplace_back(Command{op.to, PrepareHandoff{name, op.generation, op.from}});
        out.emplace_back(Command{op.from, BeginHandoff{name, op.generation, op.to}});
        break;
      case OpKind::freeze:
        out.emplace_back(Command{op.to, FreezeShard{name, op.generation, op.prefer}});
        break;
      case OpKind::none:
        break;
    }
  }
  deadline_ = std::min(deadline_, op.resend_at);
}

Generation Coordinator::next_generation() {
  return Generation{term_, config_.self, ++counter_};
}

Coordinator::Loads Coordinator::loads() const {
  Loads result;
  for (const auto& [name, type] : types_) {
    for (const Shard& shard : type.shards) {
      ++result[shard.op.kind != OpKind::none ? shard.op.to : shard.entry.owner];
    }
  }
  return result;
}

}  // namespace shardbus::coordinator
