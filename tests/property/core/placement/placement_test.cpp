// least_shards against a naive oracle, on random snapshots.
#include "core/placement/least_shards.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.hpp"

namespace shardbus::placement {
namespace {

constexpr std::uint64_t kCases = 3000;

PlacementSnapshot random_snapshot(Random& random) {
  PlacementSnapshot snapshot;
  snapshot.type = "cart";
  const std::uint64_t nodes = random.between(1, 7);
  for (std::uint64_t i = 1; i <= nodes; ++i) {
    snapshot.nodes.push_back(PlacementNode{NodeKey{i}, random.below(5)});
  }
  const std::uint64_t shards = random.between(1, 60);
  for (std::uint64_t i = 0; i < shards; ++i) {
    // Nodes 8 and 9 are owners that may not own any more.
    snapshot.owners.push_back(NodeKey{random.chance(0.2) ? 0 : random.between(1, nodes)});
    if (random.chance(0.1)) snapshot.owners.back() = NodeKey{random.between(8, 9)};
    snapshot.fixed.push_back(random.chance(0.1));
  }
  snapshot.move_limit = random.chance(0.5) ? shards : random.below(10);
  return snapshot;
}

std::map<NodeKey, std::int64_t> counts(const PlacementSnapshot& snapshot,
                                       const std::vector<NodeKey>& owners) {
  std::map<NodeKey, std::int64_t> result;
  for (const PlacementNode& node : snapshot.nodes) result[node.key] = 0;
  for (const NodeKey owner : owners) {
    if (result.contains(owner)) ++result[owner];
  }
  return result;
}

std::vector<NodeKey> applied(const PlacementSnapshot& snapshot,
                             const std::vector<PlacementMove>& moves) {
  std::vector<NodeKey> owners = snapshot.owners;
  for (const PlacementMove& move : moves) {
    EXPECT_EQ(owners[move.shard.value], move.from);
    EXPECT_FALSE(snapshot.fixed[move.shard.value]);
    EXPECT_NE(move.from, move.to);
    owners[move.shard.value] = move.to;
  }
  return owners;
}

std::int64_t spread(const std::map<NodeKey, std::int64_t>& loads) {
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::max_element(loads.begin(), loads.end(), less)->second -
         std::min_element(loads.begin(), loads.end(), less)->second;
}

// Moves that any plan needs to level what is owned: each node above its share has to give.
std::int64_t moves_needed(const std::map<NodeKey, std::int64_t>& loads, std::int64_t total) {
  std::vector<std::int64_t> sorted;
  for (const auto& [key, load] : loads) sorted.push_back(load);
  std::sort(sorted.rbegin(), sorted.rend());
  const auto nodes = static_cast<std::int64_t>(sorted.size());
  std::int64_t needed = 0;
  for (std::int64_t i = 0; i < nodes; ++i) {
    const std::int64_t share = total / nodes + (i < total % nodes ? 1 : 0);
    needed += std::max<std::int64_t>(0, sorted[static_cast<std::size_t>(i)] - share);
  }
  return needed;
}

TEST(LeastShards, PlacesAllUnownedAndKeepsTheLimit) {
  Random random(1);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    const PlacementSnapshot snapshot = random_snapshot(random);
    const auto moves = least_shards(snapshot);
    std::size_t placed = 0;
    for (const PlacementMove& move : moves) placed += move.from == kNoNode ? 1 : 0;
    std::size_t unowned = 0;
    for (std::size_t s = 0; s < snapshot.owners.size(); ++s) {
      unowned += snapshot.owners[s] == kNoNode && !snapshot.fixed[s] ? 1 : 0;
    }
    ASSERT_EQ(placed, unowned) << "case " << i;
    ASSERT_LE(moves.size() - placed, snapshot.move_limit) << "case " << i;
    applied(snapshot, moves);
    ASSERT_EQ(moves, least_shards(snapshot)) << "case " << i;
  }
}

TEST(LeastShards, LevelsWithAsFewMovesAsCanBe) {
  Random random(2);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    PlacementSnapshot snapshot = random_snapshot(random);
    snapshot.move_limit = snapshot.owners.size();
    std::fill(snapshot.fixed.begin(), snapshot.fixed.end(), false);
    for (NodeKey& owner : snapshot.owners) {
      if (owner == kNoNode || owner.value > 7) owner = snapshot.nodes.front().key;
    }
    const auto moves = least_shards(snapshot);
    const auto total = static_cast<std::int64_t>(snapshot.owners.size());
    ASSERT_LE(spread(counts(snapshot, applied(snapshot, moves))), 1) << "case " << i;
    ASSERT_EQ(static_cast<std::int64_t>(moves.size()),
              moves_needed(counts(snapshot, snapshot.owners), total))
        << "case " << i;
  }
}

TEST(LeastShards, ComesToRestAndNeverMovesBack) {
  Random random(3);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    PlacementSnapshot snapshot = random_snapshot(random);
    snapshot.move_limit = std::max<std::size_t>(snapshot.move_limit, 1);
    std::fill(snapshot.fixed.begin(), snapshot.fixed.end(), false);
    std::size_t rounds = 0;
    for (auto moves = least_shards(snapshot); !moves.empty(); moves = least_shards(snapshot)) {
      ASSERT_LE(++rounds, snapshot.owners.size() + 1) << "case " << i;
      snapshot.owners = applied(snapshot, moves);
    }
    ASSERT_LE(spread(counts(snapshot, snapshot.owners)), 1) << "case " << i;
  }
}

TEST(LeastShards, NobodyToOwnGivesNoMoves) {
  PlacementSnapshot snapshot;
  snapshot.owners = {kNoNode, NodeKey{3}};
  snapshot.fixed = {false, false};
  snapshot.move_limit = 5;
  EXPECT_TRUE(least_shards(snapshot).empty());
}

TEST(LeastShards, TotalsOfOtherTypesBreakTies) {
  PlacementSnapshot snapshot;
  snapshot.nodes = {{NodeKey{1}, 4}, {NodeKey{2}, 1}};
  snapshot.owners = {kNoNode};
  snapshot.fixed = {false};
  const std::vector<PlacementMove> expected = {{ShardId{0}, kNoNode, NodeKey{2}}};
  EXPECT_EQ(least_shards(snapshot), expected);
}

}  // namespace
}  // namespace shardbus::placement
