// Clusters of two under each downing policy: what is left when a process dies, when a machine is
// lost without a word, and when only the link is cut. The table stands in bin/README.md.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kShards = 8;
constexpr int kOlder = 0;
constexpr int kYounger = 1;

enum class Fault : std::uint8_t { older_dies, younger_dies, older_lost, younger_lost, link_cut };

// What each of the two owns in the end; nothing also where it downed itself or is dead.
enum class Left : std::uint8_t { all, own, nothing };

struct Cell {
  downing::Rules rules;
  Fault fault;
  Left older;
  Left younger;
};

const downing::Rules kMajority{DowningPolicy::keep_majority};
const downing::Rules kTwo{DowningPolicy::static_quorum, 2};
const downing::Rules kOne{DowningPolicy::static_quorum, 1};
const downing::Rules kOldest{DowningPolicy::keep_oldest};
const downing::Rules kNone{DowningPolicy::down_all};

std::vector<Cell> table() {
  using enum Fault;
  using enum Left;
  return {{kMajority, older_dies, nothing, all},     {kMajority, younger_dies, all, nothing},
          {kMajority, older_lost, nothing, nothing}, {kMajority, younger_lost, own, nothing},
          {kMajority, link_cut, own, nothing},       {kTwo, older_dies, nothing, nothing},
          {kTwo, younger_dies, nothing, nothing},    {kTwo, older_lost, nothing, nothing},
          {kTwo, younger_lost, nothing, nothing},    {kTwo, link_cut, nothing, nothing},
          {kOne, older_dies, nothing, all},          {kOne, younger_dies, all, nothing},
          {kOne, older_lost, nothing, nothing},      {kOne, younger_lost, nothing, nothing},
          {kOne, link_cut, nothing, nothing},        {kOldest, older_dies, nothing, all},
          {kOldest, younger_dies, all, nothing},     {kOldest, older_lost, nothing, nothing},
          {kOldest, younger_lost, all, nothing},     {kOldest, link_cut, all, nothing},
          {kNone, older_dies, nothing, all},         {kNone, younger_dies, all, nothing},
          {kNone, older_lost, nothing, nothing},     {kNone, younger_lost, nothing, nothing},
          {kNone, link_cut, nothing, nothing}};
}

class TwoNodes : public testing::TestWithParam<std::size_t> {
 protected:
  static WorldConfig config(const downing::Rules& rules) {
    WorldConfig config;
    config.machines = 2;
    config.types = {HostedType{"cart", kShards}};
    config.downing = rules;
    config.overlap_allowed = false;  // of no policy, for these faults
    return config;
  }

  static void cut(World& world) {
    world.block(kOlder, kYounger);
    world.block(kYounger, kOlder);
  }

  static void harm(World& world, Fault fault) {
    const bool silent = fault == Fault::older_lost || fault == Fault::younger_lost;
    if (silent || fault == Fault::link_cut) cut(world);
    if (fault == Fault::older_dies || fault == Fault::older_lost) world.crash(kOlder);
    if (fault == Fault::younger_dies || fault == Fault::younger_lost) world.crash(kYounger);
  }

  static std::size_t owned(World& world, int machine) {
    const Node& node = world.node(machine);
    if (!node.running() || !node.control().status().in_cluster) return 0;
    return owned_shards(node.data()).size();
  }

  static std::size_t shards(Left left) {
    return left == Left::all ? kShards : left == Left::own ? kShards / 2 : 0;
  }
};

TEST_P(TwoNodes, AreLeftAsTheTableSays) {
  const Cell cell = table()[GetParam()];
  World world(config(cell.rules));
  world.start(kOlder, true);
  world.after(500ms, [&world] { world.start(kYounger, false); });
  ASSERT_TRUE(world.run_for(5s)) << *world.broken();
  ASSERT_EQ(world.unsettled(), "");
  harm(world, cell.fault);
  ASSERT_TRUE(world.run_for(8s)) << *world.broken();
  const std::string what = downing::to_text(cell.rules) + "\n" + world.state_text();
  EXPECT_EQ(owned(world, kOlder), shards(cell.older)) << what;
  EXPECT_EQ(owned(world, kYounger), shards(cell.younger)) << what;
}

INSTANTIATE_TEST_SUITE_P(Table, TwoNodes, testing::Range<std::size_t>(0, table().size()));

// A machine that comes back after a cut link joins the side that went on.
TEST_F(TwoNodes, HealAfterTheLinkWasCut) {
  for (const downing::Rules& rules : {kMajority, kOldest}) {
    World world(config(rules));
    world.start(kOlder, true);
    world.start(kYounger, false);
    ASSERT_TRUE(world.run_for(5s)) << *world.broken();
    cut(world);
    ASSERT_TRUE(world.run_for(8s)) << *world.broken();
    world.heal();
    ASSERT_TRUE(world.run_for(8s)) << *world.broken();
    EXPECT_EQ(world.unsettled(), "") << downing::to_text(rules);
  }
}

}  // namespace
}  // namespace shardbus::sim
