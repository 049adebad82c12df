#include "core/placement/roles.hpp"

#include <algorithm>
#include <utility>

namespace shardbus::placement {

Planner roles(Planner inner) {
  return [inner = std::move(inner)](const PlacementSnapshot& snapshot) {
    const auto lacks = [&](const PlacementNode& node) {
      return !has_role(node.traits, snapshot.settings.role);
    };
    if (std::none_of(snapshot.nodes.begin(), snapshot.nodes.end(), lacks)) return inner(snapshot);
    PlacementSnapshot able = snapshot;
    std::erase_if(able.nodes, lacks);
    return inner(able);
  };
}

}  // namespace shardbus::placement
