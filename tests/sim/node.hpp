// One machine of the simulated cluster: at most one process at a time, which is a control plane and
// a region. Each start is a new incarnation.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/control_plane.hpp"
#include "sim/network.hpp"
#include "sim/region.hpp"

namespace shardbus::sim {

struct Node {
  int machine = 0;
  std::string name;
  std::uint64_t life = 0;
  NodeInfo info;
  std::unique_ptr<control::ControlPlane> plane;  // empty: no process
  std::unique_ptr<Region> region;
  std::vector<HostedType> hosts;
  std::map<NodeKey, Time> connected;  // and since when it hears their gossip
  bool paused = false;
  bool leaving = false;
  std::deque<std::function<void()>> inbox;  // what arrives while it is paused
  Time wake_at = kNever;

  [[nodiscard]] bool running() const { return plane != nullptr; }
  [[nodiscard]] bool awake() const { return running() && !paused; }
};

}  // namespace shardbus::sim
