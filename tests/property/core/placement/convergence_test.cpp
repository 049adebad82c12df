// All strategies: every plan is sound, repeats are equal, and plans under a limit come to rest.
#include <gtest/gtest.h>

#include "core/placement/planners.hpp"
#include "snapshots.hpp"

namespace shardbus::placement {
namespace {

struct Setup {
  const char* strategy;
  bool zones;
};

class Convergence : public testing::TestWithParam<Setup> {
 protected:
  PlacementSnapshot random_case(Random& random, bool fixed) const {
    PlacementSnapshot snapshot = random_snapshot(random, {100, 1000, 6, 5, fixed});
    snapshot.settings.strategy = GetParam().strategy;
    snapshot.settings.spread_zones = GetParam().zones;
    for (NodeKey& pin : snapshot.pins) {
      if (random.chance(0.02)) pin = NodeKey{random.between(1, 110)};
    }
    return snapshot;
  }
};

TEST_P(Convergence, HomesForAllThatMayHaveOne) {
  Random random(1);
  for (std::uint64_t i = 0; i < 100; ++i) {
    PlacementSnapshot snapshot = random_case(random, true);
    snapshot.move_limit = random.chance(0.5) ? 0 : snapshot.move_limit;
    snapshot.rebalance = random.chance(0.5);
    const auto moves = by_settings(snapshot);
    ASSERT_EQ(moves, by_settings(snapshot)) << "case " << i;
    const auto owners = applied(snapshot, moves);
    for (std::size_t shard = 0; shard < owners.size(); ++shard) {
      if (snapshot.fixed[shard]) continue;
      ASSERT_NE(owners[shard], kNoNode) << "case " << i;
      ASSERT_TRUE(owners[shard].value <= 1000 || snapshot.move_limit == 0) << "case " << i;
    }
  }
}

TEST_P(Convergence, ASecondPlanIsEmpty) {
  Random random(2);
  for (std::uint64_t i = 0; i < 100; ++i) {
    PlacementSnapshot snapshot = random_case(random, random.chance(0.5));
    snapshot.owners = applied(snapshot, by_settings(snapshot));
    ASSERT_TRUE(by_settings(snapshot).empty()) << "case " << i;
  }
}

// A round executes all that its plan says; no more rounds are needed than the limit asks for.
TEST_P(Convergence, ComesToRestInBoundedRounds) {
  Random random(3);
  for (std::uint64_t i = 0; i < 40; ++i) {
    PlacementSnapshot snapshot = random_case(random, false);
    const std::size_t whole = by_settings(snapshot).size();
    snapshot.move_limit = random.between(5, 100);
    const std::size_t bound = whole / snapshot.move_limit + 2;
    std::size_t rounds = 0;
    for (auto moves = by_settings(snapshot); !moves.empty(); moves = by_settings(snapshot)) {
      ASSERT_LE(++rounds, bound) << "case " << i;
      snapshot.owners = applied(snapshot, moves);
    }
  }
}

// Nodes come and go between the rounds; once they stop, so do the moves.
TEST_P(Convergence, ComesToRestAfterChurn) {
  Random random(4);
  for (std::uint64_t i = 0; i < 20; ++i) {
    PlacementSnapshot snapshot = random_case(random, false);
    snapshot.move_limit = 20;
    for (std::uint64_t round = 0; round < 20; ++round) {
      if (random.chance(0.5) && snapshot.nodes.size() > 1) {
        snapshot.nodes.erase(snapshot.nodes.begin());
      } else {
        snapshot.nodes.push_back(named_node(200 + round, 2, "zone-1"));
      }
      snapshot.owners = applied(snapshot, by_settings(snapshot));
    }
    std::size_t rounds = 0;
    for (auto moves = by_settings(snapshot); !moves.empty(); moves = by_settings(snapshot)) {
      ASSERT_LE(++rounds, snapshot.owners.size() / 20 + 2) << "case " << i;
      snapshot.owners = applied(snapshot, moves);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Convergence,
                         testing::Values(Setup{"least-shards", false}, Setup{"least-shards", true},
                                         Setup{"weighted", false}, Setup{"weighted", true},
                                         Setup{"rendezvous", false}, Setup{"rendezvous", true},
                                         Setup{"ring", false}, Setup{"ring", true}),
                         [](const testing::TestParamInfo<Setup>& setup) {
                           std::string name = setup.param.strategy;
                           std::erase(name, '-');
                           return name + (setup.param.zones ? "InZones" : "");
                         });

}  // namespace
}  // namespace shardbus::placement
