// Keep-majority: the quorum predicate, and who has to go when a silence stays.
// It says what to do; only a coordinator with authority removes anybody.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/model/quorum.hpp"
#include "base/time.hpp"

namespace shardbus::downing {

// Full: a strict majority of the set, and while it is not counted also of the previous list.
// Evidence: the same over the lists minus the proven dead, or a full count over a set whose lineage
// is evidence. There is no tie-break: with one, neighbouring sets have disjoint quorums
// (protocols.md A5).
Authority count(const MemberSet& set, const KeySet& agreeing, const KeySet& dead);

// How long a view of who is unreachable must stay the same before it is acted on: 1 s up to 5
// members, 1.5 s to 10, 2 s to 20, 3 s to 50, 4 s to 100, then 5 s.
Duration default_stable_after(std::size_t members);

struct Config {
  NodeKey self;
  Duration stable_after{};  // 0: default_stable_after
  // The losing side goes this much earlier than the winning side removes it, so that with equal
  // detection times nobody owns a shard twice.
  Duration loser_goes_first = std::chrono::milliseconds(250);
};

// --- input: the view of this node; also the tick ---
struct View {
  MemberSet set;
  KeySet unreachable;  // what this node cannot hear
  KeySet dead;
  // What the others say that they cannot hear; only of members that this node hears.
  std::map<NodeKey, KeySet> unreachable_by;
};

// --- outputs ---
struct RemoveUnreachable {
  KeySet members;
};  // for a coordinator; repeated while it holds
struct DownSelf {
  std::string reason;
};  // once
using Output = std::variant<RemoveUnreachable, DownSelf>;

std::string to_text(const Output& output);

enum class Side : std::uint8_t { whole, majority, minority, tie_won, tie_lost };

// Which side of the split this node is on, the dead left out. On an even split the side with the
// oldest member stays; that side still cannot decide anything.
Side side_of(NodeKey self, const View& view);

// Invariant: the answer depends on nothing but how long the same view has stood.
class Downing {
 public:
  explicit Downing(const Config& config) : config_(config) {}

  std::vector<Output> step(Time now, const View& view);
  [[nodiscard]] Time next_deadline() const { return deadline_; }
  [[nodiscard]] std::string state_text() const;

 private:
  void note_view(Time now, const View& view);
  [[nodiscard]] static KeySet widely_unreachable(const View& view);

  Config config_;
  KeySet members_;
  KeySet unreachable_;
  KeySet dead_;
  Side side_ = Side::whole;
  Time stable_since_{};
  Time deadline_ = kNever;
  bool downed_ = false;
};

}  // namespace shardbus::downing
