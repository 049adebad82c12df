// An operator's table stands before any strategy.
#pragma once

#include "base/model/placement.hpp"

namespace shardbus::placement {

// A shard whose pin is in `nodes` goes there and stays there, also while nothing is rebalanced;
// where the pin is not (it may have yet to join), `inner` decides. Pinned shards count for the
// loads that `inner` sees. Moves to pins come before those of `inner` and count against
// `move_limit`.
Planner pinned(Planner inner);

}  // namespace shardbus::placement
