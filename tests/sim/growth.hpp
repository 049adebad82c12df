// How the cost of a cluster grows with its nodes: control planes and codec as they are, on virtual
// time, with regions that answer at once instead of data planes and entities.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/time.hpp"

namespace shardbus::sim {

struct GrowthOptions {
  int nodes = 3;
  std::uint32_t shards = 4096;
};

// Times are virtual; kForever: not within the patience of the measurement. Bytes are those of
// encoded gossip, without what TCP adds.
struct GrowthResult {
  int nodes = 0;
  std::uint32_t shards = 0;
  Duration formed{};  // from the first start until all are up and agree; 0: made at once
  std::uint64_t digest_bytes = 0;  // one, when nothing happens
  double digests_per_second = 0;   // that a node publishes then
  double sent_per_second = 0;      // bytes, of one node to all subscribers
  double received_per_second = 0;
  Duration joined{};           // one more node: all agree on the members
  Duration joined_settled{};   // and every shard that moves for it has moved
  double joined_bytes = 0;     // of gossip in that time, received by one node
  Duration crashed{};          // a node that does not decide: all agree on the members
  Duration crashed_settled{};  // and every shard has an owner that lives
  Duration vanished{};         // its machine is gone, nobody refuses a connection; 0: not measured
  Duration vanished_settled{};
  Duration decider_crashed{};  // the same for the node that decides
  Duration decider_settled{};
  std::uint64_t control_bytes = 0;  // over links, all nodes, all the time
  std::uint64_t events = 0;
};

inline constexpr Duration kForever = Duration::max();

// `told` hears what is being waited for.
GrowthResult measure_growth(const GrowthOptions& options,
                            const std::function<void(const std::string& line)>& told);

}  // namespace shardbus::sim
