// The default placement: as equal a number of shards of each type per node as can be, by as few
// moves as can be. Pure; who may own what is decided by whoever fills the snapshot.
#pragma once

#include <vector>

#include "base/model/placement.hpp"

namespace shardbus::placement {

// Places all unowned shards, then moves shards off nodes that are not in `nodes`, then moves from
// the fullest node to the emptiest until they differ by at most one. Only the last two count
// against `move_limit`. Equal nodes are told apart by their total, then by age; shards are taken
// lowest first. An empty list of nodes gives no moves.
std::vector<PlacementMove> least_shards(const PlacementSnapshot& snapshot);

}  // namespace shardbus::placement
