// Who lost the cluster founds it anew only when nobody can still be in it.
#include "runtime/node/refounding.hpp"

#include <gtest/gtest.h>

namespace shardbus::runtime {
namespace {

using namespace std::chrono_literals;

class RefoundingTest : public testing::Test {
 protected:
  // These nodes say each 200 ms that they are in no cluster; true if it became due meanwhile.
  bool hear(const std::vector<std::string>& names, Duration time) {
    bool due = false;
    for (const Time end = now_ + time; now_ < end; now_ += 200ms) {
      for (const std::string& name : names) refounding_.heard(name, false, now_);
      due = due || refounding_.due(now_);
    }
    return due;
  }
  Refounding refounding_;
  Time now_ = Time{} + 1h;
};

TEST_F(RefoundingTest, NothingWasLost) {
  EXPECT_FALSE(hear({"b", "c"}, 10s));
}

TEST_F(RefoundingTest, AMajorityThatIsFreeForAWhile) {
  refounding_.lost({"b", "c"});
  EXPECT_FALSE(hear({}, 10s));
  EXPECT_FALSE(hear({"b"}, 1s));
  EXPECT_TRUE(hear({"b"}, 2s));
  refounding_.over();
  EXPECT_FALSE(hear({"b", "c"}, 10s));
}

TEST_F(RefoundingTest, AMinorityOrStrangersAreNotEnough) {
  refounding_.lost({"b", "c", "d"});
  EXPECT_FALSE(hear({"b"}, 10s)) << "two of four";
  EXPECT_FALSE(hear({"b", "x", "y"}, 10s));
  EXPECT_TRUE(hear({"b", "d"}, 3s));
}

TEST_F(RefoundingTest, AnybodyInAClusterIsToBeJoined) {
  refounding_.lost({"b", "c"});
  EXPECT_FALSE(hear({"b"}, 1s));
  refounding_.heard("c", true, now_);
  EXPECT_FALSE(hear({"b"}, 1s));
}

TEST_F(RefoundingTest, OldAnswersDoNotCount) {
  refounding_.lost({"b", "c"});
  EXPECT_FALSE(hear({"b"}, 1s));
  EXPECT_FALSE(hear({}, 10s));
}

}  // namespace
}  // namespace shardbus::runtime
