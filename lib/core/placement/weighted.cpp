#include "core/placement/weighted.hpp"

#include <algorithm>

#include "core/placement/level.hpp"

namespace shardbus::placement {

std::vector<PlacementMove> weighted(const PlacementSnapshot& snapshot) {
  std::vector<std::uint64_t> weights;
  for (const PlacementNode& node : snapshot.nodes) {
    weights.push_back(std::max<std::uint64_t>(node.traits.capacity, 1));
  }
  return level(snapshot, weights, lowest_first(snapshot));
}

}  // namespace shardbus::placement
