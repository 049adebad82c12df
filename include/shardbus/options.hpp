// Settings of nodes and clients, with their defaults.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shardbus/message.hpp"

namespace shardbus {

enum class LogLevel : std::uint8_t { debug, info, warn, error };

// Receives structured events: a stable dotted name ("membership.up") and a line of key=value text.
// Called from threads of the library; must not call back into it.
using LogSink = std::function<void(LogLevel, std::string_view event, std::string_view text)>;

// Where the ZeroMQ I/O thread runs: with the thread that polls, or wherever the system puts it.
enum class ThreadPlacement : std::uint8_t { follow, none };

// Which side of a cluster goes on when its nodes cannot hear each other; bin/README.md tells what
// each policy keeps. lease_majority is refused at the start: it needs a lease store.
enum class DowningPolicy : std::uint8_t {
  keep_majority,
  static_quorum,
  keep_oldest,
  down_all,
  lease_majority
};

struct NodeOptions {
  std::string cluster = "shardbus";  // 1..64 bytes; nodes of another cluster are refused
  // Node id, 1..64 bytes of [A-Za-z0-9._:-]; empty: host and port of the listen address.
  std::string name{};
  // Address for clients and workers; port 0 takes a free one (tests).
  std::string listen = "tcp://127.0.0.1:7400";
  // Addresses for other nodes and for gossip; empty: the ports after `listen`'s (0 if that is 0).
  std::string peer_listen{};
  std::string gossip_listen{};
  // Host under which others reach this node; empty: the host of `listen`. Needed for 0.0.0.0.
  std::string advertise{};
  // Listen addresses of nodes to join: "tcp://HOST:PORT", where all addresses of a host name are
  // tried; "dns://NAME:PORT", the same, but any of them may come and go; "file:///PATH", a file
  // with one tcp:// address per line. Names and files are looked up anew while no seed has
  // answered. Empty: this node makes a cluster of its own. If the first seed is this node's own
  // address, it makes a cluster when no other seed is in one.
  std::vector<std::string> seeds{};
  // This node may make a cluster, though it is not the first seed: for one node, where the seeds
  // come from a name or a file. Like the first seed it does so only when no seed is in one.
  bool bootstrap = false;
  // No shard is given out for the first time before so many members are up; 1..1024.
  std::uint32_t min_members = 1;
  // Threads for handlers: 0 runs them on the polling thread (short handlers only); 1..256.
  std::uint32_t workers = 0;
  milliseconds gossip_interval{200};  // 20..300: leases of a second need several digests
  // Silence after which a node that proved nothing is held for unreachable, at least; 500..60'000.
  milliseconds failure_timeout{1500};
  // How long unreachable nodes must stay so before the majority removes them; 100..300'000.
  milliseconds stable_after{1000};
  // The same for all nodes of a cluster.
  DowningPolicy downing = DowningPolicy::keep_majority;
  std::uint32_t quorum_size = 0;  // for static_quorum only: 1..1024
  bool down_if_alone = true;      // of keep_oldest: the oldest goes if all others are cut off
  // Whether a refused connection proves the death of a node. Off behind proxies.
  bool death_proof = true;
  milliseconds handoff_timeout{5000};
  // Client's session: silence after which a PING is due; dead after four of them. 100..60'000.
  milliseconds ping_interval{2000};
  // Bounds; `shardbusctl status` shows the depth of each beside its limit.
  std::uint32_t client_credit = 1024;  // envelopes in flight per client
  std::uint32_t peer_credit = 16384;   // per node and direction
  // Held for shards without an owner, per node; also what waits for one moving shard, one worker.
  std::uint32_t buffered_messages = 65536;
  std::uint32_t sessions = 16384;  // clients and workers
  std::uint32_t pending_asks = 1U << 20;
  ThreadPlacement placement = ThreadPlacement::follow;
  // What placement goes by. Zone: a part of the installation that may fail as a whole, 0..64 bytes
  // of the letters of a name. Roles: at most 16. Capacity: 1..1000, in proportion to other nodes.
  std::string zone{};
  std::vector<std::string> roles{};
  std::uint32_t capacity = 1;
  // Routes only: `host` notes the types, and workers are refused, so this node owns no shard.
  bool proxy = false;
  LogSink log{};  // empty: warnings and errors to stderr
};

struct ClientOptions {
  std::string cluster{};  // empty: whichever the node belongs to
  // Listen addresses. All are connected; the first that answers takes what has no known owner.
  std::vector<std::string> nodes{"tcp://127.0.0.1:7400"};
  // Learn the allocation table and send straight to owners; off: all through one node.
  bool smart = true;
  milliseconds connect_timeout{5000};
  std::uint32_t pending_asks = 1U << 20;
  LogSink log{};
};

}  // namespace shardbus
