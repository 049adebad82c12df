// What operators want: checked here, kept in the table, and carried out by schedule().
#include <algorithm>

#include "base/hash.hpp"
#include "base/model/table.hpp"
#include "base/model/text.hpp"
#include "core/coordinator/coordinator.hpp"

namespace shardbus::coordinator {
namespace {

// The table with its orders fits one frame (PROTOCOL.md "Limits").
constexpr std::size_t kPinsMax = 256;
constexpr std::size_t kOrderedNodesMax = 128;
constexpr const char* kSuspended = "moves for balance are suspended";

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::binary_search(names.begin(), names.end(), name);
}

void add(std::vector<std::string>& names, const std::string& name) {
  const auto place = std::lower_bound(names.begin(), names.end(), name);
  if (place == names.end() || *place != name) names.insert(place, name);
}

void remove(std::vector<std::string>& names, const std::string& name) {
  std::erase(names, name);
}

Ordered refused(Errc code, std::string text) {
  return Ordered{code, std::move(text)};
}

std::string being_drained(const std::string& node) {
  return "node '" + node + "' is being drained, and gets no shards: `uncordon` it first";
}

// Why a node may not own shards of a type at this moment.
std::string why_not_own(const Peer& peer, const std::string& type) {
  const std::string node = "node '" + peer.name + "' ";
  if (peer.state != MemberState::up || peer.leaving) return node + "is not up, or leaves";
  if (peer.dead || !peer.reachable) return node + "is not heard";
  return node + "hosts no '" + type +
         "': it is a proxy, lacks the role, has other settings, or has no worker of it";
}

}  // namespace

Ordered Coordinator::order(Time now, const Order& order) {
  if (stopped_ || mode_ != Mode::active) {
    return refused(Errc::not_ready, "this node does not decide; ask the coordinator again");
  }
  dirty_ = true;
  switch (order.kind) {
    case OrderKind::cordon:
    case OrderKind::drain:
    case OrderKind::uncordon:
      return order_node(order);
    case OrderKind::suspend:
    case OrderKind::resume: {
      Orders orders = table_.orders;
      orders.suspended = order.kind == OrderKind::suspend;
      resumed_by_ = orders.suspended ? "" : order.actor;
      set_orders(std::move(orders));
      return {};
    }
    case OrderKind::move:
    case OrderKind::pin:
    case OrderKind::unpin:
      return order_shard(order);
    case OrderKind::apply:
      return order_plan(now, order);
    case OrderKind::confirm:
      break;
  }
  return refused(Errc::invalid_argument, "no such order");
}

// A node that is gone may still be uncordoned.
Ordered Coordinator::order_node(const Order& order) {
  Orders orders = table_.orders;
  const Peer* peer = find_named(order.node);
  const bool named = has(orders.cordoned, order.node) || has(orders.draining, order.node);
  if (peer == nullptr && !(named && order.kind == OrderKind::uncordon)) {
    return refused(Errc::no_such_node, "no member is named '" + order.node + "'");
  }
  if (order.kind == OrderKind::cordon && has(orders.draining, order.node)) {
    return refused(Errc::invalid_argument, being_drained(order.node));
  }
  remove(orders.cordoned, order.node);
  remove(orders.draining, order.node);
  if (order.kind == OrderKind::drain) {
    std::string why = why_not_drain(*peer);
    if (!why.empty()) return refused(Errc::invalid_argument, std::move(why));
    add(orders.draining, order.node);
  }
  if (order.kind == OrderKind::cordon) add(orders.cordoned, order.node);
  if (std::max(orders.cordoned.size(), orders.draining.size()) > kOrderedNodesMax) {
    return refused(Errc::exhausted, "at most 128 nodes can be cordoned, and as many drained");
  }
  ordered_by_[order.node] = order.actor;
  set_orders(std::move(orders));
  return {};
}

std::string Coordinator::why_not_drain(const Peer& peer) const {
  for (const auto& [name, type] : types_) {
    const bool owns = std::any_of(type.shards.begin(), type.shards.end(), [&](const Shard& shard) {
      return shard.entry.owner == peer.key;
    });
    if (!owns) continue;
    const std::vector<const Peer*> homes = homes_for(name, type.shards.size());
    const bool other = std::any_of(homes.begin(), homes.end(), [&](const Peer* one) {
      return one->key != peer.key && !cordoned(*one);
    });
    if (other) continue;
    return "no other node may take the shards of '" + name + "' from '" + peer.name +
           "': start one that hosts it, or uncordon one";
  }
  return {};
}

Ordered Coordinator::order_shard(const Order& order) {
  Shard* shard = find(order.shard);
  if (shard == nullptr) {
    const auto type = types_.find(order.shard.type);
    if (type == types_.end()) {
      return refused(Errc::no_such_type,
                     order.shard.type + "; `shardbusctl shards` lists the types");
    }
    return refused(Errc::invalid_argument, "there is no shard " + shardbus::to_text(order.shard) +
                                               ": they are 0.." +
                                               std::to_string(type->second.shards.size() - 1));
  }
  Orders orders = table_.orders;
  std::erase_if(orders.pins, [&](const Pin& pin) { return pin.shard == order.shard; });
  pinned_by_.erase(order.shard);
  if (order.kind == OrderKind::unpin) {
    set_orders(std::move(orders));
    return {};
  }
  const Peer* peer = find_named(order.node);
  if (order.kind == OrderKind::pin) {
    const Pin pin{order.shard, order.node};
    const auto less = [](const Pin& a, const Pin& b) { return a.shard < b.shard; };
    orders.pins.insert(std::upper_bound(orders.pins.begin(), orders.pins.end(), pin, less), pin);
    if (orders.pins.size() > kPinsMax) {
      return refused(Errc::exhausted, "at most 256 shards can be pinned");
    }
    pinned_by_[order.shard] = order.actor;
    set_orders(std::move(orders));
    return {};
  }
  if (peer == nullptr) {
    return refused(Errc::no_such_node, "no member is named '" + order.node + "'");
  }
  const std::size_t count = types_.at(order.shard.type).shards.size();
  if (!may_own(*peer, order.shard.type, count)) {
    return refused(Errc::invalid_argument, why_not_own(*peer, order.shard.type));
  }
  if (has(orders.draining, order.node)) {
    return refused(Errc::invalid_argument, being_drained(order.node));
  }
  if (const NodeKey pin = pin_of(order.shard); pin != kNoNode && pin != peer->key) {
    return refused(Errc::invalid_argument,
                   shardbus::to_text(order.shard) + " is pinned to another node: unpin it first");
  }
  if (!usable(shard->entry.owner)) {
    return refused(Errc::not_ready, shardbus::to_text(order.shard) + " has no owner that is heard");
  }
  shard->wanted = PlannedMove{order.shard, shard->entry.owner, peer->key, Cause::ordered};
  shard->wanted_by = order.actor;
  return {};
}

// Whose order a planned move follows; empty: nobody's, or that of an earlier coordinator's time.
std::string Coordinator::actor_of(Cause cause, const ShardName& shard,
                                  const PlacementMove& move) const {
  const auto by = [this](NodeKey key) {
    const Peer* peer = find(key);
    const auto known = peer == nullptr ? ordered_by_.end() : ordered_by_.find(peer->name);
    return known == ordered_by_.end() ? std::string() : known->second;
  };
  if (cause == Cause::pinned) {
    const auto pinned = pinned_by_.find(shard);
    return pinned == pinned_by_.end() ? "" : pinned->second;
  }
  if (cause == Cause::drained) return by(move.from);
  if (cause != Cause::balance) return {};
  const std::string uncordoned = by(move.to);
  return uncordoned.empty() ? resumed_by_ : uncordoned;
}

// After nodes came or went, what is levelled is so for that reason.
void Coordinator::end_levelling_orders() {
  resumed_by_.clear();
  std::erase_if(ordered_by_, [this](const auto& entry) {
    return !has(table_.orders.draining, entry.first) && !has(table_.orders.cordoned, entry.first);
  });
}

Ordered Coordinator::order_plan(Time now, const Order& order) {
  const Plan plan = this->plan(now);
  if (plan.id != order.plan) {
    return refused(Errc::stale_plan, "plan '" + order.plan + "' is none any more; it is '" +
                                         plan.id + "' with " + std::to_string(plan.moves.size()) +
                                         " moves now");
  }
  for (const PlannedMove& move : plan.moves) {
    Shard& shard = *find(move.shard);
    shard.wanted = move;
    shard.wanted_by = order.actor;
  }
  return Ordered{Errc::ok, std::to_string(plan.moves.size())};
}

// Gives back what of the budget is left.
std::size_t Coordinator::start_wanted(Time now, std::size_t budget) {
  for (auto& [name, type] : types_) {
    for (Shard& shard : type.shards) {
      if (!shard.wanted || shard.op.kind != OpKind::none) continue;
      const PlannedMove move = *shard.wanted;
      const Peer* to = find(move.to);
      const bool possible = to != nullptr && !draining(*to) &&
                            may_own(*to, name, type.shards.size()) &&
                            shard.entry.owner != move.to && usable(shard.entry.owner);
      if (!possible) {
        if (shard.entry.owner != move.to) {
          notes_.push_back(
              Note{"coordinator.move_given_up",
                   shardbus::to_text(move.shard) + " to " + shardbus::to_text(move.to)});
        }
        shard.wanted.reset();
        continue;
      }
      if (shard.held || budget == 0) continue;
      --budget;
      start(now, shard, OpKind::handoff, shard.entry.owner, move.to, shard.entry.owner, move.cause)
          .actor = shard.wanted_by;
      shard.wanted.reset();
    }
  }
  return budget;
}

std::size_t Coordinator::waiting_moves() const {
  std::size_t count = 0;
  for (const auto& [name, type] : types_) {
    for (const Shard& shard : type.shards) count += shard.wanted ? 1 : 0;
  }
  return count;
}

Plan Coordinator::plan(Time now) const {
  Plan plan;
  plan.frozen = why_frozen();
  if (mode_ != Mode::active || stopped_) plan.frozen = "this node does not decide";
  std::uint64_t hash = table_hash(table_);
  const bool suspended = table_.orders.suspended && plan.frozen == kSuspended;
  const Loads totals = loads();
  for (const auto& [name, type] : types_) {
    PlacementSnapshot view = snapshot(now, name, type, totals, type.shards.size());
    if (view.nodes.empty()) continue;
    view.rebalance = plan.frozen.empty() || suspended;
    std::vector<PlacementMove> moves;
    const std::string failure = ask_planner(view, moves);
    if (!failure.empty()) {
      plan.frozen = "the placement of '";
      plan.frozen.append(name).append("' failed: ").append(failure);
    }
    for (const PlacementMove& move : moves) {
      if (move.from == kNoNode) continue;
      const Cause cause = cause_of(view, move);
      plan.moves.push_back(PlannedMove{{name, move.shard}, move.from, move.to, cause});
      hash = fnv1a64(shardbus::to_text(plan.moves.back().shard) + ">" + shardbus::to_text(move.to),
                     hash);
    }
  }
  if (suspended && plan.frozen == kSuspended) plan.frozen.clear();
  plan.id = std::to_string(table_.version.term.value) + "-" +
            std::to_string(table_.version.number) + "-" + std::to_string(hash & 0xffffffU);
  return plan;
}

// Levelling waits until the view is settled, and until an upgrade is over; giving homes never
// waits.
std::string Coordinator::why_frozen() const {
  if (table_.orders.suspended) return kSuspended;
  for (const Peer& peer : peers_) {
    if (peer.dead) return "'" + peer.name + "' is dead and not removed yet";
    if (!peer.reachable) return "'" + peer.name + "' is unreachable";
    if (peer.state == MemberState::joining) return "'" + peer.name + "' is joining";
    // What moves to a node that is to be restarted next would move twice.
    if (peer.traits.version != peers_.front().traits.version) {
      return "'" + peer.name + "' runs another version than '" + peers_.front().name + "'";
    }
  }
  return {};
}

bool Coordinator::cordoned(const Peer& peer) const {
  return has(table_.orders.cordoned, peer.name) || draining(peer);
}

bool Coordinator::draining(const Peer& peer) const {
  return has(table_.orders.draining, peer.name);
}

bool Coordinator::may_own(const Peer& peer, const std::string& type, std::size_t count) const {
  if (peer.state != MemberState::up || peer.dead || !peer.reachable || peer.leaving) return false;
  const HostedType* hosted = find_hosted(peer.hosts, type);
  return hosted != nullptr && hosted->shard_count == count &&
         has_role(peer.traits, hosted->placement.role);
}

// Where shards of a type may go. A cordoned node is better than none, and so is one that is
// drained.
std::vector<const Peer*> Coordinator::homes_for(const std::string& type, std::size_t count) const {
  std::vector<const Peer*> open, kept, all;
  for (const Peer& peer : peers_) {
    if (!may_own(peer, type, count)) continue;
    all.push_back(&peer);
    if (!draining(peer)) kept.push_back(&peer);
    if (!cordoned(peer)) open.push_back(&peer);
  }
  if (!open.empty()) return open;
  return kept.empty() ? all : kept;
}

const Peer* Coordinator::find_named(const std::string& name) const {
  const Peer* found = nullptr;
  for (const Peer& peer : peers_) {
    if (peer.name == name && !peer.dead) found = &peer;
  }
  return found;
}

NodeKey Coordinator::pin_of(const ShardName& shard) const {
  const std::vector<Pin>& pins = table_.orders.pins;
  const auto pin = std::lower_bound(pins.begin(), pins.end(), shard,
                                    [](const Pin& a, const ShardName& b) { return a.shard < b; });
  if (pin == pins.end() || pin->shard != shard) return kNoNode;
  const Peer* peer = find_named(pin->node);
  return peer == nullptr ? kNoNode : peer->key;
}

void Coordinator::set_orders(Orders orders) {
  if (orders == table_.orders) return;
  table_.orders = std::move(orders);
  orders_changed_ = true;
}

}  // namespace shardbus::coordinator
