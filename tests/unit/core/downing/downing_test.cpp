// The quorum predicate, enumerated: joint counting for every set of up to 7 members, and why there
// is no tie-break (protocols.md A5).
#include "core/downing/downing.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace shardbus::downing {
namespace {

constexpr unsigned kMembersMax = 7;

KeySet keys_of_mask(unsigned mask) {
  KeySet keys;
  for (unsigned i = 0; i <= kMembersMax; ++i) {
    if ((mask >> i) & 1U) keys.push_back(NodeKey{i + 1});
  }
  return keys;
}

// A set of `members`; not counted yet if `previous` is given.
MemberSet make_set(unsigned members, unsigned previous = 0) {
  MemberSet set;
  for (const NodeKey key : keys_of_mask(members)) {
    Member member;
    member.node.key = key;
    set.members.push_back(member);
  }
  set.previous = keys_of_mask(previous);
  set.counted = previous == 0;
  return set;
}

std::vector<unsigned> quorums(const Rules& rules, const MemberSet& set, unsigned universe) {
  std::vector<unsigned> result;
  for (unsigned agreeing = 1; agreeing <= universe; ++agreeing) {
    if ((agreeing & ~universe) != 0) continue;
    if (count(rules, set, keys_of_mask(agreeing), {}) == Authority::full)
      result.push_back(agreeing);
  }
  return result;
}

void expect_all_meet(const std::vector<unsigned>& left, const std::vector<unsigned>& right,
                     const char* what) {
  for (const unsigned a : left) {
    for (const unsigned b : right) ASSERT_NE(a & b, 0U) << what << ": " << a << " and " << b;
  }
}

// Whoever decides under the old version, while the new one is not counted, or under the new one
// meets everybody else who could: so two deciders of different terms share a member.
void check_change(const Rules& rules, unsigned before, unsigned after) {
  const unsigned universe = before | after;
  const auto old_counted = quorums(rules, make_set(before), universe);
  const auto joint = quorums(rules, make_set(after, before), universe);
  const auto new_counted = quorums(rules, make_set(after), universe);
  expect_all_meet(old_counted, old_counted, "old with old");
  expect_all_meet(old_counted, joint, "old with joint");
  expect_all_meet(joint, joint, "joint with joint");
  expect_all_meet(joint, new_counted, "joint with new");
  expect_all_meet(new_counted, new_counted, "new with new");
}

// All policies but static-quorum count alike.
std::vector<Rules> counting_rules() {
  std::vector<Rules> all{{}};
  for (unsigned quorum = 1; quorum <= kMembersMax; ++quorum) {
    all.push_back({DowningPolicy::static_quorum, quorum});
  }
  return all;
}

TEST(Quorum, JointCountingMeetsForEverySetUpToSevenMembers) {
  for (const Rules& rules : counting_rules()) {
    for (unsigned size = 1; size <= kMembersMax; ++size) {
      const unsigned set = (1U << size) - 1;
      if (size < kMembersMax) check_change(rules, set, set | (1U << size));  // join
      for (unsigned i = 0; i < size && size > 1; ++i) {
        check_change(rules, set, set & ~(1U << i));                   // leave
        check_change(rules, set, (set & ~(1U << i)) | (1U << size));  // new incarnation
      }
    }
  }
}

TEST(Quorum, ThePolicyChangesNothingInWhoMayDecide) {
  for (const DowningPolicy policy :
       {DowningPolicy::keep_oldest, DowningPolicy::down_all, DowningPolicy::lease_majority}) {
    for (unsigned agreeing = 0; agreeing < 32; ++agreeing) {
      for (unsigned dead = 0; dead < 32; ++dead) {
        EXPECT_EQ(count({policy}, make_set(31), keys_of_mask(agreeing), keys_of_mask(dead)),
                  count({}, make_set(31), keys_of_mask(agreeing), keys_of_mask(dead)));
      }
    }
  }
}

// Whoever decides by evidence, as some are truly dead, meets whoever decides in full.
TEST(Quorum, EvidenceOfTrueDeathsMeetsEveryFullQuorum) {
  for (const Rules& rules : counting_rules()) {
    for (unsigned size = 1; size <= 5; ++size) {
      const unsigned all = (1U << size) - 1;
      for (unsigned dead = 0; dead < all; ++dead) {
        for (unsigned some = 1; some <= all; ++some) {
          if ((some & dead) != 0) continue;
          const Authority right =
              count(rules, make_set(all), keys_of_mask(some), keys_of_mask(dead));
          if (right == Authority::none) continue;
          for (const unsigned full : quorums(rules, make_set(all), all)) {
            if ((full & dead) != 0) continue;
            ASSERT_NE(full & some, 0U) << full << " and " << some;
          }
        }
      }
    }
  }
}

// Two versions made from one counted set by two claimants: neither counts without a quorum of that
// set, so both cannot count unseen.
TEST(Quorum, TwoChangesOfOneSetMeet) {
  const Rules rules;
  for (unsigned size = 2; size < kMembersMax; ++size) {
    const unsigned set = (1U << size) - 1;
    const unsigned universe = (set << 1U) | 1U;
    for (unsigned i = 0; i < size; ++i) {
      const auto smaller = quorums(rules, make_set(set & ~(1U << i), set), universe);
      const auto larger = quorums(rules, make_set(set | (1U << size), set), universe);
      expect_all_meet(smaller, larger, "two changes");
    }
  }
}

TEST(Quorum, WithATieBreakNeighbouringQuorumsWouldNotMeet) {
  // "Half, with the lowest": {1} of {1,2}, and {2,3} of {1,2,3}.
  const auto lowest_wins = [](unsigned members, unsigned agreeing) {
    const auto yes = std::popcount(members & agreeing) * 2;
    const auto all = std::popcount(members);
    const bool has_lowest = ((members & agreeing) & (members & (~members + 1))) != 0;
    return yes > all || (yes == all && has_lowest);
  };
  EXPECT_TRUE(lowest_wins(0b011, 0b001));
  EXPECT_TRUE(lowest_wins(0b111, 0b110));
  EXPECT_EQ(count({}, make_set(0b011), keys_of_mask(0b001), {}), Authority::none);
}

TEST(Quorum, EvidenceIsTheSameCountWithoutTheDead) {
  for (unsigned size = 1; size <= kMembersMax; ++size) {
    const unsigned set = (1U << size) - 1;
    for (unsigned agreeing = 0; agreeing <= set; ++agreeing) {
      for (unsigned dead = 0; dead <= set; ++dead) {
        const unsigned yes = static_cast<unsigned>(std::popcount(agreeing & ~dead));
        const unsigned living = static_cast<unsigned>(std::popcount(set & ~dead));
        const Authority expected = yes * 2 > size     ? Authority::full
                                   : yes * 2 > living ? Authority::evidence
                                                      : Authority::none;
        ASSERT_EQ(count({}, make_set(set), keys_of_mask(agreeing), keys_of_mask(dead)), expected);
      }
    }
  }
}

TEST(Quorum, AListOfOnlyDeadMembersAsksNobody) {
  EXPECT_EQ(count({}, make_set(0b111, 0b011), keys_of_mask(0b100), keys_of_mask(0b011)),
            Authority::evidence);
  EXPECT_EQ(count({}, make_set(0b011, 0b011), keys_of_mask(0b100), keys_of_mask(0b011)),
            Authority::none);
}

TEST(StableAfter, GrowsWithTheCluster) {
  EXPECT_EQ(default_stable_after(3), std::chrono::seconds(1));
  EXPECT_EQ(default_stable_after(6), std::chrono::milliseconds(1500));
  EXPECT_EQ(default_stable_after(1000), std::chrono::seconds(5));
}

}  // namespace
}  // namespace shardbus::downing
