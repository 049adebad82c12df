// A type that needs a role runs only on nodes that have it.
#pragma once

#include "base/model/placement.hpp"

namespace shardbus::placement {

// Shows `inner` only the nodes with the role of the type's settings: what lies on others is moved
// off them. Where nobody has the role there are no moves.
Planner roles(Planner inner);

}  // namespace shardbus::placement
