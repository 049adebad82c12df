#include "core/placement/planners.hpp"

#include <array>
#include <utility>

#include "core/placement/least_shards.hpp"
#include "core/placement/pinned.hpp"
#include "core/placement/rendezvous.hpp"
#include "core/placement/ring.hpp"
#include "core/placement/roles.hpp"
#include "core/placement/weighted.hpp"
#include "core/placement/zones.hpp"

namespace shardbus::placement {
namespace {

using Strategy = std::vector<PlacementMove> (*)(const PlacementSnapshot&);

constexpr std::array<std::pair<std::string_view, Strategy>, 4> kStrategies = {{
    {"least-shards", least_shards},
    {"rendezvous", rendezvous},
    {"weighted", weighted},
    {"ring", ring},
}};

}  // namespace

Planner planner_named(std::string_view name) {
  for (const auto& [known, strategy] : kStrategies) {
    if (known == name) return strategy;
  }
  return {};
}

std::vector<PlacementMove> by_settings(const PlacementSnapshot& snapshot) {
  Planner strategy = planner_named(snapshot.settings.strategy);
  if (!strategy) strategy = least_shards;
  if (snapshot.settings.spread_zones) strategy = zones(std::move(strategy));
  return roles(pinned(std::move(strategy)))(snapshot);
}

}  // namespace shardbus::placement
