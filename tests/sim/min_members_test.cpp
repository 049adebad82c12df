// min_members: nothing is given out before so many members are up; later, what had an owner once
// gets another one, however few are left (scenario H023).
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kShards = 12;

class MinMembers : public testing::Test {
 protected:
  static WorldConfig config() {
    WorldConfig config;
    config.machines = 4;
    config.types = {HostedType{"cart", kShards}};
    config.min_members = 3;
    return config;
  }

  std::size_t owned() {
    std::size_t sum = 0;
    for (int i = 0; i < world_.machines(); ++i) {
      if (world_.node(i).running()) sum += owned_shards(world_.node(i).data()).size();
    }
    return sum;
  }

  int coordinator() {
    for (int i = 0; i < world_.machines(); ++i) {
      const Node& node = world_.node(i);
      if (node.running() && node.control().authority() != Authority::none) return i;
    }
    return -1;
  }

  World world_{config()};
};

TEST_F(MinMembers, TheFirstAllocationWaitsAndSaysSo) {
  world_.start(0, true);
  ASSERT_TRUE(world_.run_for(3s)) << *world_.broken();
  EXPECT_EQ(owned(), 0U);
  EXPECT_EQ(world_.node(0).control().status().held_back,
            "below minimum members: 1 of 3, not allocating");
  world_.start(1, false);
  ASSERT_TRUE(world_.run_for(3s)) << *world_.broken();
  EXPECT_EQ(owned(), 0U);
  EXPECT_EQ(world_.node(1).control().status().held_back,
            "below minimum members: 2 of 3, not allocating");
  world_.start(2, false);
  ASSERT_TRUE(world_.run_for(3s)) << *world_.broken();
  EXPECT_EQ(owned(), kShards);
  EXPECT_EQ(world_.node(0).control().status().held_back, "");
}

TEST_F(MinMembers, TwoCoordinatorsDieAndTheRestStillRunsEverything) {
  world_.start(0, true);
  for (int i = 1; i < 4; ++i) world_.start(i, false);
  ASSERT_TRUE(world_.run_for(5s)) << *world_.broken();
  ASSERT_EQ(world_.unsettled(), "");
  for (int death = 0; death < 2; ++death) {
    ASSERT_GE(coordinator(), 0);
    world_.crash(coordinator());
    ASSERT_TRUE(world_.run_for(5s)) << *world_.broken();
  }
  EXPECT_EQ(owned(), kShards);
  ASSERT_GE(coordinator(), 0);
  EXPECT_EQ(world_.node(coordinator()).control().status().held_back, "");
  // A new type is not given out by two, and is when a third one is there again.
  const std::vector<HostedType> more{{"cart", kShards}, {"user", 4}};
  for (int i = 0; i < 4; ++i) world_.host(i, more);
  ASSERT_TRUE(world_.run_for(2s)) << *world_.broken();
  EXPECT_EQ(world_.node(coordinator()).control().status().held_back,
            "below minimum members: 2 of 3, not allocating");
}

}  // namespace
}  // namespace shardbus::sim
