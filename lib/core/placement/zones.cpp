#include "core/placement/zones.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/placement/level.hpp"
#include "core/placement/view.hpp"

namespace shardbus::placement {
namespace {

// Nobody in the snapshot of zones: a shard of a node that may not own it.
constexpr NodeKey kElsewhere{kMaxWireInteger};

struct Zone {
  std::vector<PlacementNode> nodes;
  std::uint64_t capacity = 0;
};

class Plan {
 public:
  Plan(const PlacementSnapshot& snapshot, const Planner& inner) : view_(snapshot), inner_(inner) {
    std::map<std::string, std::size_t> known;  // numbered by the age of their oldest node
    for (const PlacementNode& node : snapshot.nodes) {
      const auto [at, added] = known.try_emplace(node.traits.zone, zones_.size());
      if (added) zones_.emplace_back();
      Zone& zone = zones_[at->second];
      zone.nodes.push_back(node);
      zone.capacity += capacity_of(node);
      zone_of_.push_back(at->second);
    }
  }

  std::vector<PlacementMove> make() {
    const PlacementSnapshot& in = view_.snapshot();
    if (zones_.size() < 2) return inner_(in);
    choose_zones();
    for (std::size_t zone = 0; zone < zones_.size(); ++zone) plan_within(zone);
    std::stable_sort(moves_.begin(), moves_.end(),
                     [this](const auto& a, const auto& b) { return rank(a) < rank(b); });
    const auto owned = std::find_if(moves_.begin(), moves_.end(),
                                    [](const auto& move) { return move.from != kNoNode; });
    const auto placed = static_cast<std::size_t>(owned - moves_.begin());
    moves_.resize(placed + std::min(moves_.size() - placed, in.move_limit));
    return std::move(moves_);
  }

 private:
  static std::uint64_t capacity_of(const PlacementNode& node) {
    return std::max<std::uint64_t>(node.traits.capacity, 1);
  }

  static NodeKey key_of(std::size_t zone) { return NodeKey{zone + 1}; }

  [[nodiscard]] NodeKey zone_of_owner(std::uint32_t shard) const {
    const NodeKey owner = view_.owner(shard);
    const std::size_t at = view_.index_of(owner);
    if (at < zone_of_.size()) return key_of(zone_of_[at]);
    return owner == kNoNode ? kNoNode : kElsewhere;
  }

  // Shares of the zones. One that would be above twice its part by capacity gets just that, and
  // what is left is shared by the others; that may put another one above, so again from the start.
  [[nodiscard]] std::vector<std::uint64_t> shares() const {
    std::uint64_t all = 0;
    for (const Zone& zone : zones_) all += zone.capacity;
    std::vector<bool> full(zones_.size());
    std::uint64_t left = all;  // in units of one capacity
    std::uint64_t sharers = zones_.size();
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = 0; i < zones_.size(); ++i) {
        if (full[i] || 2 * zones_[i].capacity * sharers >= left) continue;
        full[i] = again = true;
        left -= 2 * zones_[i].capacity;
        --sharers;
      }
    }
    std::vector<std::uint64_t> result;
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      result.push_back(full[i] ? 2 * zones_[i].capacity * sharers : left);
    }
    return result;
  }

  // A zone gives first what its fullest node has.
  [[nodiscard]] std::vector<std::uint32_t> fullest_first() const {
    const std::vector<PlacementNode>& nodes = view_.snapshot().nodes;
    std::vector<std::uint64_t> counts(nodes.size());
    for (const NodeKey owner : view_.snapshot().owners) {
      if (view_.has(owner)) ++counts[view_.index_of(owner)];
    }
    std::vector<double> fullness;
    for (std::uint32_t shard = 0; shard < view_.snapshot().owners.size(); ++shard) {
      const std::size_t at = view_.index_of(view_.owner(shard));
      const bool counted = at < nodes.size() && view_.may_balance(shard);
      fullness.push_back(counted ? static_cast<double>(counts[at]--) /
                                       static_cast<double>(capacity_of(nodes[at]))
                                 : 0);
    }
    std::vector<std::uint32_t> order = lowest_first(view_.snapshot());
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return fullness[a] > fullness[b]; });
    return order;
  }

  // Zones as if they were nodes.
  void choose_zones() {
    const PlacementSnapshot& in = view_.snapshot();
    PlacementSnapshot whole;
    for (std::size_t zone = 0; zone < zones_.size(); ++zone) {
      std::uint64_t total = 0;
      for (const PlacementNode& node : zones_[zone].nodes) total += node.total;
      whole.nodes.push_back(PlacementNode{key_of(zone), total});
    }
    for (std::uint32_t shard = 0; shard < in.owners.size(); ++shard) {
      whole.owners.push_back(zone_of_owner(shard));
    }
    whole.fixed = in.fixed;
    whole.resting = in.resting;
    whole.move_limit = in.owners.size();
    whole.rebalance = in.rebalance;
    const std::vector<PlacementMove> chosen = level(whole, shares(), fullest_first());
    target_ = std::move(whole.owners);
    for (const PlacementMove& move : chosen) target_[move.shard.value] = move.to;
  }

  void plan_within(std::size_t zone) {
    const PlacementSnapshot& in = view_.snapshot();
    PlacementSnapshot part;
    part.type = in.type;
    part.settings = in.settings;
    part.nodes = zones_[zone].nodes;
    part.resting = in.resting;
    part.move_limit = in.owners.size();
    part.rebalance = in.rebalance;
    for (std::uint32_t shard = 0; shard < in.owners.size(); ++shard) {
      const bool mine = target_[shard] == key_of(zone);
      const bool stays = mine && zone_of_owner(shard) == target_[shard];
      part.owners.push_back(stays ? in.owners[shard] : kNoNode);
      part.fixed.push_back(!mine || view_.fixed(shard));
    }
    for (PlacementMove move : inner_(part)) {
      move.from = view_.owner(move.shard.value);
      moves_.push_back(move);
    }
  }

  [[nodiscard]] int rank(const PlacementMove& move) const {
    if (move.from == kNoNode) return 0;
    if (!view_.has(move.from)) return 1;
    return zone_of_owner(move.shard.value) != target_[move.shard.value] ? 2 : 3;
  }

  View view_;
  const Planner& inner_;
  std::vector<Zone> zones_;
  std::vector<std::size_t> zone_of_;  // by node
  std::vector<NodeKey> target_;       // zone by shard
  std::vector<PlacementMove> moves_;
};

}  // namespace

Planner zones(Planner inner) {
  return [inner = std::move(inner)](const PlacementSnapshot& snapshot) {
    return Plan(snapshot, inner).make();
  };
}

}  // namespace shardbus::placement
