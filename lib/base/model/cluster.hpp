// What nodes tell each other about the cluster: plain values, no bytes, no I/O.
// The bytes of each are defined in lib/wire/PROTOCOL.md; `wire` encodes them, `core` decides on
// them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace shardbus {

// One incarnation of a node and where it listens. Endpoints are ZeroMQ TCP endpoints as others
// reach them ("tcp://10.0.0.1:7400").
struct NodeInfo {
  std::string name;               // node id, 1..64 bytes of [A-Za-z0-9._:-]
  std::uint64_t incarnation = 0;  // microseconds since 1970 at its start; strictly grows per name
  NodeKey key;                    // node_key(name, incarnation)
  std::string front;              // clients and workers
  std::string peer;               // other nodes
  std::string gossip;             // PUB
  friend bool operator==(const NodeInfo&, const NodeInfo&) = default;
};

enum class MemberState : std::uint8_t { joining, up, leaving, exiting, down, removed };

// A node as the cluster sees it. Reachability is an observation and not part of it.
struct Member {
  NodeInfo node;
  MemberState state = MemberState::up;
  std::uint64_t age = 0;  // number of the set version that brought it in; the lowest is the oldest
  friend bool operator==(const Member&, const Member&) = default;
};

// Order of versions of the member set (protocols.md section 2, rule 1).
struct Stamp {
  Term term;
  NodeKey claimant;
  std::uint64_t number = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): a defaulted <=> compares with 0
  friend constexpr auto operator<=>(const Stamp&, const Stamp&) = default;
};

// Versioned list of members. `previous` is the list that the last counted version had; it is needed
// for joint counting while this version is not counted yet. A stamp belongs to one list for good,
// so a digest may name a set by its stamp and flags alone (`is_brief`).
struct MemberSet {
  Stamp stamp;
  std::vector<Member> members;    // ordered by age, then key
  std::vector<NodeKey> previous;  // ordered
  bool counted = false;           // a quorum of `members` and of `previous` has repeated it
  bool evidence = false;          // counted at some point by evidence authority only
  friend bool operator==(const MemberSet&, const MemberSet&) = default;
};

// The one claimant that a member repeats. `digest` is the number of the claimant's digest that the
// repeat answers: the claimant counts the age of its lease from the sending of that digest.
struct Vote {
  Term term;
  NodeKey claimant;
  std::uint64_t digest = 0;
  friend bool operator==(const Vote&, const Vote&) = default;
};

// Where the shards of a type go, and when. The same on all nodes that host it.
struct PlacementSettings {
  std::string strategy = "least-shards";
  std::string role = {};  // only nodes that have it; "": all
  bool spread_zones = false;
  bool strict = false;  // owners run it only with a majority behind them; moves it late, if at all
  friend bool operator==(const PlacementSettings&, const PlacementSettings&) = default;
};

// An entity type that a node can run (in-process or through its workers).
struct HostedType {
  std::string name;
  std::uint32_t shard_count = 0;
  PlacementSettings placement = {};
  bool attached = false;  // by workers only, which come and go; known to their own node alone
  friend bool operator==(const HostedType&, const HostedType&) = default;
};

// What placement needs to know of a node. They do not change during an incarnation.
struct NodeTraits {
  std::string zone = {};
  std::vector<std::string> roles = {};  // ordered
  std::uint32_t capacity = 1;           // 1..1000, in proportion to other nodes
  std::string version = {};             // of the software; "": older than such statements
  friend bool operator==(const NodeTraits&, const NodeTraits&) = default;
};

inline const HostedType* find_hosted(const std::vector<HostedType>& types, std::string_view name) {
  const auto found = std::find_if(types.begin(), types.end(),
                                  [&](const HostedType& type) { return type.name == name; });
  return found == types.end() ? nullptr : &*found;
}

// Every node has the role "".
inline bool has_role(const NodeTraits& traits, std::string_view role) {
  return role.empty() ||
         std::find(traits.roles.begin(), traits.roles.end(), role) != traits.roles.end();
}

// That a member heard a digest of an owner of strict types, and has it in its member set.
struct Repeat {
  NodeKey node;
  std::uint64_t digest = 0;
  friend bool operator==(const Repeat&, const Repeat&) = default;
};

// Version of the allocation table: whose table it is and how often that coordinator changed it.
struct TableVersion {
  Term term;
  NodeKey claimant;
  std::uint64_t number = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): a defaulted <=> compares with 0
  friend constexpr auto operator<=>(const TableVersion&, const TableVersion&) = default;
};

// All that a node claims, published every 200 ms and at once on a change (PROTOCOL.md "Digest").
struct Digest {
  std::string cluster;           // name from the configuration
  std::uint64_t cluster_id = 0;  // random, 53 bits; 0 while the node belongs to no cluster yet
  NodeInfo from;
  std::uint64_t number = 0;  // counts this incarnation's publications
  Vote vote;
  Term resigned;  // highest term that this node claimed and gave up
  MemberSet set;
  std::vector<NodeKey> unreachable;  // what this node cannot hear, ordered
  std::vector<NodeKey> dead;         // proven dead, ordered
  std::vector<HostedType> hosts;     // ordered by name
  TableVersion table;
  std::uint64_t table_hash = 0;  // 53 bits
  std::uint64_t load = 0;        // shards it owns
  bool leaving = false;          // asks to be moved off and removed
  NodeTraits traits = {};
  std::vector<Repeat> repeats = {};  // of the newest digests of members that host strict types
  friend bool operator==(const Digest&, const Digest&) = default;
};

}  // namespace shardbus
