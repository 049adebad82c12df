// What stands before a strategy: pins, roles, and the choice by a type's settings.
#include <gtest/gtest.h>

#include "core/placement/least_shards.hpp"
#include "core/placement/pinned.hpp"
#include "core/placement/planners.hpp"
#include "core/placement/roles.hpp"
#include "snapshots.hpp"

namespace shardbus::placement {
namespace {

constexpr std::uint64_t kCases = 300;
constexpr const char* kNames[] = {"least-shards", "rendezvous", "weighted", "ring"};

PlacementSnapshot random_settings(Random& random, bool fixed) {
  PlacementSnapshot snapshot = random_snapshot(random, {30, 300, 5, 4, fixed});
  snapshot.settings.strategy = kNames[random.below(4)];
  snapshot.settings.spread_zones = random.chance(0.5);
  return snapshot;
}

TEST(Pinned, PinsAreHonouredUnderEveryStrategy) {
  Random random(1);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    PlacementSnapshot snapshot = random_settings(random, true);
    snapshot.rebalance = random.chance(0.5);
    for (NodeKey& pin : snapshot.pins) {
      // Some name a node that is not there, or not yet.
      if (random.chance(0.3)) pin = NodeKey{random.between(1, snapshot.nodes.size() + 5)};
    }
    const auto owners = applied(snapshot, by_settings(snapshot));
    for (std::size_t shard = 0; shard < owners.size(); ++shard) {
      const bool there = snapshot.pins[shard].value <= snapshot.nodes.size();
      if (snapshot.pins[shard] == kNoNode || !there || snapshot.fixed[shard]) continue;
      ASSERT_EQ(owners[shard], snapshot.pins[shard]) << "case " << i << " shard " << shard;
    }
  }
}

TEST(Pinned, APinTakesEffectWhenItsNodeJoins) {
  PlacementSnapshot snapshot;
  snapshot.nodes = {named_node(1), named_node(2)};
  snapshot.owners.resize(4);
  snapshot.fixed.resize(4);
  snapshot.pins = {kNoNode, NodeKey{3}, kNoNode, kNoNode};
  snapshot.move_limit = 4;
  const Planner plan = pinned(least_shards);
  snapshot.owners = applied(snapshot, plan(snapshot));
  EXPECT_EQ(spread(counts(snapshot, snapshot.owners)), 0);
  snapshot.nodes.push_back(named_node(3));
  const auto moves = plan(snapshot);
  ASSERT_EQ(moves.size(), 1U);
  EXPECT_EQ(moves.front().to, NodeKey{3});
  EXPECT_EQ(moves.front().shard, ShardId{1});
}

TEST(Pinned, OthersMakeRoomForWhatIsPinned) {
  PlacementSnapshot snapshot;
  snapshot.nodes = {named_node(1), named_node(2)};
  snapshot.owners.resize(6);
  snapshot.fixed.resize(6);
  snapshot.pins.assign(6, kNoNode);
  for (std::size_t i = 0; i < 3; ++i) snapshot.pins[i] = NodeKey{2};
  const auto owners = applied(snapshot, pinned(least_shards)(snapshot));
  for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(owners[i], NodeKey{1});
}

TEST(Pinned, TheLimitHoldsForPinsToo) {
  PlacementSnapshot snapshot;
  snapshot.nodes = {named_node(1), named_node(2)};
  snapshot.owners.assign(6, NodeKey{1});
  snapshot.fixed.resize(6);
  snapshot.pins.assign(6, NodeKey{2});
  snapshot.move_limit = 2;
  EXPECT_EQ(pinned(least_shards)(snapshot).size(), 2U);
}

TEST(Roles, OnlyNodesOfTheRoleOwn) {
  Random random(2);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    PlacementSnapshot snapshot = random_settings(random, false);
    snapshot.settings.role = "worker";
    std::size_t able = 0;
    for (PlacementNode& node : snapshot.nodes) {
      if (random.chance(0.5)) continue;
      node.traits.roles = {"edge", "worker"};
      ++able;
    }
    const auto moves = by_settings(snapshot);
    ASSERT_TRUE(able > 0 || moves.empty()) << "case " << i;
    if (able == 0) continue;
    for (const NodeKey owner : applied(snapshot, moves)) {
      ASSERT_TRUE(has_role(snapshot.nodes.at(owner.value - 1).traits, "worker")) << "case " << i;
    }
  }
}

TEST(BySettings, NamesTheStrategy) {
  Random random(3);
  for (const char* name : kNames) {
    PlacementSnapshot snapshot = random_snapshot(random, {30, 300, 5, 4});
    snapshot.settings.strategy = name;
    EXPECT_EQ(by_settings(snapshot), planner_named(name)(snapshot)) << name;
  }
  EXPECT_FALSE(planner_named("best"));
  PlacementSnapshot snapshot = random_snapshot(random, {30, 300, 5, 4});
  snapshot.settings.strategy = "of a newer version";
  EXPECT_EQ(by_settings(snapshot), least_shards(snapshot));
}

// A node within its share gives nothing while a fuller one only rests: it would get it back.
TEST(Resting, HoldsUpOthersWhoWouldGiveTheirShare) {
  PlacementSnapshot snapshot;
  snapshot.type = "cart";
  for (const std::uint64_t key : {1, 2, 3}) snapshot.nodes.push_back(PlacementNode{NodeKey{key}});
  for (std::uint32_t i = 0; i < 12; ++i) {
    snapshot.owners.push_back(NodeKey{i < 6 ? 1U : 2U});
    snapshot.resting.push_back(i >= 6);
  }
  snapshot.move_limit = 12;
  EXPECT_EQ(least_shards(snapshot).size(), 2U) << "one keeps its four of twelve";
  snapshot.resting.assign(12, false);
  EXPECT_EQ(least_shards(snapshot).size(), 4U);
}

}  // namespace
}  // namespace shardbus::placement
