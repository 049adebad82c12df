// Consistent hashing: nodes have points on a ring, and a shard is at the next point after its own.
#pragma once

#include <cstdint>
#include <vector>

#include "base/model/placement.hpp"

namespace shardbus::placement {

inline constexpr std::uint32_t kRingPoints = 64;       // per node and unit of capacity
inline constexpr std::uint32_t kRingCapacityMax = 32;  // more counts as this much

// Moves as few shards as `rendezvous` when a node comes or goes, and finds a home faster with very
// many shards, but loads differ more. All types lie differently on the ring.
std::vector<PlacementMove> ring(const PlacementSnapshot& snapshot);

}  // namespace shardbus::placement
