// The seam between the simulated control plane and whatever runs shards: a stub, or the data plane.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/model/allocation.hpp"
#include "base/time.hpp"

namespace shardbus::sim {

struct OwnedShard {
  ShardName shard;
  Generation generation;
};

// What a region wants done: tell the own control plane, or send bytes to a region of another node.
struct RegionOutput {
  NodeKey to;  // 0: the own control plane, and `message` is set
  ControlMessage message;
  std::string bytes;
};

// One life of a node's region. All calls come from the simulator's one thread.
class Region {
 public:
  virtual ~Region() = default;
  virtual void on_command(Time now, const ControlMessage& message) = 0;  // also ReportRequest
  virtual void on_frame(Time now, NodeKey from, std::string_view bytes) = 0;
  virtual void on_table(Time now, const AllocationTable& table) = 0;
  virtual void on_hosts(Time now, const std::vector<HostedType>& hosts) = 0;
  virtual void on_dead(Time now, NodeKey node) = 0;
  virtual void on_tick(Time now) = 0;
  [[nodiscard]] virtual Time next_deadline() const = 0;
  virtual std::vector<RegionOutput> take_outputs() = 0;
  // Shards whose handlers it would start now.
  [[nodiscard]] virtual std::vector<OwnedShard> owned() const = 0;
  [[nodiscard]] virtual std::string state_text() const = 0;
};

struct RegionBreaks {
  bool generation_unchecked = false;  // obeys commands and transfers of older generations
};

std::unique_ptr<Region> make_stub_region(NodeKey self, const RegionBreaks& breaks);

}  // namespace shardbus::sim
