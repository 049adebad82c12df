// What the parts of one data plane share: settings, the time of the pass, counters, each other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/marks.hpp"
#include "base/model/cluster.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "runtime/data/ports.hpp"
#include "runtime/data/strict_right.hpp"

namespace shardbus::runtime {

class Links;
class FrontDoor;
class PeerDoor;
class Dispatch;
class Hosts;

struct DataConfig {
  NodeInfo self;
  std::string cluster;
  NodeTraits traits = {};
  bool proxy = false;  // runs nothing
  std::uint64_t seed = 1;
  std::uint32_t client_credit = 4096;
  std::uint32_t peer_credit = 16384;
  std::uint32_t buffered_messages = 65536;
  std::uint64_t buffered_bytes = std::uint64_t{64} << 20;
  std::uint32_t sessions = 16384;
  std::uint32_t pending_asks = 1U << 20;
  Duration ping_interval = std::chrono::seconds(2);
  // How long a worker that hears nothing of this node may begin handlers; 0: until it gives up.
  Duration worker_lease{};
  // How long a message for a type that nobody hosts yet is kept before `no_such_type`.
  Duration unknown_type_wait = std::chrono::seconds(2);
  // How long a message waits at its sender for an owner; an ask at most until its own deadline.
  Duration held_wait = std::chrono::seconds(30);
  Duration handoff_timeout = std::chrono::seconds(5);
  std::function<Time()> clock = [] { return Time::max(); };  // for strict types: none may run
};

// Reasons and outcomes that are counted; names are what operators see in `status`.
enum class Count : std::uint8_t {
  delivered,
  forwarded,
  replies,
  errors_answered,
  tells_dropped,
  late_answers,
  malformed_frames,
  bad_frames,
  unknown_kinds,
  no_session,
  rejected,
  over_credit,
  kicked,
  stale_messages,
  refused_sessions,
  link_resets,
  handler_failures,
  shards_fenced,
  forced_stops,
  states_lost,
  count_of_counts,
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Count::count_of_counts)>
    kCountNames{
        "delivered",    "forwarded",        "replies",       "errors_answered", "tells_dropped",
        "late_answers", "malformed_frames", "bad_frames",    "unknown_kinds",   "no_session",
        "rejected",     "over_credit",      "kicked",        "stale_messages",  "refused_sessions",
        "link_resets",  "handler_failures", "shards_fenced", "forced_stops",    "states_lost",
    };

struct DataContext {
  DataConfig config;
  WirePort* wire = nullptr;
  DataListener* listener = nullptr;
  std::shared_ptr<StrictRight> strict_right;
  Random random;
  Time now{};
  bool held = false;             // for this pass; see DataListener::awake
  std::uint64_t cluster_id = 0;  // set by the control loop once known
  std::array<std::uint64_t, static_cast<std::size_t>(Count::count_of_counts)> counts{};
  Marks rare;

  Links* links = nullptr;
  FrontDoor* front = nullptr;
  PeerDoor* peers = nullptr;
  Dispatch* dispatch = nullptr;
  Hosts* hosts = nullptr;

  explicit DataContext(DataConfig c)
      : config(std::move(c)),
        strict_right(std::make_shared<StrictRight>(config.clock)),
        random(config.seed) {}
  [[nodiscard]] NodeKey self() const { return config.self.key; }
  void count(Count what) { ++counts[static_cast<std::size_t>(what)]; }
  [[nodiscard]] std::uint64_t counted(Count what) const {
    return counts[static_cast<std::size_t>(what)];
  }
  // Session numbers and the like: 53 bits, never 0.
  std::uint64_t random_number() { return (random.next() & kMaxWireInteger) | 1U; }
};

}  // namespace shardbus::runtime
