// The plan of a strategy that has one home for every shard, whatever the others' loads are.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/model/placement.hpp"

namespace shardbus::placement {

using HomeOf = std::function<NodeKey(std::uint32_t shard)>;  // one of the snapshot's nodes

// Places all unowned shards, then moves shards off nodes that are not in `nodes`, then moves what
// is away from home; each kind lowest shard first. Only the last two count against `move_limit`.
// An empty list of nodes gives no moves.
std::vector<PlacementMove> settle(const PlacementSnapshot& snapshot, const HomeOf& home);

}  // namespace shardbus::placement
