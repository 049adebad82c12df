// The downing policies: which count of members may decide, and which side of a split goes on.
//
// Two questions, kept apart on purpose (protocols.md A5). *Who may decide* is counted: a strict
// majority of the member set, with static-quorum also quorum_size of it. There is no tie-break and
// no vote of the oldest in it, as with either two neighbouring sets have disjoint quorums: {1} of
// {1,2} and {2,3} of {1,2,3}. *Who goes on* is judged by each side for itself, from who reaches
// whom.
//
// keep-oldest keeps a side that may be no majority. Such a side (`goes_on`) takes the others for
// gone, as it takes the proven dead: what it counts without them is evidence, and never more. So it
// re-homes `available` shards, while nothing of a `strict` type follows from a policy alone. The
// other side has downed itself by then, if both began to miss each other at about the same time; if
// not, two sides act for so long, and the higher generation wins. That is the one overlap that
// keep-oldest adds to those of the other policies. Until it goes, the larger side may still count a
// majority, but it removes nobody, so it takes no shard from the side that stays.
//
// Pessimistic recount: nobody knows which version of the member set the other side has. While a
// version is not counted, a side must win in its list and in the one before. A counted version was
// repeated by a majority of the list before it, so who does not know it is a minority there. Who is
// known to leave is not the oldest: its own side always knows, and the others, if they do not,
// judge themselves beaten.
#pragma once

#include <cstdint>
#include <string>

#include "base/model/quorum.hpp"
#include "core/downing/picture.hpp"
#include "shardbus/options.hpp"

namespace shardbus::downing {

struct Rules {
  DowningPolicy policy = DowningPolicy::keep_majority;
  std::uint32_t quorum_size = 0;  // static_quorum: members that must reach each other
  bool down_if_alone = true;      // keep_oldest: the oldest goes if it is cut off from all others
  friend bool operator==(const Rules&, const Rules&) = default;
};

// Equal for equal rules: "static-quorum quorum_size=3".
std::string to_text(const Rules& rules);
// Two sides of so many members could each have quorum_size of them: then any split downs all.
bool too_many_members(const Rules& rules, std::size_t members);

// Full: a strict majority of the set (static-quorum: and quorum_size, or all of a smaller set), and
// while it is not counted also of the previous list. Evidence: the same over the lists minus the
// proven dead, or a full count over a set whose lineage is evidence.
Authority count(const Rules& rules, const MemberSet& set, const KeySet& agreeing,
                const KeySet& dead);
Quorum quorum_of(const Rules& rules);

// Ordered from good to bad.
// wins: removes the others, as it has a majority. goes_on: takes them for gone, see above.
// stays: keeps what it has, but cannot decide. goes: downs itself.
enum class Verdict : std::uint8_t { whole, wins, goes_on, stays, goes };
const char* to_text(Verdict verdict);

struct Judgement {
  Verdict verdict = Verdict::whole;
  std::string reason;  // why it goes
};
Judgement judge(const Rules& rules, const View& view, const Picture& picture);

// Whether a node that stood still for long may go on: nobody else can have decided meanwhile.
// `leaving`: as in View; the others do not take these for the oldest either.
bool survives_own_pause(const Rules& rules, const MemberSet& set, const KeySet& leaving,
                        NodeKey self);

}  // namespace shardbus::downing
