// Highest random weight (Thaler and Ravishankar 1998): every node draws a number for every shard
// from both their names, and the highest has it.
#pragma once

#include <vector>

#include "base/model/placement.hpp"

namespace shardbus::placement {

// A restarted node gets the shards that it had; one that joins takes only its own, one that leaves
// gives up only its own. In proportion to capacity, but only on average: with few shards per node
// the loads differ by more than those of `least_shards`.
std::vector<PlacementMove> rendezvous(const PlacementSnapshot& snapshot);

}  // namespace shardbus::placement
