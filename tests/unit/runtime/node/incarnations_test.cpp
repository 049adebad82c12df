#include "runtime/node/incarnations.hpp"

#include <gtest/gtest.h>

namespace shardbus::runtime {
namespace {

constexpr std::uint64_t kHour = 3'600'000'000;

TEST(Incarnations, WhoWasAMemberTakesTheNextNumber) {
  Incarnations incarnations;
  std::uint64_t now = 5;
  for (std::uint64_t i = 6; i < 40; ++i) EXPECT_EQ(now = incarnations.after(now, true), i);
}

TEST(Incarnations, AClockThatWentBackAnHourIsMadeUpForWithinAFewRefusals) {
  Incarnations incarnations;
  std::uint64_t now = 0;
  int refusals = 0;
  while (now <= kHour) {
    now = incarnations.after(now, false);
    ++refusals;
  }
  EXPECT_LE(refusals, 6);
  EXPECT_EQ(incarnations.after(now, true), now + 1);
}

TEST(Incarnations, StepsEndWithinARange) {
  Incarnations incarnations;
  std::uint64_t now = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t next = incarnations.after(now, false);
    EXPECT_GT(next, now);
    now = next;
  }
  EXPECT_LT(now, std::uint64_t{1} << 53);
}

}  // namespace
}  // namespace shardbus::runtime
