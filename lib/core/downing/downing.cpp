#include "core/downing/downing.hpp"

#include <algorithm>
#include <array>

#include "base/model/text.hpp"

namespace shardbus::downing {

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

std::vector<Output> Downing::step(Time now, const View& view) {
  note_view(now, view, picture_of(config_.self, view));
  judgement_ = judge(config_.rules, view, picture_);
  deadline_ = kNever;
  if (downed_) return {};
  const Duration stable_after = config_.stable_after.count() != 0
                                    ? config_.stable_after
                                    : default_stable_after(view.set.members.size());
  std::string reason;
  if (goes_now(now, stable_after, reason)) {
    downed_ = true;
    return {DownSelf{std::move(reason)}};
  }
  const Verdict verdict = judgement_.verdict;
  if (verdict == Verdict::goes || verdict == Verdict::stays) return {};
  std::vector<Output> out;
  KeySet removed;
  if (!picture_.gone.empty() && due(now, stable_since_ + stable_after)) {
    for (const NodeKey key : picture_.gone) {
      if (find_member(view.set, key) != nullptr) insert(removed, key);
    }
    if (verdict == Verdict::goes_on) out.emplace_back(GoOnWithout{picture_.gone});
  }
  for (const Outcast& outcast : picture_.outcasts) {
    if (outcast.key == config_.self || find_member(view.set, outcast.key) == nullptr) continue;
    if (due(now, end_of(outcast, stable_after))) insert(removed, outcast.key);
  }
  if (!removed.empty()) out.emplace_back(RemoveUnreachable{std::move(removed)});
  return out;
}

bool Downing::due(Time now, Time when) {
  if (now >= when) return true;
  deadline_ = std::min(deadline_, when);
  return false;
}

Time Downing::end_of(const Outcast& outcast, Duration stable_after) const {
  return outcasts_since_ + (outcast.widely ? 1 : config_.indirect_patience) * stable_after;
}

bool Downing::goes_now(Time now, Duration stable_after, std::string& reason) {
  const Duration earlier = std::min(config_.loser_goes_first, stable_after);
  // Nobody is gone, so it is for a bad link between two (down-all).
  const bool for_link = picture_.gone.empty() && !picture_.outcasts.empty();
  const Time since = for_link ? std::max(stable_since_, outcasts_since_) : stable_since_;
  if (judgement_.verdict == Verdict::goes && due(now, since + stable_after - earlier)) {
    reason = judgement_.reason;
    return true;
  }
  for (const Outcast& outcast : picture_.outcasts) {
    if (outcast.key != config_.self || !due(now, end_of(outcast, stable_after) - earlier)) continue;
    reason = outcast.widely ? "most of the others cannot be heard, or do not hear this node"
                            : "a link to another member is bad, though others reach both";
    return true;
  }
  return false;
}

void Downing::note_view(Time now, const View& view, Picture picture) {
  const bool same_outcasts = std::equal(
      picture.outcasts.begin(), picture.outcasts.end(), picture_.outcasts.begin(),
      picture_.outcasts.end(), [](const Outcast& a, const Outcast& b) { return a.key == b.key; });
  if (!same_outcasts) outcasts_since_ = now;
  if (!only_removals(view, picture)) stable_since_ = now;
  picture_ = std::move(picture);
  dead_ = view.dead;
}

// Whoever is removed or leaves no longer counts; that the others are silent is as old as before.
bool Downing::only_removals(const View& view, const Picture& picture) const {
  if (picture.ours != picture_.ours) return false;
  const bool nobody_died = std::all_of(view.dead.begin(), view.dead.end(),
                                       [this](NodeKey key) { return contains(dead_, key); });
  return nobody_died && std::all_of(picture.gone.begin(), picture.gone.end(),
                                    [this](NodeKey key) { return contains(picture_.gone, key); });
}

std::string to_text(const Output& output) {
  if (const auto* remove = std::get_if<RemoveUnreachable>(&output)) {
    return "remove_unreachable " + shardbus::to_text(remove->members);
  }
  if (const auto* without = std::get_if<GoOnWithout>(&output)) {
    return "go_on_without " + shardbus::to_text(without->members);
  }
  return "down_self " + std::get<DownSelf>(output).reason;
}

std::string Downing::state_text() const {
  std::string text = std::string("downing ") + to_text(judgement_.verdict) + " gone " +
                     shardbus::to_text(picture_.gone) + " since " +
                     shardbus::to_text(stable_since_.time_since_epoch());
  if (!picture_.outcasts.empty()) {
    text += " outcasts";
    for (const Outcast& outcast : picture_.outcasts) {
      text += " " + shardbus::to_text(outcast.key) + (outcast.widely ? "(widely)" : "");
    }
    text += " since " + shardbus::to_text(outcasts_since_.time_since_epoch());
  }
  return text + (downed_ ? " downed" : "");
}

}  // namespace shardbus::downing
