// One machine of the simulated cluster: at most one process at a time. Each start is a new
// incarnation; a process that lost its place goes on as the next one, with the sockets it has.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/node/incarnations.hpp"
#include "sim/clock.hpp"
#include "sim/process.hpp"

namespace shardbus::sim {

// A graceful exit, step by step.
enum class Exit : std::uint8_t { none, leaving, others_part, parting };

struct Node {
  int machine = 0;
  std::string name;
  Clock clock;
  std::uint64_t lives = 0;             // incarnations so far
  runtime::Incarnations incarnations;  // of the process
  std::uint64_t starts = 0;
  NodeInfo info;
  std::unique_ptr<SimWire> wire;
  std::unique_ptr<Process> process;   // empty: none runs
  std::vector<HostedType> hosts;      // that it announces
  Time hosts_since{};                 // the last change of it while it ran
  std::map<NodeKey, Time> connected;  // and since when it hears their gossip
  bool paused = false;
  bool busy = false;       // a pass of a slow process takes its time
  Duration lag{};          // how late each of its passes may be
  Duration control_lag{};  // and how late its control loop alone
  bool look_due = false;   // the late control loop will look
  Time judged{};           // when it looked last; of this machine's clock
  Exit exit = Exit::none;
  Time exit_until{};
  std::deque<std::function<void()>> inbox;    // what arrives while it stands still
  std::deque<std::function<void()>> unread;   // frames that a held process does not read
  std::deque<std::function<void()>> unheard;  // gossip for a control loop that is late
  Time wake_at = kNever;

  [[nodiscard]] bool running() const { return process != nullptr; }
  [[nodiscard]] bool awake() const { return running() && !paused && !busy; }
  [[nodiscard]] control::ControlPlane& control() const { return process->control; }
  [[nodiscard]] runtime::DataPlane& data() const { return process->data; }
};

}  // namespace shardbus::sim
