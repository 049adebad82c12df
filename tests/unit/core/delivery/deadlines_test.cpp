// The wheel of deadlines against a plain list.
#include "core/delivery/deadlines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.hpp"

namespace shardbus::core {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTick = 8ms;
constexpr Time kStart = Time{} + 5h;

std::vector<std::uint32_t> expired(Deadlines& deadlines, Time now) {
  std::vector<std::uint32_t> numbers;
  deadlines.expire(now, numbers);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST(Deadlines, ExpireAtTheirInstantAndNotBefore) {
  Deadlines deadlines;
  deadlines.arm(3, kStart + 10ms);
  EXPECT_TRUE(expired(deadlines, kStart + 10ms - 1ns).empty());
  EXPECT_EQ(expired(deadlines, kStart + 10ms), std::vector<std::uint32_t>{3});
  EXPECT_EQ(deadlines.size(), 0U);
  EXPECT_EQ(deadlines.next(kStart + 10ms), kNever);
}

TEST(Deadlines, ArmedInThePastExpireAtOnce) {
  Deadlines deadlines;
  (void)expired(deadlines, kStart);
  deadlines.arm(0, kStart - 1h);
  deadlines.arm(1, Time{});
  EXPECT_EQ(expired(deadlines, kStart), (std::vector<std::uint32_t>{0, 1}));
}

TEST(Deadlines, BeyondOneTurnOfTheWheelWaitTheirTurn) {
  Deadlines deadlines;
  (void)expired(deadlines, kStart);
  deadlines.arm(0, kStart + 1h);  // a turn takes 16 s
  for (Time now = kStart; now < kStart + 1h; now += 7s) {
    ASSERT_TRUE(expired(deadlines, now).empty());
  }
  EXPECT_EQ(expired(deadlines, kStart + 1h).size(), 1U);
}

TEST(Deadlines, ALongPauseLosesNone) {
  Deadlines deadlines;
  (void)expired(deadlines, kStart);
  for (std::uint32_t i = 0; i < 100; ++i) deadlines.arm(i, kStart + i * 1s);
  EXPECT_EQ(expired(deadlines, kStart + 1h).size(), 100U);
}

TEST(Deadlines, CancelledOnesDoNotExpire) {
  Deadlines deadlines;
  for (std::uint32_t i = 0; i < 3; ++i) deadlines.arm(i, kStart + 1ms);
  deadlines.cancel(1);
  deadlines.cancel(1);
  deadlines.cancel(77);
  EXPECT_EQ(expired(deadlines, kStart + 1ms), (std::vector<std::uint32_t>{0, 2}));
}

// A deadline that passed after the last sweep was once found a whole turn of the wheel later.
TEST(Deadlines, NextSeesWhatPassedSinceTheLastSweep) {
  Deadlines deadlines;
  const Time now = kStart + 1ms;
  (void)expired(deadlines, now);
  deadlines.arm(0, now + 6ms);
  EXPECT_LE(deadlines.next(now + 8ms), now + 8ms + kTick);
}

TEST(Deadlines, NoneArmedNeedsNoCall) {
  EXPECT_EQ(Deadlines{}.next(kStart), kNever);
}

// One schedule: random arming, cancelling and pauses; `oracle` knows what is armed.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed) : random_(seed) {}

  void step() {
    const auto index = static_cast<std::uint32_t>(random_.below(200));
    if (random_.chance(0.5) && !oracle_.contains(index)) {
      const Time deadline =
          now_ - 50ms + Duration(random_.below(random_.chance(0.1) ? 40 * kSecond : kSecond));
      deadlines_.arm(index, deadline);
      oracle_[index] = deadline;
    } else if (random_.chance(0.3)) {
      deadlines_.cancel(index);
      oracle_.erase(index);
    }
    now_ += Duration(random_.below(random_.chance(0.02) ? 30 * kSecond : kSecond / 100));
    if (random_.chance(0.5)) check_expired();
    check_next();
  }

 private:
  static constexpr std::uint64_t kSecond = 1'000'000'000;

  void check_expired() {
    std::vector<std::uint32_t> expected;
    for (const auto& [index, deadline] : oracle_) {
      if (deadline <= now_) expected.push_back(index);
    }
    for (const std::uint32_t index : expected) oracle_.erase(index);
    ASSERT_EQ(expired(deadlines_, now_), expected);
    ASSERT_EQ(deadlines_.size(), oracle_.size());
  }

  void check_next() {
    if (oracle_.empty()) {
      ASSERT_EQ(deadlines_.next(now_), kNever);
      return;
    }
    Time earliest = kNever;
    for (const auto& [index, deadline] : oracle_) earliest = std::min(earliest, deadline);
    ASSERT_LE(deadlines_.next(now_), std::max(earliest, now_) + kTick);
  }

  Random random_;
  Time now_ = kStart;
  Deadlines deadlines_;
  std::map<std::uint32_t, Time> oracle_;
};

TEST(Deadlines, AgreeWithAPlainList) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Schedule schedule(seed);
    for (int i = 0; i < 500; ++i) schedule.step();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace shardbus::core
