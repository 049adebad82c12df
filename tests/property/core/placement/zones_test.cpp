// Zones against an oracle that fills them drop by drop.
#include "core/placement/zones.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/placement/planners.hpp"
#include "snapshots.hpp"

namespace shardbus::placement {
namespace {

constexpr std::uint64_t kCases = 200;

using ByZone = std::map<std::string, double>;

std::map<NodeKey, std::string> zone_names(const PlacementSnapshot& snapshot) {
  std::map<NodeKey, std::string> result;
  for (const PlacementNode& node : snapshot.nodes) result[node.key] = node.traits.zone;
  return result;
}

// All zones rise equally; one that reaches twice its part by capacity stops.
ByZone shares(const PlacementSnapshot& snapshot) {
  ByZone capacity;
  double all = 0;
  for (const PlacementNode& node : snapshot.nodes) {
    capacity[node.traits.zone] += node.traits.capacity;
    all += node.traits.capacity;
  }
  const auto shards = static_cast<double>(snapshot.owners.size());
  double low = 0;
  double high = shards;
  for (int i = 0; i < 100; ++i) {
    const double level = (low + high) / 2;
    double sum = 0;
    for (const auto& [zone, own] : capacity) sum += std::min(level, 2 * shards * own / all);
    (sum < shards ? low : high) = level;
  }
  ByZone result;
  for (const auto& [zone, own] : capacity) result[zone] = std::min(high, 2 * shards * own / all);
  return result;
}

ByZone loads_by_zone(const PlacementSnapshot& snapshot, const std::vector<NodeKey>& owners) {
  ByZone result;
  const auto zone_of = zone_names(snapshot);
  for (const auto& [key, zone] : zone_of) result[zone] += 0;
  for (const NodeKey owner : owners) result[zone_of.at(owner)] += 1;
  return result;
}

TEST(Zones, EachIsWithinOneShardOfItsShare) {
  Random random(1);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    const PlacementSnapshot snapshot = random_snapshot(random, {60, 1000, 4, random.between(1, 6)});
    for (const char* inner : {"least-shards", "weighted", "rendezvous", "ring"}) {
      const auto owners = applied(snapshot, zones(planner_named(inner))(snapshot));
      const ByZone expected = shares(snapshot);
      for (const auto& [zone, load] : loads_by_zone(snapshot, owners)) {
        ASSERT_LT(std::abs(load - expected.at(zone)), 1 + 1e-6) << "case " << i << " " << zone;
      }
    }
  }
}

TEST(Zones, InnerPlannerDecidesWithinAZone) {
  Random random(2);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    const PlacementSnapshot snapshot = random_snapshot(random, {40, 500, 1, 3});
    const auto owners = applied(snapshot, zones(planner_named("least-shards"))(snapshot));
    const auto zone_of = zone_names(snapshot);
    std::map<std::string, std::map<NodeKey, std::int64_t>> within;
    for (const auto& [key, load] : counts(snapshot, owners)) within[zone_of.at(key)][key] = load;
    for (const auto& [zone, loads] : within) ASSERT_LE(spread(loads), 1) << "case " << i;
  }
}

TEST(Zones, ExactOutcomes) {
  PlacementSnapshot snapshot;
  snapshot.nodes = {named_node(1, 1, "a"), named_node(2, 1, "a"), named_node(3, 1, "b"),
                    named_node(4, 1, "b"), named_node(5, 1, "b")};
  snapshot.owners.resize(12);
  snapshot.fixed.resize(12);
  snapshot.move_limit = 12;
  const Planner plan = zones(planner_named("least-shards"));
  using Loads = std::map<NodeKey, std::int64_t>;
  EXPECT_EQ(
      counts(snapshot, applied(snapshot, plan(snapshot))),
      (Loads{{NodeKey{1}, 3}, {NodeKey{2}, 3}, {NodeKey{3}, 2}, {NodeKey{4}, 2}, {NodeKey{5}, 2}}));
  // One node beside nine: twice its part of ten is the most that it gets.
  snapshot.nodes = {named_node(1, 1, "a")};
  for (std::uint64_t i = 2; i <= 10; ++i) snapshot.nodes.push_back(named_node(i, 1, "b"));
  snapshot.owners.assign(100, kNoNode);
  snapshot.fixed.assign(100, false);
  EXPECT_EQ(counts(snapshot, applied(snapshot, plan(snapshot))).at(NodeKey{1}), 20);
}

// What leaves a zone comes from its fullest node, so that the zone need not be levelled after.
TEST(Zones, ANewZoneCostsOnlyWhatItGets) {
  PlacementSnapshot snapshot;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    snapshot.nodes.push_back(named_node(i, 1, i <= 2 ? "a" : "b"));
    snapshot.owners.insert(snapshot.owners.end(), 30, NodeKey{i});
  }
  snapshot.fixed.resize(120);
  snapshot.move_limit = 120;
  snapshot.nodes.push_back(named_node(5, 1, "c"));
  snapshot.nodes.push_back(named_node(6, 1, "c"));
  const auto moves = zones(planner_named("least-shards"))(snapshot);
  EXPECT_EQ(moves.size(), 40U);
  for (const auto& [key, load] : counts(snapshot, applied(snapshot, moves))) EXPECT_EQ(load, 20);
}

}  // namespace
}  // namespace shardbus::placement
