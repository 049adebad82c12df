#include "core/placement/ring.hpp"

#include <algorithm>
#include <utility>

#include "core/placement/score.hpp"
#include "core/placement/settle.hpp"

namespace shardbus::placement {
namespace {

class Circle {
 public:
  explicit Circle(const PlacementSnapshot& snapshot) : type_(fnv1a64(snapshot.type)) {
    for (const PlacementNode& node : snapshot.nodes) add(node);
    std::sort(points_.begin(), points_.end());
  }

  [[nodiscard]] NodeKey home(std::uint32_t shard) const {
    const std::pair at(hash_of_shard(type_, shard), kNoNode);
    const auto next = std::lower_bound(points_.begin(), points_.end(), at);
    return next == points_.end() ? points_.front().second : next->second;
  }

 private:
  void add(const PlacementNode& node) {
    const std::uint64_t hash = hash_of(node);
    const std::uint32_t capacity = std::clamp(node.traits.capacity, 1U, kRingCapacityMax);
    for (std::uint32_t i = 0; i < kRingPoints * capacity; ++i) {
      points_.emplace_back(hash_of_shard(hash, i), node.key);
    }
  }

  std::uint64_t type_;
  std::vector<std::pair<std::uint64_t, NodeKey>> points_;
};

}  // namespace

std::vector<PlacementMove> ring(const PlacementSnapshot& snapshot) {
  const Circle circle(snapshot);
  return settle(snapshot, [&circle](std::uint32_t shard) { return circle.home(shard); });
}

}  // namespace shardbus::placement
