// Levels counted loads: each node gets its share, by as few moves as can be. The strategies
// least-shards, weighted and zones differ only in what they take for a node and for its weight.
#pragma once

#include <cstdint>
#include <vector>

#include "base/model/placement.hpp"

namespace shardbus::placement {

// Places all unowned shards, then moves shards off nodes that are not in `nodes`, then moves from
// the node that is most above its share to the one most below it, as long as the two differ by more
// than one shard: less would be no gain, and so a plan on the result is empty. Only the last two
// kinds count against `move_limit`, and the moves given are the first of the whole plan.
//
// While shards of a node above its share rest, no other node gives what is within its own share: it
// would get it back.
//
// `weights` has one number, at least 1, per node: its share is its part of their sum. `order` says
// in which order shards are taken, each once. Equal nodes are told apart by their other shards in
// proportion to the weight, then by age. An empty list of nodes gives no moves.
std::vector<PlacementMove> level(const PlacementSnapshot& snapshot,
                                 const std::vector<std::uint64_t>& weights,
                                 const std::vector<std::uint32_t>& order);

// The shards from the lowest.
std::vector<std::uint32_t> lowest_first(const PlacementSnapshot& snapshot);

}  // namespace shardbus::placement
