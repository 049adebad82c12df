#include "base/sent_digests.hpp"

#include <gtest/gtest.h>

namespace shardbus {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLease = 1s;

TEST(SentDigests, KnowsWhenEachOfTheLastLeaseWasSent) {
  SentDigests sent;
  const Time start = Time{} + 1h;
  sent.add(3, start, kLease);
  sent.add(5, start + 400ms, kLease);
  sent.add(6, start + 1s, kLease);
  EXPECT_EQ(sent.when(3), start) << "exactly a lease old: it still counts";
  EXPECT_EQ(sent.when(5), start + 400ms);
  sent.add(7, start + 1001ms, kLease);
  EXPECT_EQ(sent.when(3), std::nullopt);
  EXPECT_EQ(sent.when(5), start + 400ms);
}

TEST(SentDigests, KnowsNothingOfNumbersThatWereNotSent) {
  SentDigests sent;
  EXPECT_EQ(sent.when(1), std::nullopt);
  sent.add(3, Time{} + 1h, kLease);
  sent.add(5, Time{} + 1h, kLease);
  for (const std::uint64_t number : {0, 1, 4, 6}) EXPECT_EQ(sent.when(number), std::nullopt);
  sent.clear();
  EXPECT_EQ(sent.when(5), std::nullopt);
}

// After a pause longer than the lease the only one left is the one that was just sent.
TEST(SentDigests, TheNewestStaysHoweverLongTheOthersAreAgo) {
  SentDigests sent;
  sent.add(1, Time{} + 1h, kLease);
  sent.add(2, Time{} + 2h, kLease);
  EXPECT_EQ(sent.when(1), std::nullopt);
  EXPECT_EQ(sent.when(2), Time{} + 2h);
}

}  // namespace
}  // namespace shardbus
