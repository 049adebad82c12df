// Who has to go when a silence stays, and when: gives the policy the time it needs.
// It says what to do; only a coordinator with authority removes anybody.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "core/downing/policy.hpp"

namespace shardbus::downing {

// How long a view of who is unreachable must stay the same before it is acted on: 1 s up to 5
// members, 1.5 s to 10, 2 s to 20, 3 s to 50, 4 s to 100, then 5 s.
Duration default_stable_after(std::size_t members);

struct Config {
  NodeKey self;
  Rules rules{};
  Duration stable_after{};  // 0: default_stable_after
  // Whoever goes does so this much earlier than others remove it, so that with equal detection
  // times nobody owns a shard twice.
  Duration loser_goes_first = std::chrono::milliseconds(250);
  // A link that is bad between two nodes only, while others reach both, may recover: it is given so
  // many times stable_after.
  int indirect_patience = 3;
};

// --- outputs ---
struct RemoveUnreachable {
  KeySet members;
};  // for a coordinator; repeated while it holds
struct GoOnWithout {
  KeySet members;
};  // they are taken for gone, see policy.hpp; repeated while it holds
struct DownSelf {
  std::string reason;
};  // once
using Output = std::variant<RemoveUnreachable, GoOnWithout, DownSelf>;

std::string to_text(const Output& output);

// Invariant: the answer depends on nothing but the view and how long the same one has stood.
class Downing {
 public:
  explicit Downing(const Config& config) : config_(config) {}

  std::vector<Output> step(Time now, const View& view);
  [[nodiscard]] Time next_deadline() const { return deadline_; }
  [[nodiscard]] std::string state_text() const;

 private:
  void note_view(Time now, const View& view, Picture picture);
  [[nodiscard]] bool only_removals(const View& view, const Picture& picture) const;
  // Whether `when` has come; else it wakes up then.
  bool due(Time now, Time when);
  [[nodiscard]] Time end_of(const Outcast& outcast, Duration stable_after) const;
  bool goes_now(Time now, Duration stable_after, std::string& reason);

  Config config_;
  Picture picture_;
  KeySet dead_;
  Judgement judgement_;
  Time stable_since_{};
  Time outcasts_since_{};
  Time deadline_ = kNever;
  bool downed_ = false;
};

}  // namespace shardbus::downing
