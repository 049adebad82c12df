// weighted against the shares that arithmetic gives.
#include "core/placement/weighted.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/placement/least_shards.hpp"
#include "snapshots.hpp"

namespace shardbus::placement {
namespace {

constexpr std::uint64_t kCases = 300;

double share_of(const PlacementSnapshot& snapshot, std::size_t node) {
  double all = 0;
  for (const PlacementNode& other : snapshot.nodes) all += other.traits.capacity;
  return static_cast<double>(snapshot.owners.size()) * snapshot.nodes[node].traits.capacity / all;
}

TEST(Weighted, EveryNodeIsWithinOneShardOfItsShare) {
  Random random(1);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    const std::uint64_t capacity_max = random.chance(0.5) ? 8 : 1000;
    const PlacementSnapshot snapshot = random_snapshot(random, {100, 1000, capacity_max});
    const auto owners = applied(snapshot, weighted(snapshot));
    const auto loads = counts(snapshot, owners);
    for (std::size_t node = 0; node < snapshot.nodes.size(); ++node) {
      const auto load = static_cast<double>(loads.at(snapshot.nodes[node].key));
      ASSERT_LT(std::abs(load - share_of(snapshot, node)), 1) << "case " << i << " node " << node;
    }
  }
}

// Whoever gives is above its share at every step, and whoever gets is below: no move is in vain.
TEST(Weighted, MovesOnlyFromAboveToBelow) {
  Random random(2);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    PlacementSnapshot snapshot = random_snapshot(random, {30, 300, 20});
    for (NodeKey& owner : snapshot.owners) {
      if (owner == kNoNode || owner.value > 1000) owner = snapshot.nodes.front().key;
    }
    auto loads = counts(snapshot, snapshot.owners);
    for (const PlacementMove& move : weighted(snapshot)) {
      const double from = share_of(snapshot, move.from.value - 1);
      const double to = share_of(snapshot, move.to.value - 1);
      ASSERT_GT(static_cast<double>(loads[move.from]--), from) << "case " << i;
      ASSERT_LT(static_cast<double>(loads[move.to]++), to) << "case " << i;
    }
  }
}

TEST(Weighted, EqualCapacitiesAreLeastShards) {
  Random random(3);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    PlacementSnapshot snapshot = random_snapshot(random, {50, 500, 1, 1, true});
    const auto expected = least_shards(snapshot);
    for (PlacementNode& node : snapshot.nodes) node.traits.capacity = 7;
    ASSERT_EQ(weighted(snapshot), expected) << "case " << i;
  }
}

TEST(Weighted, ExactShares) {
  PlacementSnapshot snapshot;
  snapshot.nodes = {named_node(1, 1), named_node(2, 2), named_node(3, 5)};
  snapshot.owners.resize(16);
  snapshot.fixed.resize(16);
  snapshot.move_limit = 16;
  const auto loads = counts(snapshot, applied(snapshot, weighted(snapshot)));
  EXPECT_EQ(loads,
            (std::map<NodeKey, std::int64_t>{{NodeKey{1}, 2}, {NodeKey{2}, 4}, {NodeKey{3}, 10}}));
}

}  // namespace
}  // namespace shardbus::placement
