#include "sim/world.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "base/model/table.hpp"
#include "base/model/text.hpp"
#include "base/overloaded.hpp"
#include "wire/codec.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSeedInterval = 300ms;
constexpr Duration kRestartAfterDown = 200ms;
constexpr Duration kRestartAfterLeave = 2s;

std::string encoded(const ControlMessage& message) {
  std::string bytes;
  wire::encode(bytes, message);
  return bytes;
}

std::optional<ControlMessage> decoded(const std::string& bytes) {
  std::string_view rest = bytes;
  wire::Envelope envelope;
  ControlMessage message;
  if (wire::next_envelope(rest, envelope) != Errc::ok) return std::nullopt;
  if (wire::decode(envelope, message) != Errc::ok) return std::nullopt;
  return message;
}

std::string why_undecodable(const std::string& bytes) {
  std::string_view rest = bytes;
  wire::Envelope envelope;
  ControlMessage message;
  Errc code = wire::next_envelope(rest, envelope);
  if (code == Errc::ok) code = wire::decode(envelope, message);
  return std::string(error_info(code).name) + ", kind " +
         std::to_string(static_cast<int>(envelope.kind)) + ", " + std::to_string(bytes.size()) +
         " bytes";
}

}  // namespace

World::World(WorldConfig config)
    : config_(std::move(config)),
      random_(config_.seed),
      network_(
          events_, random_,
          [this](int from, int to, Channel channel, const std::string& bytes) {
            deliver(from, to, channel, bytes);
          },
          [this](int at, int other) {
            Node& here = node(at);
            const NodeKey key = node(other).info.key;
            if (here.running())
              act(here, [&here, key, this] { here.plane->on_link_lost(now(), key); });
          }),
      checker_(config_.overlap_allowed),
      nodes_(static_cast<std::size_t>(config_.machines)),
      trace_hash_(fnv1a64("")) {
  for (int i = 0; i < config_.machines; ++i) {
    node(i).machine = i;
    node(i).name = std::string(1, static_cast<char>('a' + i));
    node(i).hosts = config_.types;
  }
}

void World::start(int machine, bool bootstrap) {
  Node& node = this->node(machine);
  if (node.running()) return;
  ++node.life;
  const std::string port = ":" + std::to_string(7000 + machine);
  node.info = NodeInfo{node.name,
                       node.life,
                       node_key(node.name, node.life),
                       "tcp://10.0.0.1" + port,
                       "tcp://10.0.0.2" + port,
                       "tcp://10.0.0.3" + port};
  lives_[node.info.key] = Life{machine, node.name + std::to_string(node.life)};
  control::ControlConfig config;
  config.cluster = "sim";
  config.self = node.info;
  config.bootstrap = bootstrap;
  config.seed = random_.next();
  config.hosts = node.hosts;
  config.break_repeat_lower_term = config_.break_repeat_lower_term;
  config.break_answer_unchecked = config_.break_answer_unchecked;
  config.break_command_unchecked = config_.break_generation_unchecked;
  node.plane = std::make_unique<control::ControlPlane>(now(), std::move(config));
  node.region = make_stub_region(node.info.key, RegionBreaks{config_.break_generation_unchecked});
  node.region->on_hosts(now(), node.hosts);
  node.connected.clear();
  node.paused = false;
  node.leaving = false;
  node.wake_at = kNever;
  trace(node, bootstrap ? "start bootstrap" : "start");
  pump(node);
  look_for_seeds(machine, node.life);
}

// Somebody who answers WHO: any other machine that is in a cluster.
void World::look_for_seeds(int machine, std::uint64_t life) {
  Node& node = this->node(machine);
  if (!node.running() || node.life != life) return;
  events_.after(kSeedInterval, [this, machine, life] { look_for_seeds(machine, life); });
  if (node.plane->cluster_id() != 0) return;
  std::vector<int> others;
  for (const Node& other : nodes_) {
    if (!other.awake() || network_.apart(machine, other.machine)) continue;
    if (other.plane->status().in_cluster) others.push_back(other.machine);
  }
  if (others.empty()) return;
  const Node& seed = this->node(others[random_.below(others.size())]);
  const std::uint64_t cluster_id = seed.plane->cluster_id();
  events_.after(network_.delay() * 2, [this, machine, life, info = seed.info, cluster_id] {
    Node& joiner = this->node(machine);
    if (!joiner.running() || joiner.life != life) return;
    act(joiner, [&joiner, info, cluster_id, this] {
      joiner.plane->on_seed(now(), info, "sim", cluster_id);
    });
  });
}

void World::stop(Node& node, const char* why) {
  trace(node, std::string("process ends: ") + why);
  checker_.gone(now(), node);
  node.plane.reset();
  node.region.reset();
  node.inbox.clear();
  node.paused = false;
  network_.forget(node.machine);
}

void World::crash(int machine) {
  Node& node = this->node(machine);
  if (!node.running()) return;
  const NodeKey key = node.info.key;
  stop(node, "crash");
  for (Node& other : nodes_) {
    if (other.running() && other.connected.contains(key)) prove_death(other, key, machine);
  }
}

// The kernel of a machine without the process refuses the connection, if it can be reached.
void World::prove_death(Node& at, NodeKey dead, int machine) {
  const std::uint64_t life = at.life;
  events_.after(1ms + network_.delay() * 2, [this, here = at.machine, life, dead, machine] {
    Node& observer = node(here);
    const bool gone = !node(machine).running();
    if (!observer.running() || observer.life != life || !gone || network_.apart(here, machine)) {
      return;
    }
    act(observer, [&observer, dead, this] { observer.plane->on_proof_of_death(now(), dead); });
  });
}

void World::pause(int machine) {
  Node& node = this->node(machine);
  if (!node.awake()) return;
  trace(node, "pause");
  node.paused = true;
  checker_.gone(now(), node);
}

void World::resume(int machine) {
  Node& node = this->node(machine);
  if (!node.running() || !node.paused) return;
  trace(node, "resume");
  node.paused = false;
  act(node, [&] { node.plane->on_tick(now()); });
  while (node.awake() && !node.inbox.empty()) {
    const auto next = std::move(node.inbox.front());
    node.inbox.pop_front();
    act(node, next);
  }
}

void World::leave(int machine) {
  Node& node = this->node(machine);
  if (!node.awake()) return;
  trace(node, "leave");
  node.leaving = true;
  act(node, [&] { node.plane->leave(now()); });
}

void World::down(int at, int machine) {
  Node& node = this->node(at);
  if (!node.awake()) return;
  trace(node, "down " + this->node(machine).name);
  act(node, [&] { node.plane->down(now(), this->node(machine).name); });
}

void World::refuse(int at, int machine) {
  Node& node = this->node(at);
  const NodeKey key = this->node(machine).info.key;
  trace(node, "refused by " + to_text(key));
  act(node, [&node, key, this] { node.plane->on_proof_of_death(now(), key); });
}

void World::host(int machine, std::vector<HostedType> types) {
  Node& node = this->node(machine);
  node.hosts = std::move(types);
  if (!node.running()) return;
  trace(node, "hosts " + std::to_string(node.hosts.size()));
  act(node, [&node, this] {
    node.region->on_hosts(now(), node.hosts);
    node.plane->on_hosted_types(now(), node.hosts);
  });
}

void World::block(int from, int to) {
  trace(node(from), "blocked to " + node(to).name);
  network_.block(from, to);
}

void World::unblock(int from, int to) {
  if (!network_.blocked(from, to)) return;
  trace(node(from), "unblocked to " + node(to).name);
  network_.unblock(from, to);
  if (network_.apart(from, to)) return;
  // Both sides connect again and may find nobody there.
  for (const auto& [here, there] : {std::pair(from, to), std::pair(to, from)}) {
    if (!node(here).running() || node(there).running()) continue;
    for (const auto& [key, since] : node(here).connected) {
      if (machine_of(key) == there) prove_death(node(here), key, there);
    }
  }
}

void World::clog(int from, int to) {
  trace(node(from), "clogged to " + node(to).name);
  network_.clog(from, to);
}

void World::release(int from, int to) {
  trace(node(from), "released to " + node(to).name);
  network_.release(from, to);
}

void World::heal() {
  const auto blocks = network_.blocks();
  for (const auto& [from, to] : blocks) unblock(from, to);
  for (int from = 0; from < machines(); ++from) {
    for (int to = 0; to < machines(); ++to) network_.release(from, to);
  }
}

bool World::run_until(Time when) {
  while (!broken_ && events_.run_next(when)) {
  }
  return !broken_;
}

// One input of one node, and everything that follows from it at once.
void World::act(Node& node, const std::function<void()>& what) {
  if (!node.running()) return;
  if (node.paused) {
    const std::uint64_t life = node.life;
    node.inbox.emplace_back([&node, life, what] {
      if (node.life == life) what();
    });
    return;
  }
  what();
  pump(node);
}

void World::pump(Node& node) {
  node.plane->on_tick(now());
  for (bool again = true; again;) {
    again = false;
    region_outputs(node);
    for (control::ControlOutput& output : node.plane->take_outputs()) {
      again = true;
      if (!carry_out(node, output)) return;
    }
  }
  if (auto broken = checker_.check(now(), node)) fail(*broken);
  schedule_wake(node);
}

void World::region_outputs(Node& node) {
  for (auto outputs = node.region->take_outputs(); !outputs.empty();
       outputs = node.region->take_outputs()) {
    for (RegionOutput& output : outputs) {
      if (output.to == kNoNode) {
        node.plane->on_message(now(), node.info.key, output.message);
      } else {
        send(node, output.to, Channel::region, std::move(output.bytes));
      }
    }
  }
}

// Returns false if the process ended.
bool World::carry_out(Node& node, control::ControlOutput& output) {
  const auto ended = [&](const char* why, Duration pause) {
    const std::uint64_t life = node.life;
    stop(node, why);
    events_.after(pause, [this, machine = node.machine, life] {
      if (this->node(machine).life == life) start(machine, false);
    });
    return false;
  };
  if (config_.hash_trace || config_.trace) {
    const std::string text = to_text(output);
    trace_hash_ = fnv1a64(text, trace_hash_);
    if (!std::holds_alternative<control::PublishDigest>(output)) trace(node, text);
  }
  return std::visit(
      Overloaded{
          [&](control::ConnectNode& o) { return connect(node, o.node), true; },
          [&](control::DisconnectNode& o) {
            node.connected.erase(o.node);
            if (o.how == control::Parting::dead) node.region->on_dead(now(), o.node);
            return true;
          },
          [&](control::TellRegion& o) { return node.region->on_command(now(), o.message), true; },
          [&](control::SendControl& o) {
            return send(node, o.to, Channel::control, encoded(o.message)), true;
          },
          [&](control::PublishDelta& o) { return publish(node, o.delta), true; },
          [&](control::PublishDigest& o) { return publish(node, o.digest), true; },
          [&](control::TableChanged& o) { return node.region->on_table(now(), o.table), true; },
          [](control::Event&) { return true; },
          [&](control::LeaveDone&) { return ended("left", kRestartAfterLeave); },
          [&](control::DownSelf&) { return ended("down", kRestartAfterDown); }},
      output);
}

void World::connect(Node& node, const NodeInfo& to) {
  // Until the subscription stands, publications are missed.
  node.connected[to.key] = now() + network_.delay() * 2;
  const int machine = machine_of(to.key);
  if (!this->node(machine).running()) prove_death(node, to.key, machine);
}

void World::publish(const Node& node, const ControlMessage& message) {
  const std::string bytes = encoded(message);
  for (const Node& other : nodes_) {
    const auto connected = other.connected.find(node.info.key);
    if (!other.running() || connected == other.connected.end()) continue;
    if (connected->second <= now()) network_.gossip(node.machine, other.machine, bytes);
  }
}

void World::send(const Node& node, NodeKey to, Channel channel, std::string bytes) {
  const Node& other = this->node(machine_of(to));
  // Sessions belong to one incarnation.
  if (other.running() && other.info.key == to) {
    network_.link(node.machine, other.machine, channel, std::move(bytes));
  }
}

void World::deliver(int from, int to, Channel channel, const std::string& bytes) {
  Node& receiver = node(to);
  const Node& sender = node(from);
  if (!receiver.running()) return;
  const NodeKey key = sender.info.key;
  if (channel == Channel::gossip) {
    deliver_gossip(receiver, key, bytes);
  } else if (channel == Channel::region) {
    act(receiver, [&receiver, key, bytes, this] { receiver.region->on_frame(now(), key, bytes); });
  } else if (const auto message = decoded(bytes)) {
    act(receiver,
        [&receiver, key, message, this] { receiver.plane->on_message(now(), key, *message); });
  } else {
    fail("undecodable control message from " + sender.name + ": " + why_undecodable(bytes));
  }
}

void World::deliver_gossip(Node& receiver, NodeKey from, const std::string& bytes) {
  const auto message = decoded(bytes);
  if (!message) {
    fail("undecodable gossip from " + to_text(from));
    return;
  }
  act(receiver, [&receiver, from, message, this] {
    if (const auto* digest = std::get_if<Digest>(&*message)) {
      receiver.plane->on_digest(now(), *digest);
    } else if (const auto* delta = std::get_if<TableDelta>(&*message)) {
      receiver.plane->on_delta(now(), from, *delta);
    }
  });
}

void World::schedule_wake(Node& node) {
  const Time when = std::min(node.plane->next_deadline(), node.region->next_deadline());
  if (when <= now()) fail(node.name + " asks to be woken at once, for ever");
  if (when == kNever || (node.wake_at <= when && node.wake_at > now())) return;
  node.wake_at = when;
  events_.at(when, [this, machine = node.machine, life = node.life, when] {
    Node& woken = this->node(machine);
    if (!woken.running() || woken.life != life || woken.wake_at != when) return;
    woken.wake_at = kNever;
    act(woken, [&woken, this] {
      woken.region->on_tick(now());
      woken.plane->on_tick(now());
    });
  });
}

bool World::anybody_in_cluster() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.running() && node.plane->status().in_cluster;
  });
}

std::string World::unsettled() const {
  const MemberSet* set = nullptr;
  const AllocationTable* table = nullptr;
  for (const Node& node : nodes_) {
    if (!node.awake()) return node.name + " is not running";
    const MemberSet& mine = node.plane->members();
    if (mine.members.size() != nodes_.size()) return node.name + " sees " + to_text(mine);
    if (!mine.counted) return node.name + " has an uncounted set " + to_text(mine);
    for (const Member& member : mine.members) {
      if (member.state != MemberState::up) return node.name + " sees " + to_text(mine);
    }
    if (set != nullptr && mine.stamp != set->stamp) return node.name + " has another set";
    const AllocationTable& entries = node.plane->table();
    if (table != nullptr && !(entries == *table)) return node.name + " has another table";
    set = &mine;
    table = &entries;
  }
  for (const HostedType& type : config_.types) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      const ShardName name{type.name, ShardId{i}};
      const TableEntry* entry = find_entry(*table, name);
      if (entry == nullptr || entry->owner == kNoNode) return to_text(name) + " has no owner";
      int owners = 0;
      for (const Node& node : nodes_) {
        for (const OwnedShard& owned : node.region->owned()) {
          if (owned.shard != name) continue;
          ++owners;
          if (node.info.key != entry->owner || owned.generation != entry->generation) {
            return to_text(name) + " is run by " + node.name + ", but the table says " +
                   to_text(*entry);
          }
        }
      }
      if (owners != 1) return to_text(name) + " is run by " + std::to_string(owners) + " nodes";
    }
  }
  return {};
}

std::string World::state_text() const {
  std::string out;
  for (const Node& node : nodes_) {
    out += node.running() ? node.plane->state_text() + "  " + node.region->state_text() + "\n"
                          : node.name + " has no process\n";
  }
  return readable(out);
}

// Keys are hashes; "b2" for the second life of node b can be read.
std::string World::readable(const std::string& text) const {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const bool key = text[i] == 'n' && end - i > 9;
    const auto life =
        key ? lives_.find(NodeKey{std::stoull(text.substr(i + 1, end - i - 1))}) : lives_.end();
    if (life == lives_.end()) {
      out += text[i++];
    } else {
      out += life->second.label;
      i = end;
    }
  }
  return out;
}

void World::fail(const std::string& what) {
  if (!broken_) broken_ = readable(what);
}

void World::trace(const Node& node, const std::string& line) {
  if (!config_.trace) return;
  config_.trace("[" + to_text(events_.now().time_since_epoch() - Duration(1s)) + "] " + node.name +
                " " + readable(line));
}

}  // namespace shardbus::sim
