#include "core/placement/least_shards.hpp"

#include "core/placement/level.hpp"

namespace shardbus::placement {

std::vector<PlacementMove> least_shards(const PlacementSnapshot& snapshot) {
  return level(snapshot, std::vector<std::uint64_t>(snapshot.nodes.size(), 1),
               lowest_first(snapshot));
}

}  // namespace shardbus::placement
