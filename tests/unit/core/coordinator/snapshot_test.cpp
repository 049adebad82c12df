// What a strategy is shown, and when it may level. The coordinator's life is in tests/golden.
#include <gtest/gtest.h>

#include "core/coordinator/coordinator.hpp"

namespace shardbus::coordinator {
namespace {

using namespace std::chrono_literals;

constexpr NodeKey kSelf{1};

Peer peer(std::uint64_t number, PlacementSettings settings = {}) {
  Peer made;
  made.key = NodeKey{number};
  made.name = "node-" + std::to_string(number);
  made.hosts = {HostedType{"cart", 4, std::move(settings)}};
  made.traits.version = "1.0.0";
  return made;
}

// What the planner of an active coordinator is shown.
PlacementSnapshot shown(const std::vector<Peer>& peers) {
  PlacementSnapshot last;
  Config config;
  config.self = kSelf;
  config.planner = [&last](const PlacementSnapshot& snapshot) {
    last = snapshot;
    return std::vector<PlacementMove>{};
  };
  Coordinator coordinator(config);
  const Time now = Time{} + 1s;
  coordinator.step(now, View{peers});
  coordinator.step(now, Decide{Term{1}, {}});
  coordinator.step(now, Tick{});
  for (const Peer& reporter : peers) {
    coordinator.step(now, RegionReport{Term{1}, kSelf, reporter.key, {}});
  }
  coordinator.step(now, Tick{});
  return last;
}

TEST(Snapshot, TellsNamesTraitsAndTheTypesSettings) {
  Peer first = peer(1, {"weighted", "", true});
  first.traits.zone = "north";
  first.traits.capacity = 7;
  const PlacementSnapshot snapshot = shown({first, peer(2, {"weighted", "", true})});
  EXPECT_EQ(snapshot.settings, (PlacementSettings{"weighted", "", true}));
  ASSERT_EQ(snapshot.nodes.size(), 2U);
  EXPECT_EQ(snapshot.nodes[0].name, "node-1");
  EXPECT_EQ(snapshot.nodes[0].traits, first.traits);
  EXPECT_EQ(snapshot.nodes[1].name, "node-2");
}

TEST(Snapshot, OfTwoSettingsThoseOfTheOldestCount) {
  const PlacementSnapshot snapshot = shown({peer(1, {"ring"}), peer(2, {"weighted"})});
  EXPECT_EQ(snapshot.settings.strategy, "ring");
  EXPECT_EQ(snapshot.nodes.size(), 2U);
}

TEST(Snapshot, OnlyNodesOfTheRoleMayOwn) {
  Peer able = peer(2, {"least-shards", "web"});
  able.traits.roles = {"batch", "web"};
  const PlacementSnapshot snapshot =
      shown({peer(1, {"least-shards", "web"}), able, peer(3, {"least-shards", "web"})});
  // The oldest says what the settings are, also where it lacks the role itself.
  EXPECT_EQ(snapshot.settings.role, "web");
  ASSERT_EQ(snapshot.nodes.size(), 1U);
  EXPECT_EQ(snapshot.nodes[0].key, NodeKey{2});
}

TEST(Snapshot, LevelsOnlyInASettledClusterOfOneVersion) {
  EXPECT_TRUE(shown({peer(1), peer(2), peer(3)}).rebalance);
  Peer other = peer(3);
  other.traits.version = "1.1.0";
  EXPECT_FALSE(shown({peer(1), peer(2), other}).rebalance);
  other.traits.version = "";  // older than versions in digests
  EXPECT_FALSE(shown({peer(1), peer(2), other}).rebalance);
  Peer away = peer(3);
  away.reachable = false;
  EXPECT_FALSE(shown({peer(1), peer(2), away}).rebalance);
  Peer joining = peer(3);
  joining.state = MemberState::joining;
  EXPECT_FALSE(shown({peer(1), peer(2), joining}).rebalance);
}

}  // namespace
}  // namespace shardbus::coordinator
