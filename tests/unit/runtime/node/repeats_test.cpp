// What the log shows of an event that comes again and again.
#include "runtime/node/repeats.hpp"

#include <gtest/gtest.h>

#include <string>

namespace shardbus::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RepeatsTest : public testing::Test {
 protected:
  static constexpr const char* kSilent = "nothing";

  std::string pass(Duration at, const std::string& event, const std::string& text) {
    return repeats_.pass(Time(at), event, text).value_or(kSilent);
  }

 private:
  Repeats repeats_;
};

TEST_F(RepeatsTest, WritesTheSameOnceAndThenEveryThirtySecondsWithACount) {
  EXPECT_EQ(pass(seconds(1), "join.refused", "a"), "a");
  for (int i = 1; i <= 149; ++i) {
    EXPECT_EQ(pass(seconds(1) + i * milliseconds(200), "join.refused", "a"), kSilent) << i;
  }
  EXPECT_EQ(pass(seconds(31), "join.refused", "a"), "a (150 times since it was last written)");
  EXPECT_EQ(pass(seconds(32), "join.refused", "a"), kSilent);
  EXPECT_EQ(pass(seconds(62), "join.refused", "a"), "a (2 times since it was last written)");
}

TEST_F(RepeatsTest, AnotherTextOrEventIsNoRepeat) {
  EXPECT_EQ(pass(seconds(1), "join.refused", "a"), "a");
  EXPECT_EQ(pass(seconds(1), "join.refused", "b"), "b");
  EXPECT_EQ(pass(seconds(1), "join.waiting", "a"), "a");
}

TEST_F(RepeatsTest, RemembersABoundedNumberOfTexts) {
  EXPECT_EQ(pass(seconds(1), "join.refused", "first"), "first");
  for (std::size_t i = 1; i < Repeats::kTextsMax; ++i) {
    EXPECT_NE(pass(seconds(2), "join.refused", std::to_string(i)), kSilent);
  }
  EXPECT_EQ(pass(seconds(3), "join.refused", "first"), kSilent);
  EXPECT_EQ(pass(seconds(3), "join.refused", "one more"), "one more");
  EXPECT_EQ(pass(seconds(3), "join.refused", "first"), "first") << "it was the oldest";
}

}  // namespace
}  // namespace shardbus::runtime
