// The newest generation of each sender.
#include "core/region/sender_marks.hpp"

#include <gtest/gtest.h>

namespace shardbus::core {
namespace {

Generation number(std::uint64_t counter) {
  return {Term{1}, NodeKey{9}, counter};
}

TEST(SenderMarks, RefusesWhatWasOvertaken) {
  SenderMarks marks;
  EXPECT_TRUE(marks.admit(7, number(2)));
  EXPECT_TRUE(marks.admit(8, number(1)));
  EXPECT_TRUE(marks.admit(7, number(2)));
  EXPECT_FALSE(marks.admit(7, number(1)));
  marks.forget(7);
  EXPECT_TRUE(marks.admit(7, number(1)));
}

TEST(SenderMarks, TravelInOrder) {
  SenderMarks marks;
  for (const std::uint64_t sender : {30U, 10U, 20U}) marks.admit(sender, number(sender));
  const std::vector<SenderMark> all = marks.take();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].sender, 10U);
  EXPECT_EQ(all[2].sender, 30U);
  EXPECT_EQ(marks.size(), 0U);
  marks.put(all);
  EXPECT_FALSE(marks.admit(30, number(29)));
}

TEST(SenderMarks, TheOldestStayBehindWhenThereAreTooMany) {
  SenderMarks marks;
  const std::uint64_t limit = SenderMarks::kMax;
  for (std::uint64_t sender = 1; sender <= limit + 2; ++sender) {
    marks.admit(sender, number(sender == 1 ? limit + 9 : sender));
  }
  const std::vector<SenderMark> all = marks.take();
  ASSERT_EQ(all.size(), limit);
  EXPECT_EQ(all[0].sender, 1U);  // the newest generation
  EXPECT_EQ(all[1].sender, 4U);  // 2 and 3 had the oldest ones
}

}  // namespace
}  // namespace shardbus::core
