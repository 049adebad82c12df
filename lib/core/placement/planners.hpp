// Which strategy a type gets.
#pragma once

#include <string_view>
#include <vector>

#include "base/model/placement.hpp"

namespace shardbus::placement {

// The strategy of that name; empty where there is none.
Planner planner_named(std::string_view name);

// Plans as the settings in the snapshot say: nodes of the role, then an operator's pins, then zones
// if they are wanted, then the strategy. A name that this version does not know is least-shards.
std::vector<PlacementMove> by_settings(const PlacementSnapshot& snapshot);

}  // namespace shardbus::placement
