// What goes into the coordinator and comes out of it, and what it shows of itself.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/model/allocation.hpp"
#include "base/model/keys.hpp"
#include "base/time.hpp"
#include "shardbus/status.hpp"

namespace shardbus::coordinator {

// A node that is in the member set.
struct Peer {
  NodeKey key;
  MemberState state = MemberState::up;
  bool reachable = true;
  bool dead = false;
  bool leaving = false;
  bool heard = true;  // `hosts` and `traits` are known
  std::vector<HostedType> hosts;
  NodeTraits traits = {};
  std::string name = {};
  friend bool operator==(const Peer&, const Peer&) = default;
};

// --- inputs (RegionReport and RegionAnswer are those of the model) ---
struct Decide {
  Term term;
  AllocationTable known;
};               // from now on; `known` is this node's table
struct Stop {};  // at once
struct View {
  std::vector<Peer> peers;  // oldest first; who is not in it is gone
  bool first_homes = true;  // shards that nobody ever owned may be given out
  // Full authority over a counted set without dead members, for more than a lease after the last
  // removal counted: whoever owned a shard of a strict type and is not in it has stopped.
  bool strict_homes = true;
  bool newer_table =
      false;  // a member that is heard has a newer table than this node: it is coming
};
struct Tick {};  // acts on everything that was heard
// What an operator wants. It lasts with the table, except `move` and `apply`, which are done once:
// a later coordinator knows nothing of what they have not moved yet.
enum class OrderKind : std::uint8_t {
  cordon,    // node: gets no more shards
  drain,     // node: cordoned, and its shards go elsewhere
  uncordon,  // node: undoes both
  suspend,   // no moves for balance
  resume,
  move,     // shard to node, once
  pin,      // shard to node, and there it stays
  unpin,    // shard
  apply,    // the moves of `plan`, if that still is the plan
  confirm,  // for the member set, not for shards: whom evidence removed is gone for good
};
struct Order {
  OrderKind kind = OrderKind::resume;
  std::string node;
  ShardName shard;
  std::string plan;
  std::string actor;
};
using Input = std::variant<Decide, Stop, View, RegionReport, RegionAnswer, Order, Tick>;

// --- outputs ---
struct Command {
  NodeKey to;
  RegionCommand command;
};
struct AskReport {
  NodeKey to;
  ReportRequest request;
};
struct Publish {
  TableDelta delta;
};
struct Note {
  std::string name;
  std::string text;
};
struct Ordered {  // the answer to an order; `code` ok: it is in the table, or under way
  Errc code = Errc::ok;
  std::string text;
};
using Output = std::variant<Command, AskReport, Publish, Note, Ordered>;

std::string to_text(const Output& output);
std::string to_text(const Order& order);  // "move cart:3 b"

// What is being done with one shard. `prefer` gets it if `to` can no longer: it still has the
// entities' state.
enum class OpKind : std::uint8_t { none, rehome, handoff, freeze };
struct Op {
  OpKind kind = OpKind::none;
  NodeKey from;
  NodeKey to;
  NodeKey prefer;
  Generation generation;
  Generation frozen;  // rehome: of the handoff that was called off
  Time started{};
  Time resend_at{};
  Cause cause = Cause::placed;
  std::string actor;
};

// What would be moved if nothing limited it, now. `id` is that of this table and these moves.
struct PlannedMove {
  ShardName shard;
  NodeKey from;
  NodeKey to;
  Cause cause = Cause::balance;
};
struct Plan {
  std::string id;
  std::string frozen;  // why nothing is planned for balance; empty: it is
  std::vector<PlannedMove> moves;
};

struct Handoff {
  ShardName shard;
  Op op;
};

}  // namespace shardbus::coordinator
