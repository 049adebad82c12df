// One process of the simulated cluster: what NodeCore, Link and ControlLoop do between the two
// planes, on virtual time.
#include <algorithm>

#include "base/hash.hpp"
#include "base/model/text.hpp"
#include "sim/world.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRestartAfterLeave = 2s;
constexpr Duration kExitStep = 2ms;

}  // namespace

void World::begin_life(Node& node, bool bootstrap) {
  ++node.life;
  const std::string port = ":" + std::to_string(7000 + node.machine);
  node.info = NodeInfo{node.name,
                       node.life,
                       node_key(node.name, node.life),
                       "tcp://10.0.0.1" + port,
                       "tcp://10.0.0.2" + port,
                       "tcp://10.0.0.3" + port};
  lives_[node.info.key] = Life{node.machine, node.name + std::to_string(node.life)};
  control::ControlConfig control;
  control.cluster = "sim";
  control.self = node.info;
  control.bootstrap = bootstrap;
  control.seed = random_.next();
  control.downing = config_.downing;
  control.min_members = config_.min_members;
  control.hosts = node.hosts;
  control.break_repeat_lower_term = config_.breaks.lower_term_repeated;
  control.break_answer_unchecked = config_.breaks.answer_unchecked;
  runtime::DataConfig data = config_.data;
  data.self = node.info;
  data.cluster = "sim";
  data.seed = random_.next();
  node.process = std::make_unique<Process>(
      now(), std::move(control), std::move(data), *node.wire,
      [this, machine = node.machine](std::string_view event, const std::string& text) {
        if (config_.trace) trace(this->node(machine), std::string(event) + " " + text);
      });
  node.connected.clear();
  ledger_.awake(now(), node.info.key);
}

// What a process does that lost its place in the cluster: its sockets stay, all else is new.
void World::renew(Node& node) {
  checker_.gone(now(), node);
  const std::unique_ptr<Process> old = std::move(node.process);
  const NodeKey key = node.info.key;
  begin_life(node, false);
  trace(node, "goes on as a new incarnation");
  node.process->pass(now(), [&] {
    old->messenger->plane = &node.data();
    for (EntityType& type : workload_.types_for(*node.process)) (void)node.data().host(type);
    old->data.begin(now());
    old->data.retire("the node lost its place in the cluster");
  });
  node.process->notes.hosted.clear();
  ledger_.closed(key);
}

void World::stop(Node& node, const char* why) {
  trace(node, std::string("process ends: ") + why);
  checker_.gone(now(), node);
  ledger_.gone(node.info.key);
  node.process.reset();
  node.inbox.clear();
  node.paused = false;
  node.exit = Exit::none;
  wires_.end_process(node.machine);
}

// One input of one node, and everything that follows from it at once.
void World::act(Node& node, Side side, const std::function<void()>& what) {
  if (!node.running()) return;
  if (!node.paused) return run(node, side, what);
  node.inbox.emplace_back([this, &node, starts = node.starts, side, what] {
    if (node.running() && node.starts == starts) run(node, side, what);
  });
}

void World::run(Node& node, Side side, const std::function<void()>& what) {
  if (side == Side::control) {
    what();
    const bool due = !config_.breaks.wake_lost && node.data().next_deadline() <= now();
    if (due) node.process->pass(now(), [] {});
  } else {
    node.process->pass(now(), what);
  }
  const bool due = node.control().next_deadline() <= now();
  if (side == Side::control || due || node.process->notes.wake()) {
    while (!pump(node)) renew(node);
  }
  if (node.exit >= Exit::others_part) step_exit(node);
  if (!node.running()) return;
  check(node);
  schedule_wake(node);
}

// False: the process lost its place.
bool World::pump(Node& node) {
  lost_place_ = false;
  for (bool again = true; again;) {
    again = hand_over(node);
    node.control().on_tick(now());
    for (control::ControlOutput& output : node.control().take_outputs()) {
      again = true;
      carry_out(node, output);
    }
    if (lost_place_) return false;
  }
  if (node.process->told_cluster != node.control().cluster_id()) {
    node.process->told_cluster = node.control().cluster_id();
    node.data().set_cluster_id(node.process->told_cluster);
  }
  return true;
}

// What the data plane noted down goes to the control plane.
bool World::hand_over(Node& node) {
  Notes& notes = node.process->notes;
  const bool any = notes.wake();
  for (const NodeKey from : std::exchange(notes.traffic, {})) {
    node.control().on_traffic(now(), from);
  }
  for (const auto& [from, message] : std::exchange(notes.messages, {})) {
    node.control().on_message(now(), from, message);
  }
  for (const NodeKey lost : std::exchange(notes.lost, {})) {
    node.control().on_link_lost(now(), lost);
    probe(node, lost);
  }
  notes.hosted.clear();  // the types never change here; what is announced does
  return any;
}

// As NodeCore::leave: the others say goodbye once nothing of theirs is under way through this node,
// then it has the last word on its links, and stops when that was heard.
void World::step_exit(Node& node) {
  const bool late = now() >= node.exit_until;
  if (node.exit == Exit::others_part && (late || node.data().peers().parted())) {
    node.exit = Exit::parting;
    node.process->pass(now(), [&] { node.data().links().say_goodbye(); });
  }
  if (node.exit != Exit::parting || !(late || node.data().links().parted())) return;
  const NodeKey key = node.info.key;
  node.process->messenger->plane = nullptr;
  node.data().begin(now());
  node.data().abandon(Errc::stopped, "the node stops");
  ledger_.closed(key);
  stop(node, "left");
  events_.after(kRestartAfterLeave, [this, machine = node.machine, starts = node.starts] {
    if (this->node(machine).starts == starts) start(machine, false);
  });
}

void World::check(Node& node) {
  ledger_.check_due(now(), node.info.key);
  if (auto broken = checker_.check(now(), node)) fail(*broken);
  if (++checks_ % 32 == 0) {
    if (auto broken = check_limits(node, config_.breaks.limit_lowered ? 10 : 1)) fail(*broken);
  }
  if (ledger_.broken()) fail(*ledger_.broken());
}

void World::schedule_wake(Node& node) {
  Time when = node.control().next_deadline();
  if (!config_.breaks.wake_lost) when = std::min(when, node.data().next_deadline());
  if (node.exit >= Exit::others_part) when = std::min(when, now() + kExitStep);
  if (when <= now()) fail(node.name + " asks to be woken at once, for ever");
  if (when == kNever || (node.wake_at <= when && node.wake_at > now())) return;
  node.wake_at = when;
  events_.at(when, [this, machine = node.machine, starts = node.starts, when] {
    Node& woken = this->node(machine);
    if (!woken.running() || woken.starts != starts || woken.wake_at != when) return;
    woken.wake_at = kNever;
    act(woken, Side::data, [] {});
  });
}

}  // namespace shardbus::sim
