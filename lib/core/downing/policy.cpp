#include "core/downing/policy.hpp"

#include <algorithm>
#include <array>

namespace shardbus::downing {
namespace {

// What static-quorum asks of a list: a set that is smaller yet must be whole.
std::size_t quorum_in(const Rules& rules, std::size_t members) {
  if (rules.policy != DowningPolicy::static_quorum) return 0;
  return std::min<std::size_t>(rules.quorum_size, members);
}

Authority count_list(const Rules& rules, const KeySet& list, const KeySet& agreeing,
                     const KeySet& dead) {
  std::size_t living = 0;
  std::size_t yes = 0;
  for (const NodeKey key : list) {
    if (contains(dead, key)) continue;
    ++living;
    if (contains(agreeing, key)) ++yes;
  }
  const bool enough = yes >= quorum_in(rules, list.size());
  if (yes * 2 > list.size() && enough) return Authority::full;
  // Of a list whose members are all dead nobody can decide, so nobody has to agree.
  if (living == 0 && !list.empty()) return Authority::evidence;
  return yes * 2 > living && enough ? Authority::evidence : Authority::none;
}

// One list of members, split in two; the dead are left out of all but `members`.
struct Split {
  std::size_t members = 0;
  std::size_t living = 0;
  std::size_t ours = 0;
  bool with_oldest = false;
};

Split split_of(const KeySet& list, const View& view, const Picture& picture) {
  Split split;
  split.members = list.size();
  NodeKey oldest;
  NodeKey oldest_of_all;
  for (const NodeKey key : picture.living) {
    if (!contains(list, key)) continue;
    ++split.living;
    if (contains(picture.ours, key)) ++split.ours;
    if (oldest_of_all == kNoNode) oldest_of_all = key;
    if (oldest == kNoNode && !contains(view.leaving, key)) oldest = key;
  }
  if (oldest == kNoNode) oldest = oldest_of_all;
  split.with_oldest = contains(picture.ours, oldest);
  return split;
}

Judgement by_majority(const Split& split) {
  if (split.ours * 2 > split.living) return {Verdict::wins, {}};
  if (split.ours * 2 < split.living) return {Verdict::goes, "minority"};
  if (split.with_oldest) return {Verdict::stays, {}};
  return {Verdict::goes, "even split without the oldest"};
}

Judgement by_quorum_size(const Rules& rules, const Split& split) {
  const bool whole = split.ours == split.living;
  if (split.ours < quorum_in(rules, split.members)) {
    return {Verdict::goes, "fewer than quorum_size members reach each other"};
  }
  if (whole) return {};
  if (too_many_members(rules, split.members)) {
    return {Verdict::goes, "a split of more than 2 * quorum_size - 1 members"};
  }
  // A set smaller than quorum_size must be whole, which this one is not.
  return {Verdict::wins, {}};
}

Judgement by_oldest(const Rules& rules, const Split& split) {
  const bool many = rules.down_if_alone && split.living > 2;
  if (split.with_oldest) {
    if (many && split.ours == 1) return {Verdict::goes, "the oldest, and alone"};
    return {split.ours * 2 > split.living ? Verdict::wins : Verdict::goes_on, {}};
  }
  if (many && split.ours + 1 == split.living) return {Verdict::wins, {}};
  return {Verdict::goes, "without the oldest"};
}

Judgement judge_list(const Rules& rules, const KeySet& list, const View& view,
                     const Picture& picture) {
  const Split split = split_of(list, view, picture);
  if (rules.policy == DowningPolicy::static_quorum) return by_quorum_size(rules, split);
  if (split.ours == split.living) return {};
  switch (rules.policy) {
    case DowningPolicy::keep_oldest:
      return by_oldest(rules, split);
    case DowningPolicy::down_all:
      return {Verdict::goes, "down-all: somebody cannot be heard"};
    case DowningPolicy::keep_majority:
    case DowningPolicy::static_quorum:
    case DowningPolicy::lease_majority:
      break;
  }
  return by_majority(split);
}

}  // namespace

std::string to_text(const Rules& rules) {
  switch (rules.policy) {
    case DowningPolicy::keep_majority:
      return "keep-majority";
    case DowningPolicy::static_quorum:
      return "static-quorum quorum_size=" + std::to_string(rules.quorum_size);
    case DowningPolicy::keep_oldest:
      return std::string("keep-oldest down_if_alone=") + (rules.down_if_alone ? "true" : "false");
    case DowningPolicy::down_all:
      return "down-all";
    case DowningPolicy::lease_majority:
      break;
  }
  return "lease-majority";
}

bool too_many_members(const Rules& rules, std::size_t members) {
  return rules.policy == DowningPolicy::static_quorum &&
         members + 1 > 2 * std::size_t{rules.quorum_size};
}

Authority count(const Rules& rules, const MemberSet& set, const KeySet& agreeing,
                const KeySet& dead) {
  const KeySet members = keys_of(set.members);
  const bool nobody = std::none_of(members.begin(), members.end(), [&](NodeKey key) {
    return contains(agreeing, key) && !contains(dead, key);
  });
  if (nobody) return Authority::none;
  Authority result = count_list(rules, members, agreeing, dead);
  if (!set.counted) result = std::min(result, count_list(rules, set.previous, agreeing, dead));
  return set.evidence ? std::min(result, Authority::evidence) : result;
}

Quorum quorum_of(const Rules& rules) {
  return [rules](const MemberSet& set, const KeySet& agreeing, const KeySet& dead) {
    return count(rules, set, agreeing, dead);
  };
}

const char* to_text(Verdict verdict) {
  static constexpr std::array kNames = {"whole", "wins", "goes_on", "stays", "goes"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

Judgement judge(const Rules& rules, const View& view, const Picture& picture) {
  Judgement result = judge_list(rules, keys_of(view.set.members), view, picture);
  if (!view.set.counted && !view.set.previous.empty()) {
    Judgement before = judge_list(rules, view.set.previous, view, picture);
    if (before.verdict > result.verdict) result = std::move(before);
  }
  if (rules.policy == DowningPolicy::down_all && !picture.outcasts.empty()) {
    return {Verdict::goes, "down-all: not all hear each other"};
  }
  return result;
}

bool survives_own_pause(const Rules& rules, const MemberSet& set, const KeySet& leaving,
                        NodeKey self) {
  const std::size_t members = set.members.size();
  if (members < 2) return true;
  const auto oldest =
      std::find_if(set.members.begin(), set.members.end(),
                   [&](const Member& member) { return !contains(leaving, member.node.key); });
  if ((oldest == set.members.end() ? set.members.front() : *oldest).node.key != self) return false;
  switch (rules.policy) {
    case DowningPolicy::keep_majority:
    case DowningPolicy::lease_majority:
      return members == 2;
    case DowningPolicy::keep_oldest:
      return members == 2 || !rules.down_if_alone;
    case DowningPolicy::static_quorum:
    case DowningPolicy::down_all:
      break;
  }
  return false;
}

}  // namespace shardbus::downing
