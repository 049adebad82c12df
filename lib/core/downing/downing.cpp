#include "core/downing/downing.hpp"

#include <algorithm>
#include <array>

#include "base/model/text.hpp"

namespace shardbus::downing {
namespace {

Authority count_list(const KeySet& list, const KeySet& agreeing, const KeySet& dead) {
  std::size_t living = 0;
  std::size_t yes = 0;
  for (const NodeKey key : list) {
    if (contains(dead, key)) continue;
    ++living;
    if (contains(agreeing, key)) ++yes;
  }
  if (yes * 2 > list.size()) return Authority::full;
  // Of a list whose members are all dead nobody can decide, so nobody has to agree.
  if (living == 0 && !list.empty()) return Authority::evidence;
  return yes * 2 > living ? Authority::evidence : Authority::none;
}

}  // namespace

Authority count(const MemberSet& set, const KeySet& agreeing, const KeySet& dead) {
  const KeySet members = keys_of(set.members);
  const bool nobody = std::none_of(members.begin(), members.end(), [&](NodeKey key) {
    return contains(agreeing, key) && !contains(dead, key);
  });
  if (nobody) return Authority::none;
  Authority result = count_list(members, agreeing, dead);
  if (!set.counted) result = std::min(result, count_list(set.previous, agreeing, dead));
  return set.evidence ? std::min(result, Authority::evidence) : result;
}

Duration default_stable_after(std::size_t members) {
  struct Step {
    std::size_t members;
    std::int64_t ms;
  };
  static constexpr std::array<Step, 5> kSteps = {
      {{5, 1000}, {10, 1500}, {20, 2000}, {50, 3000}, {100, 4000}}};
  for (const Step& step : kSteps) {
    if (members <= step.members) return std::chrono::milliseconds(step.ms);
  }
  return std::chrono::seconds(5);
}

Side side_of(NodeKey self, const View& view) {
  std::size_t living = 0;
  std::size_t heard = 0;
  bool oldest_heard = false;
  for (const Member& member : view.set.members) {
    const NodeKey key = member.node.key;
    if (contains(view.dead, key)) continue;
    const bool hears = key == self || !contains(view.unreachable, key);
    if (living == 0) oldest_heard = hears;
    ++living;
    if (hears) ++heard;
  }
  if (heard == living) return Side::whole;
  if (heard * 2 > living) return Side::majority;
  if (heard * 2 < living) return Side::minority;
  return oldest_heard ? Side::tie_won : Side::tie_lost;
}

std::vector<Output> Downing::step(Time now, const View& view) {
  note_view(now, view);
  deadline_ = kNever;
  if (side_ == Side::whole || downed_) return {};
  const Duration stable_after = config_.stable_after.count() != 0
                                    ? config_.stable_after
                                    : default_stable_after(view.set.members.size());
  const bool loses = side_ == Side::minority || side_ == Side::tie_lost;
  const Duration patience =
      loses ? std::max(Duration{}, stable_after - config_.loser_goes_first) : stable_after;
  if (now < stable_since_ + patience) {
    deadline_ = stable_since_ + patience;
    return {};
  }
  if (loses) {
    downed_ = true;
    return {DownSelf{side_ == Side::minority ? "minority" : "even split without the oldest"}};
  }
  KeySet leaving = widely_unreachable(view);
  if (side_ == Side::tie_won || leaving.empty()) return {};
  return {RemoveUnreachable{std::move(leaving)}};
}

void Downing::note_view(Time now, const View& view) {
  KeySet members = keys_of(view.set.members);
  if (members == members_ && view.unreachable == unreachable_ && view.dead == dead_) return;
  members_ = std::move(members);
  unreachable_ = view.unreachable;
  dead_ = view.dead;
  side_ = side_of(config_.self, view);
  stable_since_ = now;
}

// One bad link must not remove a healthy node: most of those whom this node hears have to miss it.
KeySet Downing::widely_unreachable(const View& view) {
  KeySet result;
  for (const NodeKey key : view.unreachable) {
    if (find_member(view.set, key) == nullptr || contains(view.dead, key)) continue;
    std::size_t missing = 1;
    for (const auto& [by, keys] : view.unreachable_by) missing += contains(keys, key) ? 1 : 0;
    if (missing * 2 > view.unreachable_by.size() + 1) insert(result, key);
  }
  return result;
}

std::string to_text(const Output& output) {
  if (const auto* remove = std::get_if<RemoveUnreachable>(&output)) {
    return "remove_unreachable " + shardbus::to_text(remove->members);
  }
  return "down_self " + std::get<DownSelf>(output).reason;
}

std::string Downing::state_text() const {
  static constexpr std::array kSides = {"whole", "majority", "minority", "tie_won", "tie_lost"};
  return std::string("downing ") + kSides.at(static_cast<std::size_t>(side_)) + " unreachable " +
         shardbus::to_text(unreachable_) + " since " +
         shardbus::to_text(stable_since_.time_since_epoch()) + (downed_ ? " downed" : "");
}

}  // namespace shardbus::downing
