// least_shards against a naive oracle, on random snapshots.
#include "core/placement/least_shards.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "snapshots.hpp"

namespace shardbus::placement {
namespace {

constexpr std::uint64_t kCases = 3000;

constexpr Shape kSmall = {7, 60, 1, 1, true};

PlacementSnapshot random_snapshot(Random& random) {
  PlacementSnapshot snapshot = random_snapshot(random, kSmall);
  if (random.chance(0.5)) snapshot.move_limit = random.below(10);
  return snapshot;
}

void unbind(PlacementSnapshot& snapshot) {
  std::fill(snapshot.fixed.begin(), snapshot.fixed.end(), false);
  std::fill(snapshot.resting.begin(), snapshot.resting.end(), false);
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
    unbind(snapshot);
    for (NodeKey& owner : snapshot.owners) {
      if (owner == kNoNode || owner.value > 1000) owner = snapshot.nodes.front().key;
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
    unbind(snapshot);
    std::size_t rounds = 0;
    for (auto moves = least_shards(snapshot); !moves.empty(); moves = least_shards(snapshot)) {
      ASSERT_LE(++rounds, snapshot.owners.size() + 1) << "case " << i;
      snapshot.owners = applied(snapshot, moves);
    }
    ASSERT_LE(spread(counts(snapshot, snapshot.owners)), 1) << "case " << i;
  }
}

// Loads of nodes 1, 2, ... whose shards are numbered in that order.
PlacementSnapshot loaded(const std::vector<std::uint32_t>& loads) {
  PlacementSnapshot snapshot;
  snapshot.type = "cart";
  for (std::uint64_t i = 0; i < loads.size(); ++i) {
    snapshot.nodes.push_back(named_node(i + 1));
    snapshot.owners.insert(snapshot.owners.end(), loads[i], NodeKey{i + 1});
  }
  snapshot.fixed.resize(snapshot.owners.size());
  snapshot.move_limit = snapshot.owners.size();
  return snapshot;
}

std::string told(const std::vector<PlacementMove>& moves) {
  std::string out;
  for (const PlacementMove& move : moves) {
    out += (out.empty() ? "" : " ") + std::to_string(move.shard.value) + ":" +
           std::to_string(move.from.value) + ">" + std::to_string(move.to.value);
  }
  return out;
}

TEST(LeastShards, ExactOutcomes) {
  const std::vector<std::pair<std::vector<std::uint32_t>, std::string>> cases = {
      {{1, 2, 0}, "1:2>3"},
      {{1, 1, 0}, ""},
      {{2, 0, 0}, "0:1>2"},
      {{3, 0, 0}, "0:1>2 1:1>3"},
      {{4, 4, 0}, "0:1>3 4:2>3"},
      {{4, 4, 2}, "0:1>3"},
      {{5, 5, 0}, "0:1>3 5:2>3 1:1>3"},
      {{3, 2, 2}, ""},
      {{0, 4}, "0:2>1 1:2>1"},
      {{9, 0, 0}, "0:1>2 1:1>3 2:1>2 3:1>3 4:1>2 5:1>3"},
      {{5}, ""},
  };
  for (const auto& [loads, expected] : cases) {
    EXPECT_EQ(told(least_shards(loaded(loads))), expected);
  }
}

TEST(LeastShards, TheLimitTakesTheFirstMovesOfTheWholePlan) {
  Random random(4);
  for (std::uint64_t i = 0; i < kCases; ++i) {
    PlacementSnapshot snapshot = random_snapshot(random);
    const std::size_t limit = snapshot.move_limit;
    const auto some = least_shards(snapshot);
    snapshot.move_limit = snapshot.owners.size();
    auto all = least_shards(snapshot);
    std::size_t placed = 0;
    for (const PlacementMove& move : all) placed += move.from == kNoNode ? 1 : 0;
    all.resize(std::min(all.size(), placed + limit));
    ASSERT_EQ(some, all) << "case " << i;
  }
}

TEST(LeastShards, ARestingShardLeavesOnlyANodeThatMayNotOwnIt) {
  PlacementSnapshot snapshot = loaded({4, 0});
  snapshot.resting = {true, true, false, true};
  EXPECT_EQ(told(least_shards(snapshot)), "2:1>2");
  snapshot.nodes.erase(snapshot.nodes.begin());
  EXPECT_EQ(told(least_shards(snapshot)), "0:1>2 1:1>2 2:1>2 3:1>2");
}

TEST(LeastShards, WithoutRebalanceOnlyHomesAreGiven) {
  PlacementSnapshot snapshot = loaded({4, 0, 1});
  snapshot.rebalance = false;
  EXPECT_EQ(told(least_shards(snapshot)), "");
  snapshot.owners[0] = kNoNode;
  snapshot.nodes.pop_back();
  EXPECT_EQ(told(least_shards(snapshot)), "0:0>2 4:3>2");
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
