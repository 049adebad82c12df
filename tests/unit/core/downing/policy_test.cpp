// Every split of every cluster of up to 7 members, under every policy: who goes on, and whether all
// members of one side agree. One-way and indirect faults are enumerated up to 4 members.
#include "core/downing/policy.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <optional>

#include "core/downing/downing.hpp"

namespace shardbus::downing {
namespace {

using Mask = unsigned;

NodeKey key_of(unsigned index) {
  return NodeKey{index + 1};
}

// Member 0 is the oldest.
MemberSet set_of(Mask members) {
  MemberSet set;
  for (unsigned i = 0; i < 8; ++i) {
    if (((members >> i) & 1U) == 0) continue;
    Member member;
    member.node.key = key_of(i);
    member.age = i + 1;
    set.members.push_back(member);
  }
  set.counted = true;
  return set;
}

KeySet keys_of_mask(Mask mask) {
  return keys_of(set_of(mask).members);
}

Mask all_of(unsigned size) {
  return (1U << size) - 1;
}

bool on(Mask mask, unsigned index) {
  return ((mask >> index) & 1U) != 0;
}

// hears[i]: whom member i hears, itself too.
using Hearing = std::vector<Mask>;

View view_of(unsigned self, Mask members, const Hearing& hears) {
  View view;
  view.set = set_of(members);
  view.unreachable = keys_of_mask(members & ~hears[self]);
  for (unsigned other = 0; other < hears.size(); ++other) {
    if (other == self || !on(hears[self], other)) continue;
    view.unreachable_by[key_of(other)] = keys_of_mask(members & ~hears[other]);
  }
  return view;
}

Hearing split_in_two(unsigned size, Mask side) {
  Hearing hears(size);
  for (unsigned i = 0; i < size; ++i) hears[i] = on(side, i) ? side : all_of(size) & ~side;
  return hears;
}

std::vector<Rules> all_rules(unsigned size) {
  std::vector<Rules> all{{DowningPolicy::keep_majority},
                         {DowningPolicy::keep_oldest, 0, true},
                         {DowningPolicy::keep_oldest, 0, false},
                         {DowningPolicy::down_all}};
  for (unsigned quorum = 1; quorum <= size + 1; ++quorum) {
    all.push_back({DowningPolicy::static_quorum, quorum});
  }
  return all;
}

Judgement judged(const Rules& rules, const View& view, NodeKey self) {
  return judge(rules, view, picture_of(self, view));
}

// What all members of a side say, if it is the same.
std::optional<Verdict> verdict_of(const Rules& rules, unsigned size, Mask side,
                                  const Hearing& hears) {
  std::optional<Verdict> verdict;
  for (unsigned i = 0; i < size; ++i) {
    if (!on(side, i)) continue;
    const Verdict own = judged(rules, view_of(i, all_of(size), hears), key_of(i)).verdict;
    if (verdict && *verdict != own) return std::nullopt;
    verdict = own;
  }
  return verdict;
}

// The rules in the words of the operator's guide, written down a second time.
Verdict expected(const Rules& rules, unsigned size, Mask side) {
  const auto ours = static_cast<unsigned>(std::popcount(side));
  const bool oldest = on(side, 0);
  const unsigned theirs = size - ours;
  switch (rules.policy) {
    case DowningPolicy::static_quorum:
      if (size > 2 * rules.quorum_size - 1) return Verdict::goes;
      return ours >= rules.quorum_size ? Verdict::wins : Verdict::goes;
    case DowningPolicy::keep_oldest:
      if (rules.down_if_alone && size > 2) {
        if (oldest && ours == 1) return Verdict::goes;
        if (!oldest && theirs == 1) return Verdict::wins;
      }
      if (!oldest) return Verdict::goes;
      return ours > theirs ? Verdict::wins : Verdict::goes_on;
    case DowningPolicy::down_all:
      return Verdict::goes;
    case DowningPolicy::keep_majority:
    case DowningPolicy::lease_majority:
      break;
  }
  if (ours == theirs) return oldest ? Verdict::stays : Verdict::goes;
  return ours > theirs ? Verdict::wins : Verdict::goes;
}

TEST(Split, OneSideAtMostGoesOnAndItsMembersAgree) {
  for (unsigned size = 2; size <= 7; ++size) {
    for (const Rules& rules : all_rules(size)) {
      for (Mask side = 1; side < all_of(size); ++side) {
        const Hearing hears = split_in_two(size, side);
        const auto ours = verdict_of(rules, size, side, hears);
        const auto theirs = verdict_of(rules, size, all_of(size) & ~side, hears);
        const std::string what =
            to_text(rules) + ", " + std::to_string(side) + " of " + std::to_string(size);
        ASSERT_TRUE(ours && theirs) << what;
        EXPECT_TRUE(*ours == Verdict::goes || *theirs == Verdict::goes) << what;
        EXPECT_EQ(*ours, expected(rules, size, side)) << what;
      }
    }
  }
}

TEST(Split, TheSideThatMayDecideIsNotDownedExceptAsThePolicySays) {
  for (unsigned size = 2; size <= 7; ++size) {
    for (const Rules& rules : all_rules(size)) {
      for (Mask side = 1; side < all_of(size); ++side) {
        const Verdict verdict = judged(rules,
                                       view_of(static_cast<unsigned>(std::countr_zero(side)),
                                               all_of(size), split_in_two(size, side)),
                                       key_of(static_cast<unsigned>(std::countr_zero(side))))
                                    .verdict;
        const Authority full = count(rules, set_of(all_of(size)), keys_of_mask(side), {});
        // Who wins decides with full authority; who goes on does so without those it left behind.
        if (verdict == Verdict::wins) {
          EXPECT_EQ(full, Authority::full);
        } else if (verdict == Verdict::goes_on) {
          EXPECT_EQ(full, Authority::none);
          EXPECT_EQ(count(rules, set_of(all_of(size)), keys_of_mask(side),
                          keys_of_mask(all_of(size) & ~side)),
                    Authority::evidence);
        } else if (verdict == Verdict::stays) {
          EXPECT_EQ(full, Authority::none);
        } else if (rules.policy == DowningPolicy::keep_majority) {
          EXPECT_EQ(full, Authority::none);
        }
      }
    }
  }
}

// One more member on one side than the other side knows of, in either direction: the version that
// adds or removes it is not counted yet.
TEST(PessimisticRecount, TwoVersionsOfTheSetDoNotLetBothSidesGoOn) {
  for (unsigned size = 2; size <= 6; ++size) {
    const Mask old_set = all_of(size);
    for (unsigned change = 0; change <= size; ++change) {
      const Mask new_set = old_set ^ (1U << change);  // removes one, or adds the next
      const Mask universe = old_set | new_set;
      for (const Rules& rules : all_rules(size)) {
        for (Mask side = 1; side < universe; ++side) {
          if ((side & ~universe) != 0) continue;
          Hearing hears = split_in_two(8, side);
          const auto goes_on = [&](Mask part, bool knows) {
            const Mask members = knows ? new_set : old_set;
            if ((part & members) == 0) return false;
            const auto self = static_cast<unsigned>(std::countr_zero(part & members));
            for (Mask& heard : hears) heard &= universe;
            View view = view_of(self, universe, hears);
            view.set = set_of(members);
            view.set.counted = !knows;
            if (knows) view.set.previous = keys_of_mask(old_set);
            // Whoever is removed while it lives has said that it leaves: its own side knows.
            const bool leaves = on(old_set, change) && on(part, change);
            if (leaves) view.leaving = {key_of(change)};
            return judged(rules, view, key_of(self)).verdict < Verdict::goes;
          };
          const Mask other = universe & ~side;
          EXPECT_FALSE(goes_on(side, true) && goes_on(other, false))
              << to_text(rules) << ": " << old_set << " -> " << new_set << ", " << side << " knows";
        }
      }
    }
  }
}

TEST(PessimisticRecount, WhoIsKnownToLeaveIsNotTheOldest) {
  const Rules rules{DowningPolicy::keep_oldest, 0, false};
  const auto verdict = [&](unsigned self, Mask side, bool knows) {
    View view = view_of(self, all_of(4), split_in_two(4, side));
    if (knows) view.leaving = {key_of(0)};
    return judged(rules, view, key_of(self)).verdict;
  };
  // {0} leaves and is cut off: it knows, so it does not stay for being the oldest.
  EXPECT_EQ(verdict(0, 0b0001, true), Verdict::goes);
  EXPECT_EQ(verdict(1, 0b1110, true), Verdict::wins);
  EXPECT_EQ(verdict(1, 0b1110, false), Verdict::goes);
  // With the next oldest beside it there is no doubt.
  EXPECT_EQ(verdict(0, 0b0011, true), Verdict::goes_on);
  EXPECT_EQ(verdict(2, 0b1100, true), Verdict::goes);
}

// --- every pattern of who hears whom ---

Hearing hearing_of(unsigned size, unsigned pattern) {
  Hearing hears(size);
  unsigned bit = 0;
  for (unsigned i = 0; i < size; ++i) {
    hears[i] = 1U << i;
    for (unsigned j = 0; j < size; ++j) {
      if (i == j) continue;
      if (on(pattern, bit++)) hears[i] |= 1U << j;
    }
  }
  return hears;
}

bool linked(const Hearing& hears, unsigned a, unsigned b) {
  return on(hears[a], b) && on(hears[b], a);
}

// Members in one piece by links that are good in both directions.
Mask piece_of(const Hearing& hears, unsigned from) {
  Mask piece = 1U << from;
  for (bool grew = true; grew;) {
    grew = false;
    for (unsigned a = 0; a < hears.size(); ++a) {
      for (unsigned b = 0; b < hears.size(); ++b) {
        if (!on(piece, a) || on(piece, b) || !linked(hears, a, b)) continue;
        piece |= 1U << b;
        grew = true;
      }
    }
  }
  return piece;
}

// Whoever goes is silent from then on.
void silence(Hearing& hears, Mask gone) {
  for (unsigned i = 0; i < hears.size(); ++i) {
    hears[i] = on(gone, i) ? 1U << i : hears[i] & ~(gone & ~(1U << i));
  }
}

// Who is left when every patience is over, once.
Mask survivors_of(const Rules& rules, unsigned size, const Hearing& hears) {
  Mask survivors = 0;
  for (unsigned i = 0; i < size; ++i) {
    Downing downing({key_of(i), rules});
    const View view = view_of(i, all_of(size), hears);
    bool goes = false;
    Time now{};
    for (int second = 0; second < 10; ++second, now += std::chrono::seconds(1)) {
      for (const Output& output : downing.step(now, view)) {
        goes = goes || std::holds_alternative<DownSelf>(output);
      }
    }
    if (!goes) survivors |= 1U << i;
  }
  return survivors;
}

// A node that hears another one only through a third does not know whether the link is good in both
// directions, so it may go a round later than the rest of its piece: when that one has gone.
Mask survivors_at_last(const Rules& rules, unsigned size, Hearing hears) {
  Mask survivors = all_of(size);
  for (unsigned round = 0; round < size; ++round) {
    survivors &= survivors_of(rules, size, hears);
    silence(hears, all_of(size) & ~survivors);
  }
  return survivors;
}

TEST(Indirect, SurvivorsAreOfOnePieceAndAllHearEachOther) {
  for (unsigned size = 2; size <= 4; ++size) {
    const unsigned links = size * (size - 1);
    for (unsigned pattern = 0; pattern < (1U << links); ++pattern) {
      const Hearing hears = hearing_of(size, pattern);
      for (const Rules& rules : all_rules(size)) {
        const Mask survivors = survivors_at_last(rules, size, hears);
        for (unsigned a = 0; a < size; ++a) {
          for (unsigned b = 0; b < size; ++b) {
            if (!on(survivors, a) || !on(survivors, b)) continue;
            ASSERT_TRUE(linked(hears, a, b)) << to_text(rules) << ": " << a << " and " << b
                                             << " of " << size << " in pattern " << pattern;
          }
        }
      }
    }
  }
}

// While it stood still the others judged as if it were on another side, alone.
TEST(OwnPause, WhoeverGoesOnAfterItWasNotDecidedWithout) {
  for (unsigned size = 2; size <= 5; ++size) {
    for (const Rules& rules : all_rules(size)) {
      for (Mask leaving = 0; leaving <= all_of(size); ++leaving) {
        for (unsigned self = 0; self < size; ++self) {
          const unsigned other = (self + 1) % size;
          View view = view_of(other, all_of(size), split_in_two(size, 1U << self));
          view.leaving = keys_of_mask(leaving);
          const Verdict others = judged(rules, view, key_of(other)).verdict;
          const bool stays = survives_own_pause(rules, view.set, view.leaving, key_of(self));
          ASSERT_FALSE(stays && (others == Verdict::wins || others == Verdict::goes_on))
              << to_text(rules) << ": " << self << " of " << size << ", leaving " << leaving;
        }
      }
    }
  }
}

TEST(OwnPause, OfKeepOldestTheOldestThatStaysGoesOn) {
  const Rules rules{DowningPolicy::keep_oldest, 0, false};
  const MemberSet set = set_of(0b111);
  EXPECT_TRUE(survives_own_pause(rules, set, {}, key_of(0)));
  EXPECT_FALSE(survives_own_pause(rules, set, {key_of(0)}, key_of(0)));
  EXPECT_TRUE(survives_own_pause(rules, set, {key_of(0)}, key_of(1)));
  EXPECT_TRUE(survives_own_pause(rules, set, keys_of_mask(0b111), key_of(0))) << "all leave";
}

TEST(Indirect, OneBadLinkCostsOneNodeTheYounger) {
  for (unsigned size = 3; size <= 7; ++size) {
    for (unsigned a = 0; a < size; ++a) {
      for (unsigned b = a + 1; b < size; ++b) {
        for (int kind = 0; kind < 3; ++kind) {  // both ways, or one
          Hearing hears(size, all_of(size));
          if (kind != 1) hears[a] &= ~(1U << b);
          if (kind != 2) hears[b] &= ~(1U << a);
          for (const Rules& rules : all_rules(size)) {
            const Mask survivors = survivors_of(rules, size, hears);
            if (rules.policy == DowningPolicy::down_all) {
              EXPECT_EQ(survivors, 0U);
            } else {
              EXPECT_EQ(survivors, all_of(size) & ~(1U << b)) << to_text(rules);
            }
          }
        }
      }
    }
  }
}

// A node that hears one of the others only is the one that goes, and goes at once.
TEST(Indirect, ABadCableCostsItsNodeAlone) {
  for (unsigned size = 4; size <= 7; ++size) {
    for (unsigned bad = 0; bad < size; ++bad) {
      Hearing hears(size, all_of(size) & ~(1U << bad));
      const unsigned friends = (bad + 1) % size;
      hears[bad] = (1U << bad) | (1U << friends);
      hears[friends] = all_of(size);
      EXPECT_EQ(survivors_of({}, size, hears), all_of(size) & ~(1U << bad));
      const Picture picture = picture_of(key_of(bad), view_of(bad, all_of(size), hears));
      ASSERT_EQ(picture.outcasts.size(), 1U);
      EXPECT_TRUE(picture.outcasts[0].widely);
      EXPECT_EQ(piece_of(hears, bad), all_of(size));
    }
  }
}

TEST(Rules, ShowTheirSettings) {
  EXPECT_EQ(to_text(Rules{DowningPolicy::static_quorum, 3}), "static-quorum quorum_size=3");
  EXPECT_FALSE(too_many_members({DowningPolicy::static_quorum, 2}, 3));
  EXPECT_TRUE(too_many_members({DowningPolicy::static_quorum, 2}, 4));
}

}  // namespace
}  // namespace shardbus::downing
