// When a sender may send, to whom, and when it has to fence: rules 14 to 19 of handoff.
#include "core/delivery/route.hpp"

#include <gtest/gtest.h>

namespace shardbus::core {
namespace {

constexpr NodeKey kA{1};
constexpr NodeKey kB{2};
constexpr NodeKey kC{3};

Generation gen(std::uint64_t counter) {
  return {Term{1}, NodeKey{9}, counter};
}
TableEntry entry(NodeKey owner, std::uint64_t counter) {
  return {owner, gen(counter)};
}

class RouteTest : public testing::Test {
 protected:
  // Sent to A at generation 1 before.
  void use_a() {
    (void)route_.on_entry(entry(kA, 1));
    route_.sent();
  }
  void expect_open(NodeKey via, std::uint64_t counter) {
    EXPECT_TRUE(route_.may_send());
    EXPECT_EQ(route_.via(), via);
    EXPECT_EQ(route_.generation(), gen(counter));
    EXPECT_EQ(route_.fence_id(), 0U);
  }
  static void expect(Route::Step step, bool release, bool fence) {
    EXPECT_EQ(step.release, release);
    EXPECT_EQ(step.send_fence, fence);
  }
  Route route_;
};

TEST_F(RouteTest, NothingKnownHolds) {
  EXPECT_FALSE(route_.may_send());
  EXPECT_EQ(route_.via(), kNoNode);
}

TEST_F(RouteTest, Rule14NeverSentGoesDirect) {
  expect(route_.on_entry(entry(kA, 1)), true, false);
  expect_open(kA, 1);
  expect(route_.on_entry(entry(kB, 2)), true, false);
  expect_open(kB, 2);
}

TEST_F(RouteTest, Rule14SameTargetTakesTheNewGeneration) {
  use_a();
  expect(route_.on_entry(entry(kA, 2)), true, false);
  expect_open(kA, 2);
}

TEST_F(RouteTest, Rule14EveryChangeOfRouteFences) {
  use_a();
  expect(route_.on_entry(entry(kB, 2)), false, true);
  EXPECT_FALSE(route_.may_send());
  EXPECT_EQ(route_.via(), kA);
  EXPECT_EQ(route_.owner(), kB);
  EXPECT_NE(route_.fence_id(), 0U);
}

TEST_F(RouteTest, OldAndRepeatedEntriesAreIgnored) {
  use_a();
  (void)route_.on_entry(entry(kA, 5));
  expect(route_.on_entry(entry(kB, 4)), false, false);
  expect(route_.on_entry(entry(kA, 5)), false, false);
  expect_open(kA, 5);
}

TEST_F(RouteTest, Rule16AnswerOfTheNamedGenerationReleases) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  expect(route_.on_fence_ok(route_.fence_id(), kB, gen(2)), true, false);
  expect_open(kB, 2);
}

TEST_F(RouteTest, Rule16NewerAnswerReleasesToItsAnswerer) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  expect(route_.on_fence_ok(route_.fence_id(), kC, gen(3)), true, false);
  expect_open(kC, 3);
  EXPECT_EQ(route_.owner(), kC);
  expect(route_.on_entry(entry(kB, 2)), false, false);
}

TEST_F(RouteTest, Rule16OlderAnswerFencesAgainFromTheAnswerer) {
  use_a();
  (void)route_.on_entry(entry(kC, 3));
  const std::uint64_t first = route_.fence_id();
  expect(route_.on_fence_ok(first, kB, gen(2)), false, true);
  EXPECT_EQ(route_.via(), kB);
  EXPECT_NE(route_.fence_id(), first);
  expect(route_.on_fence_ok(first, kC, gen(3)), false, false);  // of the first fence
  expect(route_.on_fence_ok(route_.fence_id(), kC, gen(3)), true, false);
  expect_open(kC, 3);
}

TEST_F(RouteTest, Rule16OlderAnswerOfTheSameNodeWaitsForTheTimer) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  const std::uint64_t id = route_.fence_id();
  expect(route_.on_fence_ok(id, kA, gen(1)), false, false);
  EXPECT_EQ(route_.fence_id(), id);
  EXPECT_FALSE(route_.may_send());
}

TEST_F(RouteTest, Rule16OtherIdsAreIgnored) {
  use_a();
  expect(route_.on_fence_ok(1, kB, gen(2)), false, false);
  (void)route_.on_entry(entry(kB, 2));
  expect(route_.on_fence_ok(route_.fence_id() + 1, kB, gen(2)), false, false);
  expect(route_.on_path_lost(route_.fence_id() + 1), false, false);
  EXPECT_FALSE(route_.may_send());
}

TEST_F(RouteTest, Rule17NewerEntryDuringAHoldFencesAnewTheSameWay) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  const std::uint64_t first = route_.fence_id();
  expect(route_.on_entry(entry(kC, 3)), false, true);
  EXPECT_NE(route_.fence_id(), first);
  EXPECT_EQ(route_.via(), kA);
  EXPECT_EQ(route_.owner(), kC);
}

TEST_F(RouteTest, Rule17AlsoWhenTheOwnerIsTheOldWayAgain) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  expect(route_.on_entry(entry(kA, 3)), false, true);  // H1: what B forwards may come later
  EXPECT_FALSE(route_.may_send());
  expect(route_.on_fence_ok(route_.fence_id(), kA, gen(3)), true, false);
  expect_open(kA, 3);
}

TEST_F(RouteTest, Rule18PathLostReleasesToTheOwner) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  expect(route_.on_path_lost(route_.fence_id()), true, false);
  expect_open(kB, 2);
}

TEST_F(RouteTest, Rule18WayDeadReleasesToTheOwner) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  expect(route_.on_dead(kA), true, false);
  expect_open(kB, 2);
}

TEST_F(RouteTest, DeadOwnerHoldsUntilTheNextEntry) {
  use_a();
  expect(route_.on_dead(kA), false, false);
  EXPECT_FALSE(route_.may_send());
  expect(route_.on_entry(entry(kB, 2)), true, false);
  expect_open(kB, 2);
}

TEST_F(RouteTest, OthersDeathChangesNothing) {
  use_a();
  expect(route_.on_dead(kB), false, false);
  expect(route_.on_dead(kNoNode), false, false);
  expect_open(kA, 1);
}

TEST_F(RouteTest, DeadTargetOfAFenceIsNotFollowed) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  (void)route_.on_dead(kB);
  // A has forgotten the shard and repeats what the fence said.
  expect(route_.on_fence_ok(route_.fence_id(), kB, gen(2)), false, false);
  EXPECT_FALSE(route_.may_send());
  expect(route_.on_entry(entry(kC, 3)), true, false);
  expect_open(kC, 3);
}

TEST_F(RouteTest, Rule18LinkResetSendsTheSameFence) {
  use_a();
  expect(route_.on_link_reset(kA), false, false);
  (void)route_.on_entry(entry(kB, 2));
  const std::uint64_t id = route_.fence_id();
  expect(route_.on_link_reset(kB), false, false);
  expect(route_.on_link_reset(kA), false, true);
  EXPECT_EQ(route_.fence_id(), id);
}

TEST_F(RouteTest, StartViaFencesTheFirstEntry) {
  route_.start_via(kC);
  EXPECT_TRUE(route_.may_send());
  EXPECT_EQ(route_.via(), kC);
  EXPECT_FALSE(route_.generation().known());
  expect(route_.on_entry(entry(kA, 1)), false, true);
  EXPECT_EQ(route_.via(), kC);
  expect(route_.on_fence_ok(route_.fence_id(), kA, gen(1)), true, false);
  expect_open(kA, 1);
}

// What was sent there without a generation takes that node's own route, and may be behind a fence.
TEST_F(RouteTest, StartViaTheOwnerIsFencedToo) {
  route_.start_via(kA);
  EXPECT_FALSE(route_.stamp().known());
  expect(route_.on_entry(entry(kA, 1)), false, true);
  expect(route_.on_fence_ok(route_.fence_id(), kA, gen(1)), true, false);
  expect_open(kA, 1);
  EXPECT_EQ(route_.stamp(), gen(1));
}

TEST_F(RouteTest, AnOwnerThatCannotBeReachedIsServedThroughAnotherNodeUntilItCan) {
  (void)route_.on_entry(entry(kA, 1));
  route_.start_via(kC);
  route_.sent();
  expect(route_.on_way_open(kB), false, false);
  expect(route_.on_way_open(kA), false, true);
  EXPECT_EQ(route_.via(), kC);
  expect(route_.on_fence_ok(route_.fence_id(), kA, gen(1)), true, false);
  expect_open(kA, 1);
  expect(route_.on_way_open(kA), false, false);
}

TEST_F(RouteTest, AnAnswererThatCannotBeReachedIsNoWay) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  expect(route_.on_fence_ok(route_.fence_id(), kB, gen(2), false), true, false);
  EXPECT_FALSE(route_.used()) << "what was sent has arrived, and nothing is under way through B";
  expect(route_.on_entry(entry(kC, 3)), true, false);
  expect_open(kC, 3);
}

TEST_F(RouteTest, AnOvertakenAnswererThatCannotBeReachedIsNoWayEither) {
  use_a();
  (void)route_.on_entry(entry(kC, 3));
  const std::uint64_t id = route_.fence_id();
  expect(route_.on_fence_ok(id, kB, gen(2), false), false, false);
  EXPECT_EQ(route_.via(), kA);
  EXPECT_EQ(route_.fence_id(), id);
  expect(route_.on_fence_ok(id, kC, gen(3)), true, false);
}

// B answers while it still receives; then it dies, and its coordinator with it, and C goes on.
TEST_F(RouteTest, AnOwnerThatDiesBeforeTheMoveLeavesTheOldOne) {
  use_a();
  (void)route_.on_entry(entry(kC, 2));
  (void)route_.on_fence_ok(route_.fence_id(), kB, gen(4));
  expect_open(kB, 4);
  expect(route_.on_entry(entry(kC, 2), Term{2}), false, false);
  expect_open(kB, 4);
  expect(route_.on_dead(kB), false, false);
  expect(route_.on_entry(entry(kC, 2), Term{1}), false, false);
  EXPECT_FALSE(route_.may_send()) << "the coordinator of that time may still know better";
  expect(route_.on_entry(entry(kC, 2), Term{2}), true, false);
  expect_open(kC, 2);
}

TEST_F(RouteTest, WayLostOpensTheWayFromThere) {
  use_a();
  expect(route_.on_way_lost(kB), false, false);
  expect(route_.on_way_lost(kA), true, false);
  expect_open(kA, 1);
  // Nothing is under way any more: the next change needs no fence.
  expect(route_.on_entry(entry(kB, 2)), true, false);
  expect_open(kB, 2);
}

TEST_F(RouteTest, WayLostDuringAHoldGoesToTheNewOwner) {
  use_a();
  (void)route_.on_entry(entry(kB, 2));
  expect(route_.on_way_lost(kA), true, false);
  expect_open(kB, 2);
}

TEST_F(RouteTest, FenceIdsNeverRepeat) {
  use_a();
  std::uint64_t last = 0;
  for (std::uint64_t i = 2; i < 20; ++i) {
    (void)route_.on_entry(entry(i % 2 == 0 ? kB : kC, i));
    EXPECT_GT(route_.fence_id(), last);
    last = route_.fence_id();
    if (i % 3 == 0) (void)route_.on_fence_ok(last, route_.owner(), gen(i));
    if (route_.may_send()) route_.sent();
  }
}

}  // namespace
}  // namespace shardbus::core
