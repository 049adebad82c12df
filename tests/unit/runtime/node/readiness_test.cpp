// Whether a node waits for shards of its own before it calls itself ready.
#include "runtime/node/readiness.hpp"

#include <gtest/gtest.h>

namespace shardbus::runtime {
namespace {

// Node b beside node a, which owns all four shards.
class ReadinessTest : public testing::Test {
 protected:
  ReadinessTest() {
    view_.status.in_cluster = true;
    view_.status.coordinator = NodeKey{1};
    view_.status.counted = true;
    for (const std::uint64_t key : {1, 2}) {
      control::MemberStatus member;
      member.member.node.key = NodeKey{key};
      member.member.node.name = key == 1 ? "a" : "b";
      member.traits.version = "0.1.0";
      view_.status.members.push_back(member);
    }
    view_.status.self = view_.status.members[1].member.node;
    view_.hosts = {HostedType{"cart", 4}};
    table_.types = {TypeTable{"cart", 4, std::vector<TableEntry>(4, TableEntry{NodeKey{1}, {}})}};
  }

  [[nodiscard]] bool waits() {
    view_.table = std::make_shared<const AllocationTable>(table_);
    const std::string why = why_not_ready(view_, 2);
    EXPECT_TRUE(why.empty() || why == "this node has no shard of cart yet") << why;
    return !why.empty();
  }

  ClusterView view_;
  AllocationTable table_;
};

TEST_F(ReadinessTest, ANodeWaitsForItsShare) {
  EXPECT_TRUE(waits());
  table_.types[0].entries[3].owner = NodeKey{2};
  EXPECT_FALSE(waits());
}

TEST_F(ReadinessTest, NotWhileVersionsDiffer) {
  view_.status.members[0].traits.version = "0.2.0";
  EXPECT_FALSE(waits());
}

TEST_F(ReadinessTest, ByWeightOnlyForAWholeShard) {
  view_.hosts[0].placement.strategy = "weighted";
  EXPECT_TRUE(waits());
  view_.status.members[0].traits.capacity = 3;
  EXPECT_TRUE(waits());
  view_.status.members[0].traits.capacity = 4;
  EXPECT_FALSE(waits());
}

TEST_F(ReadinessTest, NotOfATypeThatIsPinnedOrPlacedByHash) {
  table_.orders.pins = {Pin{{"cart", ShardId{0}}, "a"}};
  EXPECT_FALSE(waits());
  table_.orders.pins.clear();
  for (const char* strategy : {"rendezvous", "ring"}) {
    view_.hosts[0].placement.strategy = strategy;
    EXPECT_FALSE(waits()) << strategy;
  }
}

TEST_F(ReadinessTest, NotWithoutTheRoleNorWithZones) {
  view_.hosts[0].placement.role = "web";
  EXPECT_FALSE(waits());
  view_.status.members[1].traits.roles = {"web"};
  EXPECT_TRUE(waits());
  view_.hosts[0].placement.spread_zones = true;
  EXPECT_FALSE(waits());
}

TEST_F(ReadinessTest, NotWhereAnOperatorHoldsMovesUp) {
  table_.orders.suspended = true;
  EXPECT_FALSE(waits());
  table_.orders.suspended = false;
  table_.orders.cordoned = {"b"};
  EXPECT_FALSE(waits());
  table_.orders.cordoned.clear();
  table_.orders.draining = {"b"};
  EXPECT_FALSE(waits());
}

}  // namespace
}  // namespace shardbus::runtime
