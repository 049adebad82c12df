// Least shards for nodes of different size: loads are in proportion to capacities.
#pragma once

#include <vector>

#include "base/model/placement.hpp"

namespace shardbus::placement {

// As `least_shards`, but each node's share is its part of the sum of all capacities; in the end
// every node is within one shard of it.
std::vector<PlacementMove> weighted(const PlacementSnapshot& snapshot);

}  // namespace shardbus::placement
