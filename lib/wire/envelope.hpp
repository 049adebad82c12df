// The envelopes of the wire as plain structs. Bytes and rules: PROTOCOL.md; codec: codec.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/model/allocation.hpp"
#include "base/model/cluster.hpp"

namespace shardbus::wire {

// First element of every envelope. Numbers are wire format and never reused.
enum class Kind : std::uint8_t {
  // application: count against credit
  tell = 1,
  ask = 2,
  reply = 3,
  error = 4,
  // session: free of credit
  hello = 10,
  welcome = 11,
  reject = 12,
  no_session = 13,
  goodbye = 14,
  ping = 15,
  pong = 16,
  credit = 17,
  link = 18,
  who = 19,
  here = 20,
  // routing
  moved = 30,
  table = 31,
  fence = 32,
  fence_ok = 33,
  path_lost = 34,
  // handoff stream, old owner -> next owner: count against credit
  stream_start = 40,
  stream_state = 41,
  stream_message = 42,
  stream_fence = 43,
  stream_end = 44,
  stream_ack = 45,
  // control
  begin = 50,
  prepare = 51,
  freeze = 52,
  rehome = 53,
  answer = 54,
  report_request = 55,
  report = 56,
  join = 57,
  join_refused = 58,
  table_pull = 59,
  table_part = 60,
  down = 61,
  digest = 62,
  table_delta = 63,
  // workers
  restore = 70,
  release = 71,
  released = 72,
  offer = 73,
};

constexpr bool is_stream(Kind kind) {
  return kind >= Kind::stream_start && kind <= Kind::stream_ack;
}
constexpr bool is_control(Kind kind) {
  return kind >= Kind::begin && kind <= Kind::table_delta;
}
// Falls under the credit of a session between nodes.
constexpr bool is_counted(Kind kind) {
  return kind <= Kind::error || (is_stream(kind) && kind != Kind::stream_ack);
}

// Flag of tell and ask: the sender has greeted. A node that knows no session for it answers
// NO_SESSION instead of serving it without one, so that a reconnect is never overlooked.
inline constexpr std::uint32_t kFlagGreeted = 1;

// Where a reply goes: the correlation of an ask. Either opaque bytes that an asker chose and gets
// back verbatim within its session (`opaque`: one raw msgpack value, at most 40 bytes encoded), or
// between nodes and workers the pair (node, slot), which any node can route.
struct Correlation {
  std::string_view opaque;  // raw msgpack of the value; empty: not opaque
  NodeKey node;             // asker's node; kNoNode: none
  std::uint64_t slot = 0;
  [[nodiscard]] bool none() const { return opaque.empty() && node == kNoNode; }
  [[nodiscard]] bool is_port() const { return node != kNoNode; }
};

// tell and ask. All views point into the frame.
struct Message {
  Kind kind = Kind::tell;
  std::uint32_t flags = 0;
  Correlation correlation;
  std::string_view type;
  std::string_view id;
  std::string_view method;
  Generation generation;           // that the sender believes; unknown from simple clients
  Generation sender_generation;    // of the shard whose handler sent it, if any
  std::uint32_t time_left_ms = 0;  // 0: no deadline (tells)
  std::uint8_t hops = 0;
  std::string_view headers;  // raw msgpack map, or empty for nil
  std::string_view payload;  // content of the bin
};

// reply (code == 0, payload) and error (code, text).
struct Reply {
  Correlation correlation;
  std::uint16_t code = 0;
  std::string_view text;
  std::string_view payload;
};

enum class Role : std::uint8_t { node, client, worker };

struct Credit {  // absolute: envelopes and bytes since the start of the session
  std::uint64_t envelopes = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Credit&, const Credit&) = default;
};

struct Hello {
  std::uint16_t major = 1, minor = 0;
  std::string cluster;  // "" from a client or worker: any
  Role role = Role::client;
  NodeInfo node;                  // role node only; else name is a label for humans
  NodeKey to;                     // role node: the incarnation that is meant; kNoNode: any
  std::uint64_t sender = 0;       // client, worker: random 53-bit number, the same at every node
  std::vector<HostedType> types;  // worker
  std::uint32_t max_batch = 1;    // envelopes per frame that the greeter accepts
  bool wants_table = false;       // smart client
  Credit credit;                  // what the acceptor may send at first (workers)
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct SessionLimits {
  std::uint32_t frame_bytes = 0;
  std::uint32_t batch = 0;
  std::uint32_t id_bytes = 0;
  std::uint32_t payload_bytes = 0;
  friend bool operator==(const SessionLimits&, const SessionLimits&) = default;
};

struct Welcome {
  std::uint64_t session = 0;  // random, 53 bits
  NodeInfo node;              // the acceptor
  std::string cluster;
  std::uint64_t cluster_id = 0;
  Credit credit;
  SessionLimits limits;
  std::uint32_t ping_ms = 0;
  std::uint32_t worker_lease_ms = 0;  // 0: none
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct Reject {
  std::uint16_t code = 0;
  std::string text;
  std::uint32_t retry_after_ms = 0;
  friend bool operator==(const Reject&, const Reject&) = default;
};

struct Here {  // answer to `who`: how to reach this node
  std::string cluster;
  std::uint64_t cluster_id = 0;
  NodeInfo node;
  friend bool operator==(const Here&, const Here&) = default;
};

struct Link {  // first envelope of every frame on a session between nodes
  std::uint64_t session = 0;
  std::uint64_t sequence = 0;  // number of the frame's next envelope, from 1
};

// Tells a sender of the right owner. `slot` names the ask that was forwarded (0: a tell).
struct Moved {
  ShardName shard;
  TableEntry entry;
  std::string front;  // owner's address for clients
  std::uint64_t slot = 0;
  friend bool operator==(const Moved&, const Moved&) = default;
};

// The table as clients see it.
struct ClientTable {
  std::vector<NodeInfo> nodes;
  AllocationTable table;
  friend bool operator==(const ClientTable&, const ClientTable&) = default;
};

struct Fence {
  ShardName shard;
  std::uint64_t id = 0;      // sender's own number
  std::uint64_t sender = 0;  // node key, or a client's sender number
  Generation generation;     // that the sender has learned
  NodeKey target;            // owner of `generation`
  Correlation reply;         // where the answer goes when it is not the session's other end
};
struct FenceOk {
  ShardName shard;
  std::uint64_t id = 0;
  std::uint64_t sender = 0;
  Generation generation;  // of the answerer
  NodeKey node;           // the answerer
  bool lost = false;      // path_lost instead of fence_ok
  friend bool operator==(const FenceOk&, const FenceOk&) = default;
};

// Handoff stream. `index` counts the stream's items from 0 (start has 0).
struct StreamMark {
  std::uint64_t sender = 0;
  Generation generation;
  friend bool operator==(const StreamMark&, const StreamMark&) = default;
};
struct StreamStart {
  ShardName shard;
  std::uint32_t shard_count = 0;
  Generation generation;
  std::vector<StreamMark> marks;
  friend bool operator==(const StreamStart&, const StreamStart&) = default;
};
struct StreamState {  // one entity's saved state
  ShardName shard;
  Generation generation;
  std::uint64_t index = 0;
  std::string_view id;
  std::string_view state;
};
struct StreamMessage {
  ShardName shard;
  Generation generation;
  std::uint64_t index = 0;
  std::uint64_t sender = 0;
  std::string_view envelope;  // raw tell or ask, its sender's generation unchanged
  Generation passed{};        // of whoever passed it on behind a fence of its own
};
struct StreamFence {
  ShardName shard;
  Generation generation;
  std::uint64_t index = 0;
  NodeKey origin;  // node to which the answer goes
  Fence fence;
  Generation passed{};  // as above
};
struct StreamEnd {  // also acknowledges: `stream_ack` has the same shape, with the answerer's node
  ShardName shard;
  Generation generation;
  std::uint64_t index = 0;
  NodeKey node;
};

// node -> worker: an entity's saved state; worker -> node inside `released`.
struct EntityState {
  std::string id;
  std::string state;
  friend bool operator==(const EntityState&, const EntityState&) = default;
};
struct Restore {
  std::string type;
  EntityState entity;
  friend bool operator==(const Restore&, const Restore&) = default;
};
struct Release {
  ShardName shard;
  std::uint32_t shard_count = 0;
  friend bool operator==(const Release&, const Release&) = default;
};
struct Released {
  ShardName shard;
  std::vector<EntityState> states;
  bool more = false;                   // another one of this shard follows
  std::vector<std::string> unbegun{};  // raw tells and asks that no handler has begun
  friend bool operator==(const Released&, const Released&) = default;
};

}  // namespace shardbus::wire
