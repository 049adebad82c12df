#include "core/lease/lease.hpp"

#include <gtest/gtest.h>

namespace shardbus::lease {
namespace {

using namespace std::chrono_literals;

constexpr NodeKey kA{1}, kB{2}, kC{3};

Time at(Duration since) {
  return Time{} + 10s + since;
}

MemberSet set_of(const std::vector<NodeKey>& members, const std::vector<NodeKey>& previous = {}) {
  MemberSet set;
  for (const NodeKey key : members) {
    Member member;
    member.node.key = key;
    set.members.push_back(member);
  }
  set.previous = previous;
  set.counted = previous.empty();
  return set;
}

class LeaseTest : public testing::Test {
 protected:
  void view(const MemberSet& set) { lease.step(at(0s), View{set}); }
  void sent(Duration when, std::uint64_t number) { lease.step(at(when), DigestSent{number}); }
  void seen(Duration when, NodeKey from, std::uint64_t repeated) {
    lease.step(at(when), DigestSeen{from, repeated});
  }
  Lease lease{Config{kA, 1s}};
};

TEST_F(LeaseTest, CountsFromTheSendingOfWhatAMajorityRepeated) {
  view(set_of({kA, kB, kC}));
  EXPECT_EQ(lease.until(), Time{});
  sent(0ms, 1);
  sent(200ms, 2);
  seen(250ms, kB, 1);
  EXPECT_EQ(lease.until(), at(1s));
  seen(300ms, kC, 2);
  EXPECT_EQ(lease.until(), at(1200ms)) << "one other is enough of three";
  seen(400ms, kC, 1);
  EXPECT_EQ(lease.until(), at(1200ms)) << "an older repeat takes nothing away";
}

TEST_F(LeaseTest, OldAndUnknownDigestsAndStrangersVouchForNothing) {
  view(set_of({kA, kB, kC}));
  sent(0ms, 1);
  sent(1500ms, 2);
  seen(1500ms, kB, 1);
  seen(1500ms, kB, 7);
  seen(1500ms, kB, 0);
  seen(1500ms, NodeKey{9}, 2);
  EXPECT_EQ(lease.until(), Time{});
}

TEST_F(LeaseTest, NeedsBothListsWhileASetIsNotCounted) {
  view(set_of({kA, kB}, {kA, kC, NodeKey{4}}));
  sent(0ms, 1);
  seen(1ms, kB, 1);
  EXPECT_EQ(lease.until(), Time{});
  seen(2ms, kC, 1);
  EXPECT_EQ(lease.until(), at(1s));
}

TEST_F(LeaseTest, AloneItIsRenewedAndOutsideOrByEvidenceThereIsNone) {
  view(set_of({kA}));
  EXPECT_EQ(lease.until(), at(1s));
  sent(600ms, 1);
  EXPECT_EQ(lease.until(), at(1600ms));
  MemberSet evidence = set_of({kA});
  evidence.evidence = true;
  view(evidence);
  EXPECT_EQ(lease.until(), Time{});
  view(set_of({kB}));
  EXPECT_EQ(lease.until(), Time{});
}

TEST_F(LeaseTest, IsGoneAfterAPause) {
  view(set_of({kA, kB}));
  sent(0ms, 1);
  seen(1ms, kB, 1);
  ASSERT_EQ(lease.until(), at(1s));
  lease.step(at(2ms), Drop{});
  EXPECT_EQ(lease.until(), Time{});
  seen(3ms, kB, 1);
  EXPECT_EQ(lease.until(), Time{}) << "what was sent before the pause does not count";
}

}  // namespace
}  // namespace shardbus::lease
