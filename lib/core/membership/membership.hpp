// Holds the versioned member set of one node: adopts newer ones, counts who repeats this one, and
// for a coordinator makes one change at a time (protocols.md section 2, rules 1, 6 to 9).
// Whether this node may decide is told to it; it never asks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/marks.hpp"
#include "base/model/quorum.hpp"
#include "base/time.hpp"

namespace shardbus::membership {

struct Config {
  NodeKey self;
  Quorum quorum;
  Duration full_patience = std::chrono::seconds(1);  // before a version counts by evidence alone
};

// What a coordinator wants of the set; the first wish that can be met becomes the next version.
struct Wishes {
  KeySet dead;                    // proven dead: removed
  KeySet unreachable;             // silent for too long: removed
  KeySet reachable;               // whom this node hears, itself too
  KeySet leaving;                 // asked to leave: up -> leaving
  KeySet drained;                 // own nothing any more: leaving -> exiting -> removed
  std::vector<NodeInfo> joiners;  // in the order in which they asked
  KeySet presumed;                // taken for gone by the downing policy: they do not count
  bool confirmed = false;         // by an operator: all that evidence removed is gone for good
};

// --- inputs ---
struct Create {
  NodeInfo node;
};  // a cluster of one
struct Seen {
  NodeKey from;
  MemberSet set;
};  // from a digest: adopt it, and count its sender; a brief one says what its sender has
struct Decide {
  Term term;
  Wishes wishes;
};  // this node decides in `term`
using Input = std::variant<Create, Seen, Decide>;

// --- outputs ---
struct Adopted {
  Stamp stamp;
};
struct Counted {
  Stamp stamp;
  bool evidence;
};
struct Proposed {
  Stamp stamp;
  std::string change;
};
struct SelfRemoved {
  Stamp stamp;
};
struct Missing {
  Stamp stamp;
};  // somebody has this newer version; its list has to be asked for
using Output = std::variant<Adopted, Counted, Proposed, SelfRemoved, Missing>;

std::string to_text(const Output& output);

// Invariants: the stamp never goes back; a version is changed only after it counted and only in the
// decider's own term; an incarnation that was replaced or removed never returns.
class Membership {
 public:
  explicit Membership(Config config) : config_(std::move(config)) {}

  std::vector<Output> step(Time now, const Input& input);
  [[nodiscard]] static Time next_deadline() { return kNever; }
  [[nodiscard]] std::string state_text() const;

  [[nodiscard]] const MemberSet& set() const { return set_; }
  [[nodiscard]] bool in_set() const { return find_member(set_, config_.self) != nullptr; }
  // Sets older than this node's, which change nothing.
  [[nodiscard]] std::uint64_t ignored_old() const { return ignored_old_; }
  [[nodiscard]] const Marks& marks() const { return rare_; }

 private:
  void create(const NodeInfo& node, std::vector<Output>& out);
  void seen(const Seen& input, std::vector<Output>& out);
  void merge_equal(const MemberSet& other, std::vector<Output>& out);
  void decide(const Decide& input, std::vector<Output>& out);
  void note_removal(std::vector<Output>& out);
  bool try_count(const Wishes& wishes, std::vector<Output>& out);
  bool change(const Wishes& wishes, std::vector<Output>& out);
  bool remove_first(const KeySet& keys, const char* why, std::vector<Output>& out);
  bool confirm(const Wishes& wishes, std::vector<Output>& out);
  bool add_first(const std::vector<NodeInfo>& joiners, std::vector<Output>& out);
  bool advance_states(const Wishes& wishes, std::vector<Output>& out);
  [[nodiscard]] bool keeps_quorum(NodeKey without, const Wishes& wishes) const;
  void propose(std::vector<Member> members, Term term, std::string what, std::vector<Output>& out);

  Config config_;
  MemberSet set_;
  std::map<NodeKey, Stamp> repeated_;  // by other members
  Time now_{};
  Time proposed_at_{};
  bool was_member_ = false;
  bool removed_ = false;
  std::uint64_t ignored_old_ = 0;
  Marks rare_;
};

}  // namespace shardbus::membership
