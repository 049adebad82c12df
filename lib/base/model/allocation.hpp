// The allocation table and the messages that move a shard.
// The states and rules are in lib/wire/PROTOCOL.md "Handoff".
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/model/cluster.hpp"

namespace shardbus {

// Names one shard of one type in control messages (the data path uses small indices).
struct ShardName {
  std::string type;
  ShardId shard;
  friend auto operator<=>(const ShardName&, const ShardName&) = default;
};

// Who owns one shard. An entry without an owner is not allocated.
struct TableEntry {
  NodeKey owner;
  Generation generation;
  friend bool operator==(const TableEntry&, const TableEntry&) = default;
};

struct TypeTable {
  std::string name;
  std::uint32_t shard_count = 0;
  std::vector<TableEntry> entries;  // indexed by shard, `shard_count` long
  friend bool operator==(const TypeTable&, const TypeTable&) = default;
};

// Where an operator wants a shard; the node need not be there yet.
struct Pin {
  ShardName shard;
  std::string node;
  friend bool operator==(const Pin&, const Pin&) = default;
};

// What operators have ordered to last. It travels with the table, so it outlives the coordinator
// that took the order, and names nodes by name, so it holds for their next incarnations too.
struct Orders {
  std::vector<std::string> cordoned;  // get no more shards; ordered
  std::vector<std::string> draining;  // get none, and lose what they have; ordered
  bool suspended = false;             // no moves for balance
  std::vector<Pin> pins;              // ordered by shard
  friend bool operator==(const Orders&, const Orders&) = default;
};

// Shard -> owner for all types. Types are ordered by name.
struct AllocationTable {
  TableVersion version;
  std::vector<TypeTable> types;
  Orders orders{};
  friend bool operator==(const AllocationTable&, const AllocationTable&) = default;
};

// Why an entry of the table changed.
enum class Cause : std::uint8_t {
  placed = 0,    // it had no owner
  lost = 1,      // its owner died, or was removed
  balance = 2,   // so that nodes have equal shares
  leaving = 3,   // its owner leaves, or may not own it any more
  drained = 4,   // an operator drains its owner
  ordered = 5,   // an operator moved it
  pinned = 6,    // an operator pinned it
  undone = 7,    // a move was called off, and the old owner goes on
  reported = 8,  // a new coordinator learned it from the owner
  unhosted = 9,  // no node hosts its type any more
};

// One changed entry of the table. `actor`: the operator behind it; empty: the coordinator alone.
struct TableChange {
  ShardName shard;
  std::uint32_t shard_count = 0;
  TableEntry entry;
  Cause cause = Cause::placed;
  std::string actor{};
  friend bool operator==(const TableChange&, const TableChange&) = default;
};

// Published at once when a coordinator changes the table. Applies to `from` only; anybody else
// pulls the whole table.
struct TableDelta {
  TableVersion from;
  TableVersion to;
  std::vector<TableChange> changes;
  bool new_orders = false;
  Orders orders{};  // all of them, where they changed
  friend bool operator==(const TableDelta&, const TableDelta&) = default;
};

enum class RegionState : std::uint8_t {
  none = 0,
  owner = 1,
  sending = 2,
  forward = 3,
  incoming = 4,
  frozen = 5,
};

// --- commands of a coordinator to a region. Idempotent; repeated until answered. ---
struct BeginHandoff {  // to the owner
  ShardName shard;
  Generation generation;  // of the next owner
  NodeKey next;
  friend bool operator==(const BeginHandoff&, const BeginHandoff&) = default;
};
struct PrepareHandoff {  // to the next owner
  ShardName shard;
  Generation generation;
  NodeKey from;
  friend bool operator==(const PrepareHandoff&, const PrepareHandoff&) = default;
};
struct FreezeShard {  // to the next owner: say whether you own `generation`, or never will
  ShardName shard;
  Generation generation;
  NodeKey from;
  friend bool operator==(const FreezeShard&, const FreezeShard&) = default;
};
struct RehomeShard {  // to any node: own it afresh
  ShardName shard;
  std::uint32_t shard_count = 0;
  Generation generation;
  Generation
      frozen;  // of a handoff that was called off: who still sends it takes back what it sent
  friend bool operator==(const RehomeShard&, const RehomeShard&) = default;
};
using RegionCommand = std::variant<BeginHandoff, PrepareHandoff, FreezeShard, RehomeShard>;

// --- what a region tells the coordinator. ---
enum class RegionAnswerKind : std::uint8_t {
  owned = 1,   // this node owns the shard with `generation` (also the ACK of a move)
  frozen = 2,  // this node does not own `generation` and never will
};
struct RegionAnswer {
  RegionAnswerKind kind = RegionAnswerKind::owned;
  ShardName shard;
  Generation generation;
  NodeKey node;
  friend bool operator==(const RegionAnswer&, const RegionAnswer&) = default;
};

// One shard in a region's report to a new coordinator.
struct ReportedShard {
  ShardName shard;
  std::uint32_t shard_count = 0;
  RegionState state = RegionState::none;
  Generation generation;
  NodeKey other;  // next (sending, forward) or from (incoming)
  friend bool operator==(const ReportedShard&, const ReportedShard&) = default;
};
struct ReportRequest {
  Term term;
  NodeKey claimant;
  friend bool operator==(const ReportRequest&, const ReportRequest&) = default;
};
struct RegionReport {
  Term term;
  NodeKey claimant;
  NodeKey node;
  std::vector<ReportedShard> shards;  // every shard whose state is not `none`, ordered
  friend bool operator==(const RegionReport&, const RegionReport&) = default;
};

// --- between control loops, over the peer links ---
struct Setting {  // of a node's configuration, as text
  std::string name;
  std::string value;
  friend bool operator==(const Setting&, const Setting&) = default;
};
struct JoinRequest {  // from a node that is in no cluster to the coordinator it knows
  std::string cluster;
  NodeInfo node;
  std::vector<HostedType> hosts;
  std::vector<Setting> settings{};  // that all nodes of a cluster should have alike
  friend bool operator==(const JoinRequest&, const JoinRequest&) = default;
};
struct JoinRefused {  // the text shows both values
  std::uint16_t code = 0;
  std::string text;
  friend bool operator==(const JoinRefused&, const JoinRefused&) = default;
};
struct TablePull {  // "I have `have`; send me yours"
  TableVersion have;
  friend bool operator==(const TablePull&, const TablePull&) = default;
};
struct TablePart {  // a whole table (in parts only when it exceeds a frame; `last` ends it)
  AllocationTable table;
  friend bool operator==(const TablePart&, const TablePart&) = default;
};
struct DownRequest {  // an operator's word that a member is dead
  NodeKey node;
  friend bool operator==(const DownRequest&, const DownRequest&) = default;
};
using ControlMessage =
    std::variant<BeginHandoff, PrepareHandoff, FreezeShard, RehomeShard, RegionAnswer,
                 ReportRequest, RegionReport, JoinRequest, JoinRefused, TablePull, TablePart,
                 DownRequest, Digest, TableDelta>;

}  // namespace shardbus
