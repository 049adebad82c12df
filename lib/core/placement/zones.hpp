// Spreads the shards of a type over zones, so that the loss of one takes as few as can be.
#pragma once

#include "base/model/placement.hpp"

namespace shardbus::placement {

// Each zone gets an equal share, but none more than twice what its part of all capacities would
// give it: a zone of one node beside one of nine shall not carry half. Within a zone `inner`
// decides among the zone's nodes. Nodes without a zone are one zone together.
//
// Order of the plan: unowned shards, moves off nodes not in `nodes`, moves between zones, moves
// within them; the moves given are the first of it.
Planner zones(Planner inner);

}  // namespace shardbus::placement
