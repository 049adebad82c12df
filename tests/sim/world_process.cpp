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
// A pass that takes longer is a pause to the others.
constexpr Duration kStandsStill = 300ms;
// As ControlLoop: half of the pause that costs a node its place.
const Duration kUnjudgedMax = failure::Config{}.pause_limit / 2;

}  // namespace

void World::begin_life(Node& node, std::uint64_t incarnation, bool bootstrap) {
  ++node.lives;
  const std::string port = ":" + std::to_string(7000 + node.machine);
  node.info = NodeInfo{node.name,
                       incarnation,
                       node_key(node.name, incarnation),
                       "tcp://10.0.0.1" + port,
                       "tcp://10.0.0.2" + port,
                       "tcp://10.0.0.3" + port};
  lives_[node.info.key] = Life{node.machine, node.name + std::to_string(node.lives)};
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
  data.clock = [this, &node] { return here(node); };
  node.process = std::make_unique<Process>(here(node), std::move(control), std::move(data),
                                           *node.wire, process_options(node));
  node.process->messenger->now = [this, &node] { return here(node); };
  node.connected.clear();
  node.judged = here(node);
  ledger_.awake(here(node), node.info.key);
}

ProcessOptions World::process_options(Node& node) {
  ProcessOptions options;
  options.log = [this, machine = node.machine](std::string_view event, const std::string& text) {
    if (config_.trace) trace(this->node(machine), std::string(event) + " " + text);
  };
  options.awake = [&node](Time now) {
    return node.control_lag == Duration{} || now - node.judged < kUnjudgedMax;
  };
  options.later = [this, &node, life = node.info.key](Duration delay, std::function<void()> what) {
    events_.after(delay, [this, &node, life, what = std::move(what)] {
      const auto mine = [&node, life] { return node.running() && node.info.key == life; };
      if (!mine()) return;
      act(node, Side::data, [mine, what] {
        if (mine()) what();
      });
    });
  };
  if (workload_.threaded()) options.length = [this] { return workload_.handler_length(); };
  return options;
}

// What a process does that lost its place in the cluster: its sockets stay, all else is new.
void World::renew(Node& node) {
  checker_.gone(now(), node);
  const std::unique_ptr<Process> old = std::move(node.process);
  const NodeKey key = node.info.key;
  const bool joined = old->control.cluster_id() != 0;
  begin_life(node, node.incarnations.after(node.info.incarnation, joined), false);
  trace(node, "goes on as a new incarnation");
  node.process->pass(here(node), [&] {
    old->messenger->plane = &node.data();
    for (EntityType& type : workload_.types_for(*node.process)) (void)node.data().host(type);
    old->data.begin(here(node));
    old->data.retire("the node lost its place in the cluster");
  });
  if (node.exit == Exit::leaving) node.control().leave(here(node));
  node.process->notes.hosted.clear();
  ledger_.closed(key);
  marks_.add(old->marks());
}

void World::stop(Node& node, const char* why) {
  trace(node, std::string("process ends: ") + why);
  checker_.gone(now(), node);
  ledger_.gone(node.info.key);
  marks_.add(node.process->marks());
  node.process.reset();
  node.inbox.clear();
  node.unread.clear();
  node.unheard.clear();
  node.paused = false;
  node.busy = false;
  node.look_due = false;
  node.exit = Exit::none;
  wires_.end_process(node.machine);
}

// One input of one node, and everything that follows from it at once.
void World::act(Node& node, Side side, const std::function<void()>& what) {
  if (!node.running()) return;
  if (!node.awake()) {
    node.inbox.emplace_back([this, &node, starts = node.starts, side, what] {
      if (node.running() && node.starts == starts) run(node, side, what);
    });
    return;
  }
  run(node, side, what);
  stall(node);
}

// A slow process is busy with what came for a while; what comes meanwhile it takes all at once.
void World::stall(Node& node) {
  if (node.lag == Duration{} || !node.awake()) return;
  const auto most = static_cast<std::uint64_t>(node.lag.count());
  const Duration lag = node.lag / 2 + Duration(static_cast<std::int64_t>(random_.below(most / 2)));
  node.busy = true;
  if (lag >= kStandsStill) checker_.gone(now(), node);
  events_.after(lag, [this, &node, starts = node.starts] {
    if (!node.busy || node.starts != starts) return;
    node.busy = false;
    if (!node.paused) wake_up(node);
  });
}

// Its own pause is what it notices first, before its entities do anything.
void World::wake_up(Node& node) {
  ledger_.awake(here(node), node.info.key);
  node.control().on_tick(here(node));
  while (!pump(node)) renew(node);
  node.judged = here(node);
  check(node);  // a late control loop looks again only later, and what it owns may have changed
  run(node, Side::control, [&] { node.control().on_tick(here(node)); });
  while (node.awake() && !node.inbox.empty()) {
    const auto next = std::move(node.inbox.front());
    node.inbox.pop_front();
    next();
  }
  // The data plane has slept as long, and a late control loop does not look now.
  if (node.awake()) run(node, Side::data, [] {});
  stall(node);
}

bool World::held(const Node& node) const {
  return node.control_lag > Duration{} && here(node) - node.judged >= kUnjudgedMax;
}

void World::look_later(Node& node) {
  if (std::exchange(node.look_due, true)) return;
  const auto most = static_cast<std::uint64_t>(node.control_lag.count());
  const Duration lag = Duration(static_cast<std::int64_t>(random_.below(most + 1)));
  events_.after(lag, [this, &node, starts = node.starts] {
    if (!node.running() || node.starts != starts) return;
    if (node.awake()) return look(node);
    node.inbox.emplace_back([this, &node, starts] {
      if (node.running() && node.starts == starts) look(node);
    });
  });
}

// The control loop of a node comes to everything that it missed; then held frames are read.
void World::look(Node& node) {
  if (!std::exchange(node.look_due, false)) return;
  if (held(node)) ledger_.awake(here(node), node.info.key);
  node.control().on_tick(here(node));
  for (const auto& heard : std::exchange(node.unheard, {})) heard();
  while (!pump(node)) renew(node);
  node.judged = here(node);
  for (const auto& frame : std::exchange(node.unread, {})) {
    if (node.running()) run(node, Side::data, frame);
  }
  if (node.running()) run(node, Side::data, [] {});
}

void World::run(Node& node, Side side, const std::function<void()>& what) {
  const bool late = node.control_lag > Duration{};
  if (late && side == Side::control) {
    node.unheard.push_back(what);
    return look_later(node);
  }
  if (held(node)) {
    checker_.gone(now(), node);
    node.unread.push_back(what);
    return look_later(node);
  }
  if (side == Side::control) {
    what();
    const bool due = !config_.breaks.wake_lost && node.data().next_deadline() <= here(node);
    if (due) node.process->pass(here(node), [] {});
  } else {
    node.process->pass(here(node), what);
  }
  const bool due = node.control().next_deadline() <= here(node);
  if (side == Side::control || due || node.process->notes.wake()) {
    if (late) {
      look_later(node);
    } else {
      while (!pump(node)) renew(node);
    }
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
    node.control().on_tick(here(node));
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
  share_right(node);
  return true;
}

void World::share_right(Node& node) {
  node.process->right = node.control().strict_until();
  const Time until = config_.breaks.lease_ignored ? kNever : node.process->right;
  if (until == node.process->told_right || checker_.strict().empty()) return;
  node.process->told_right = until;
  node.process->pass(here(node), [&] { node.data().set_strict_until(until); });
}

// What the data plane noted down goes to the control plane.
bool World::hand_over(Node& node) {
  Notes& notes = node.process->notes;
  const bool any = notes.wake();
  for (const NodeKey from : std::exchange(notes.traffic, {})) {
    node.control().on_traffic(here(node), from);
  }
  for (const auto& [from, message] : std::exchange(notes.messages, {})) {
    node.control().on_message(here(node), from, message);
  }
  for (const NodeKey lost : std::exchange(notes.lost, {})) {
    node.control().on_link_lost(here(node), lost);
    probe(node, lost);
  }
  notes.hosted.clear();  // the types never change here; what is announced does
  return any;
}

// As NodeCore::leave: the others say goodbye once nothing of theirs is under way through this node,
// then it has the last word on its links, and stops when that was heard.
void World::step_exit(Node& node) {
  const bool late = now() >= node.exit_until;
  if (node.exit == Exit::others_part && (late || node.data().parted())) {
    node.exit = Exit::parting;
    node.process->pass(here(node), [&] { node.data().links().say_goodbye(); });
  }
  if (node.exit != Exit::parting || !(late || node.data().links().parted())) return;
  const NodeKey key = node.info.key;
  node.process->messenger->plane = nullptr;
  node.data().begin(here(node));
  node.data().abandon(Errc::stopped, "the node stops");
  ledger_.closed(key);
  stop(node, "left");
  events_.after(kRestartAfterLeave, [this, machine = node.machine, starts = node.starts] {
    if (this->node(machine).starts == starts) start(machine, false);
  });
}

void World::check(Node& node) {
  if (held(node)) return checker_.gone(now(), node);
  ledger_.check_due(here(node), node.info.key);
  if (auto broken = checker_.check(now(), node)) fail(*broken);
  if (++checks_ % 32 == 0) {
    if (auto broken = check_limits(node, config_.breaks.limit_lowered ? 10 : 1)) fail(*broken);
  }
  if (ledger_.broken()) fail(*ledger_.broken());
}

void World::schedule_wake(Node& node) {
  Time when = node.look_due ? kNever : node.control().next_deadline();
  if (!config_.breaks.wake_lost) when = std::min(when, node.data().next_deadline());
  if (node.exit >= Exit::others_part) when = std::min(when, here(node) + kExitStep);
  if (when <= here(node)) fail(node.name + " asks to be woken at once, for ever");
  if (node.control_lag > Duration{}) when = std::min(when, node.judged + kUnjudgedMax);
  when = node.clock.world(when);
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
