// Every ask ends once, and a slot number names one ask only.
#include "core/delivery/pending_asks.hpp"

#include <gtest/gtest.h>

#include <set>

namespace shardbus::core {
namespace {

using namespace std::chrono_literals;

using Asks = PendingAsks<int>;
constexpr Time kStart = Time{} + 1h;
constexpr NodeKey kA{1};
constexpr NodeKey kB{2};

Asks::Ask ask(int origin, Time deadline = kStart + 1s, NodeKey target = kA) {
  return {origin, target, deadline};
}

TEST(PendingAsks, AnAnswerClosesItsSlotOnce) {
  Asks asks(10);
  const std::uint64_t slot = asks.open(ask(7));
  ASSERT_NE(asks.find(slot), nullptr);
  const auto closed = asks.close(slot);
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->origin, 7);
  EXPECT_FALSE(asks.close(slot).has_value());
  EXPECT_EQ(asks.late(), 1U);
  EXPECT_EQ(asks.size(), 0U);
}

TEST(PendingAsks, SlotNumbersNeverRepeat) {
  Asks asks(3);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t first = asks.open(ask(i));
    const std::uint64_t second = asks.open(ask(i));
    EXPECT_TRUE(seen.insert(first).second);
    EXPECT_TRUE(seen.insert(second).second);
    EXPECT_LE(second, kMaxWireInteger);
    EXPECT_NE(first, 0U);  // 0 means: a tell
    (void)asks.close(i % 2 == 0 ? first : second);
    (void)asks.close(i % 2 == 0 ? second : first);
  }
}

TEST(PendingAsks, ALateAnswerDoesNotMeetTheNextAsk) {
  Asks asks(1);
  const std::uint64_t first = asks.open(ask(1));
  (void)asks.close(first);
  (void)asks.open(ask(2));
  EXPECT_FALSE(asks.close(first).has_value());
  EXPECT_EQ(asks.size(), 1U);
}

TEST(PendingAsks, ForeignNumbersFindNothing) {
  Asks asks(1);
  EXPECT_FALSE(asks.close(0).has_value());
  EXPECT_FALSE(asks.close(UINT64_MAX).has_value());
  EXPECT_EQ(asks.late(), 2U);
}

TEST(PendingAsks, FullAtTheLimit) {
  Asks asks(2);
  EXPECT_FALSE(asks.full());
  const std::uint64_t slot = asks.open(ask(1));
  (void)asks.open(ask(2));
  EXPECT_TRUE(asks.full());
  (void)asks.close(slot);
  EXPECT_FALSE(asks.full());
}

TEST(PendingAsks, ExpireTakesWhatIsDue) {
  Asks asks(10);
  (void)asks.open(ask(1, kStart + 1s));
  (void)asks.open(ask(2, kStart + 2s));
  std::vector<int> ended;
  asks.expire(kStart + 1s, [&](Asks::Ask&& taken) { ended.push_back(taken.origin); });
  EXPECT_EQ(ended, std::vector<int>{1});
  EXPECT_EQ(asks.size(), 1U);
  EXPECT_GE(asks.next_deadline(kStart + 1s), kStart + 1s);
}

// A relayed ask and the ask it is relayed for share a deadline: ending one closes the other. The
// second was once taken again, and its slot then given to two asks.
TEST(PendingAsks, ExpireMayCloseWhatIsDueToo) {
  Asks asks(10);
  const std::uint64_t slots[] = {asks.open(ask(0)), asks.open(ask(1))};
  int ended = 0;
  asks.expire(kStart + 1s, [&](Asks::Ask&& taken) {
    ++ended;
    (void)asks.close(slots[1 - taken.origin]);
  });
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(asks.size(), 0U);
  EXPECT_NE(asks.open(ask(3)), asks.open(ask(4)));
}

TEST(PendingAsks, ExpireMayOpenAgain) {
  Asks asks(100);
  for (int i = 0; i < 5; ++i) (void)asks.open(ask(i));
  int ended = 0;
  asks.expire(kStart + 1s, [&](Asks::Ask&&) {
    ++ended;
    (void)asks.open(ask(9));
    (void)asks.open(ask(9));
  });
  EXPECT_EQ(ended, 5);
  EXPECT_EQ(asks.size(), 10U);
}

TEST(PendingAsks, MayWaitLongerThanItsDeadline) {
  Asks asks(10);
  const std::uint64_t slot = asks.open(ask(1, kStart + 1s));
  asks.wait_until(slot, kStart + 2s);
  int ended = 0;
  const auto count = [&](const Asks::Ask& taken) {
    EXPECT_EQ(taken.deadline, kStart + 1s);
    ++ended;
  };
  asks.expire(kStart + 1500ms, count);
  EXPECT_EQ(ended, 0);
  asks.expire(kStart + 2s, count);
  EXPECT_EQ(ended, 1);
  asks.wait_until(slot, kStart + 3s);  // it is over
  EXPECT_EQ(asks.next_deadline(kStart + 2s), kNever);
}

TEST(PendingAsks, CloseIfTakesWhatMatches) {
  Asks asks(10);
  (void)asks.open(ask(1, kStart + 1s, kA));
  (void)asks.open(ask(2, kStart + 1s, kB));
  (void)asks.open(ask(3, kStart + 1s, kA));
  std::vector<int> ended;
  asks.close_if([](const Asks::Ask& a) { return a.target == kA; },
                [&](Asks::Ask&& taken) { ended.push_back(taken.origin); });
  EXPECT_EQ(ended, (std::vector<int>{1, 3}));
}

// A caller that asks twice for each failure once kept close_if busy until the limit was reached.
TEST(PendingAsks, CloseIfLeavesWhatIsOpenedMeanwhile) {
  Asks asks(1000);
  (void)asks.open(ask(1));
  (void)asks.open(ask(2));
  int ended = 0;
  asks.close_if([](const Asks::Ask&) { return true; },
                [&](Asks::Ask&&) {
                  ++ended;
                  (void)asks.open(ask(3));
                  (void)asks.open(ask(4));
                });
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(asks.size(), 4U);
}

}  // namespace
}  // namespace shardbus::core
