// The promises of DESIGN section 3 about owners and deciders, and the bounds of buffers, checked
// after every event of the simulation. Those about messages are in ledger.hpp.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/node.hpp"

namespace shardbus::sim {

struct OwnedShard {
  ShardName shard;
  Generation generation;
  friend bool operator==(const OwnedShard&, const OwnedShard&) = default;
};

// Shards whose handlers a node would start now.
std::vector<OwnedShard> owned_shards(const runtime::DataPlane& data);

// What is above its limit, each divided by `divisor`.
std::optional<std::string> check_limits(Node& node, std::uint64_t divisor);

// - one node per (shard, generation), ever;
// - on one incarnation the generation of an owned shard never goes back;
// - no two owners that may run a shard of a strict type, ever;
// - no two awake owners of a shard, unless a partition happened in this run (`overlap_allowed`);
// - at most one node with full authority per term, ever; with partitions, evidence may repeat one,
//   and become full once an operator says that the others are gone for good;
// - on one incarnation the repeated term, the stamp and the table's version never go back, and a
//   term has one claimant; nor does a shard's generation in the table of one term, or in any
//   without a partition, but for a shard that nobody is known to have.
class Checker {
 public:
  Checker(bool overlap_allowed, std::set<std::string> strict)
      : overlap_allowed_(overlap_allowed), strict_(std::move(strict)) {}

  // After an event at `node`. Returns what broke.
  std::optional<std::string> check(Time now, const Node& node);
  void gone(Time now, const Node& node);  // its process ended or sleeps: it owns nothing now
  void allow_overlap(bool allowed) { overlap_allowed_ = allowed; }
  void confirmed() { confirmed_ = true; }  // see ControlPlane::confirm

  [[nodiscard]] const std::set<std::string>& strict() const { return strict_; }
  [[nodiscard]] std::uint64_t overlaps() const { return overlaps_; }
  [[nodiscard]] Duration longest_overlap() const { return longest_overlap_; }

 private:
  struct Decider {
    NodeKey key;  // the first one of the term
    bool full = false;
  };
  struct Memory {
    Vote vote;
    Stamp stamp;
    TableVersion table;
    AllocationTable entries;
  };

  std::optional<std::string> check_right(const Node& node);
  std::optional<std::string> check_progress(const Node& node);
  std::optional<std::string> check_table(Memory& memory, const Node& node) const;
  std::optional<std::string> check_owners(Time now, const Node& node);
  std::optional<std::string> check_owner(Time now, NodeKey self, const OwnedShard& shard);
  std::optional<std::string> check_strict(Time now, const Node& node);
  void forget_owner(Time now, NodeKey self);
  void end_overlap(Time now, const ShardName& shard);

  bool overlap_allowed_;
  bool confirmed_ = false;
  std::set<std::string> strict_;   // types
  std::map<NodeKey, Time> right_;  // until when an owner may run its strict shards
  std::map<std::pair<ShardName, Generation>, NodeKey> generations_;
  std::map<std::pair<NodeKey, ShardName>, Generation> last_owned_;
  std::map<ShardName, std::map<NodeKey, Generation>> owners_;
  std::map<NodeKey, std::vector<OwnedShard>> owned_by_;
  std::map<std::pair<std::uint64_t, Term>, Decider> deciders_;  // by cluster id and term
  std::map<NodeKey, Memory> memory_;
  std::map<ShardName, Time> overlap_since_;
  std::uint64_t overlaps_ = 0;
  Duration longest_overlap_{};
};

}  // namespace shardbus::sim
