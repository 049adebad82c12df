// Rendezvous and ring: minimal moves, the same homes after a restart, fair shares on average.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/placement/planners.hpp"
#include "core/placement/ring.hpp"
#include "core/placement/score.hpp"
#include "snapshots.hpp"

namespace shardbus::placement {
namespace {

class Hashed : public testing::TestWithParam<const char*> {
 protected:
  Planner plan_ = planner_named(GetParam());

  // With every shard at home.
  PlacementSnapshot settled(PlacementSnapshot snapshot) const {
    snapshot.owners = applied(snapshot, plan_(snapshot));
    return snapshot;
  }
};

TEST_P(Hashed, ANodeThatJoinsOnlyTakes) {
  Random random(1);
  for (std::uint64_t i = 0; i < 200; ++i) {
    PlacementSnapshot snapshot = settled(random_snapshot(random, {100, 1000, 8}));
    const auto capacity = static_cast<std::uint32_t>(random.between(1, 8));
    snapshot.nodes.push_back(named_node(500 + i, capacity));
    for (const PlacementMove& move : plan_(snapshot)) {
      ASSERT_EQ(move.to, NodeKey{500 + i}) << "case " << i;
    }
  }
}

TEST_P(Hashed, ANodeThatLeavesOnlyGives) {
  Random random(2);
  for (std::uint64_t i = 0; i < 200; ++i) {
    PlacementSnapshot snapshot = settled(random_snapshot(random, {100, 1000, 8}));
    if (snapshot.nodes.size() < 2) continue;
    const auto gone = static_cast<std::ptrdiff_t>(random.below(snapshot.nodes.size()));
    const NodeKey key = snapshot.nodes[static_cast<std::size_t>(gone)].key;
    const auto had = std::count(snapshot.owners.begin(), snapshot.owners.end(), key);
    snapshot.nodes.erase(snapshot.nodes.begin() + gone);
    const auto moves = plan_(snapshot);
    ASSERT_EQ(moves.size(), static_cast<std::size_t>(had)) << "case " << i;
    for (const PlacementMove& move : moves) ASSERT_EQ(move.from, key) << "case " << i;
  }
}

TEST_P(Hashed, AStrongerNodeOnlyTakes) {
  Random random(3);
  for (std::uint64_t i = 0; i < 200; ++i) {
    PlacementSnapshot snapshot = settled(random_snapshot(random, {50, 1000, 8}));
    const std::size_t grown = random.below(snapshot.nodes.size());
    snapshot.nodes[grown].traits.capacity += 3;
    for (const PlacementMove& move : plan_(snapshot)) {
      ASSERT_EQ(move.to, snapshot.nodes[grown].key) << "case " << i;
    }
  }
}

TEST_P(Hashed, ARestartedNodeGetsTheSameShards) {
  Random random(4);
  for (std::uint64_t i = 0; i < 200; ++i) {
    PlacementSnapshot snapshot = settled(random_snapshot(random, {50, 500, 8}));
    PlacementSnapshot after = snapshot;
    // A restart gives a new key and makes it the youngest.
    const NodeKey old = after.nodes.front().key;
    after.nodes.front().key = NodeKey{700};
    std::rotate(after.nodes.begin(), after.nodes.begin() + 1, after.nodes.end());
    std::replace(after.owners.begin(), after.owners.end(), old, kNoNode);
    std::replace(snapshot.owners.begin(), snapshot.owners.end(), old, NodeKey{700});
    ASSERT_EQ(applied(after, plan_(after)), snapshot.owners) << "case " << i;
  }
}

// Every home is drawn for itself: the average over many types comes near to the share.
TEST_P(Hashed, LoadsAreInProportionOnAverage) {
  std::map<NodeKey, double> loads;
  constexpr int kTypes = 60;
  constexpr std::uint32_t kShards = 1000;
  for (int type = 0; type < kTypes; ++type) {
    PlacementSnapshot snapshot;
    snapshot.type = "type-" + std::to_string(type);
    snapshot.nodes = {named_node(1, 1), named_node(2, 2), named_node(3, 4), named_node(4, 8)};
    snapshot.owners.resize(kShards);
    snapshot.fixed.resize(kShards);
    for (const NodeKey owner : applied(snapshot, plan_(snapshot))) loads[owner] += 1.0 / kTypes;
  }
  // The points of a ring are drawn once, 64 per unit of capacity.
  for (std::uint64_t i = 1; i <= 4; ++i) {
    const double share = kShards * std::pow(2.0, static_cast<double>(i - 1)) / 15;
    EXPECT_NEAR(loads[NodeKey{i}], share, 0.3 * share) << "node " << i;
  }
}

TEST_P(Hashed, TheLimitTakesTheFirstMovesOfTheWholePlan) {
  Random random(5);
  for (std::uint64_t i = 0; i < 200; ++i) {
    PlacementSnapshot snapshot = random_snapshot(random, {20, 200, 1, 1, true});
    auto all = plan_(snapshot);
    std::size_t placed = 0;
    for (const PlacementMove& move : all) placed += move.from == kNoNode ? 1 : 0;
    snapshot.move_limit = random.below(20);
    all.resize(std::min(all.size(), placed + snapshot.move_limit));
    ASSERT_EQ(plan_(snapshot), all) << "case " << i;
  }
}

TEST_P(Hashed, NobodyToOwnGivesNoMoves) {
  PlacementSnapshot snapshot;
  snapshot.owners = {kNoNode, NodeKey{3}};
  snapshot.fixed = {false, false};
  snapshot.move_limit = 5;
  EXPECT_TRUE(plan_(snapshot).empty());
}

INSTANTIATE_TEST_SUITE_P(Strategies, Hashed, testing::Values("rendezvous", "ring"));

// The oracle walks the ring point by point.
TEST(Ring, AShardIsAtTheNextPoint) {
  Random random(6);
  for (std::uint64_t i = 0; i < 30; ++i) {
    const PlacementSnapshot snapshot = random_snapshot(random, {12, 60, 3});
    const auto owners = applied(snapshot, ring(snapshot));
    for (std::uint32_t shard = 0; shard < owners.size(); ++shard) {
      const std::uint64_t at = hash_of_shard(fnv1a64(snapshot.type), shard);
      std::uint64_t nearest = ~std::uint64_t{0};
      NodeKey home;
      for (const PlacementNode& node : snapshot.nodes) {
        for (std::uint32_t point = 0; point < kRingPoints * node.traits.capacity; ++point) {
          const std::uint64_t distance = hash_of_shard(hash_of(node), point) - at;
          if (distance >= nearest) continue;
          nearest = distance;
          home = node.key;
        }
      }
      ASSERT_EQ(owners[shard], home) << "case " << i << " shard " << shard;
    }
  }
}

// Upgrades must not shuffle a running cluster.
TEST(Score, NeverChanges) {
  EXPECT_EQ(hash_of(named_node(1)), 1411048690986509909U);
  EXPECT_EQ(hash_of_shard(fnv1a64("cart"), 7), 5510967658768413511U);
}

}  // namespace
}  // namespace shardbus::placement
