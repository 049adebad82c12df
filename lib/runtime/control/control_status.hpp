// What operators and tests see of the control plane.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/model/allocation.hpp"
#include "base/model/quorum.hpp"
#include "base/time.hpp"
#include "core/coordinator/coordinator.hpp"
#include "core/failure/failure.hpp"

namespace shardbus::control {

struct MemberStatus {
  Member member;
  failure::Reach reach = failure::Reach::reachable;
  double phi = 0;
  bool leaving = false;
  std::uint64_t load = 0;  // shards it owns
  NodeTraits traits;
};
struct ControlStatus {
  NodeInfo self;
  bool in_cluster = false;
  bool leaving = false;
  std::uint64_t cluster_id = 0;
  Term term;
  NodeKey coordinator;                    // 0: none known
  Authority authority = Authority::none;  // of this node
  Stamp stamp;
  bool counted = false;
  bool evidence = false;
  std::vector<MemberStatus> members;
  TableVersion table;
  std::vector<coordinator::Handoff> handoffs;  // only at the coordinator
  std::uint64_t waiting_moves = 0;             // likewise
  std::uint32_t min_members = 1;
  std::string downing;  // the policy with its settings
  std::string
      strict_waits{};     // why strict types run nowhere until an operator speaks; empty: not so
  std::string differs{};  // in which setting of a type from the cluster; empty: none
  // Names of nodes that are no members (any more), as far as this node remembers them.
  std::map<NodeKey, std::string> strangers{};
  std::string held_back{};  // "below minimum members: 1 of 3, not allocating"; empty: nothing is
};

// One change of the table, as this node learned it. `told`: by a delta; else the node pulled the
// whole table, and nobody knows why.
struct Change {
  Time at{};
  TableVersion version;
  ShardName shard;
  NodeKey from;
  TableEntry entry;
  bool told = false;
  Cause cause = Cause::placed;
  std::string actor;
};

// Inputs that were normal, but had no effect.
struct IgnoredInputs {
  std::uint64_t other_cluster = 0;
  std::uint64_t old_digest = 0;
  std::uint64_t old_incarnation = 0;
  std::uint64_t duplicate_name = 0;
  std::uint64_t unknown_sender = 0;
  std::uint64_t old_command = 0;
  std::uint64_t old_table = 0;
  std::uint64_t unknown_death = 0;
  std::uint64_t not_deciding = 0;
};

}  // namespace shardbus::control
