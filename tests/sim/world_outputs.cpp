// What a control plane of the simulated cluster wants done, as ControlLoop does it.
#include <algorithm>

#include "base/hash.hpp"
#include "base/model/table.hpp"
#include "base/model/text.hpp"
#include "base/overloaded.hpp"
#include "sim/frame_text.hpp"
#include "sim/world.hpp"
#include "wire/codec.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSeedInterval = 300ms;
constexpr Duration kExitPatience = 4s;

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

}  // namespace

void World::carry_out(Node& node, control::ControlOutput& output) {
  if (config_.hash_trace || config_.trace) {
    const std::string text = to_text(output);
    hash(text);
    if (!std::holds_alternative<control::PublishDigest>(output)) trace(node, text);
  }
  const auto pass = [&](auto&& what) { node.process->pass(here(node), what); };
  std::visit(Overloaded{[&](control::ConnectNode& o) { connect(node, o.node); },
                        [&](control::DisconnectNode& o) { disconnect(node, o); },
                        [&](control::TellRegion& o) { tell_region(node, o.message); },
                        [&](control::SendControl& o) {
                          pass([&] {
                            node.data().reach(o.node);
                            (void)node.data().links().send_control(o.to, o.message);
                          });
                        },
                        [&](control::PublishDelta& o) { publish(node, o.delta); },
                        [&](control::PublishDigest& o) { publish(node, o.digest); },
                        [&](control::TableChanged& o) {
                          pass([&] { node.data().dispatch().on_table(o.table); });
                        },
                        [](control::Event&) {},
                        [&](control::LeaveDone&) {
                          node.exit = Exit::others_part;
                          node.exit_until = now() + kExitPatience;
                        },
                        [&](control::DownSelf&) { lost_place_ = !config_.breaks.place_kept; }},
             output);
}

void World::tell_region(Node& node, const ControlMessage& command) {
  node.process->pass(here(node),
                     [&] { node.data().dispatch().on_region_command(node.info.key, command); });
  if (config_.breaks.command_forged) forge(node, command);
}

// Somebody else hears that the shard is his, too.
void World::forge(const Node& node, const ControlMessage& command) {
  const auto* rehome = std::get_if<RehomeShard>(&command);
  if (rehome == nullptr || !random_.chance(0.02)) return;
  RehomeShard forged = *rehome;
  ++forged.generation.counter;
  Node& other = this->node((node.machine + 1) % machines());
  act(other, Side::data,
      [&other, forged] { other.data().dispatch().on_region_command(other.info.key, forged); });
}

void World::connect(Node& node, const NodeInfo& to) {
  // Until the subscription stands, publications are missed.
  node.connected[to.key] = now() + network_.delay() * 2;
  node.process->pass(here(node), [&] { node.data().connect(to); });
}

void World::disconnect(Node& node, const control::DisconnectNode& output) {
  node.connected.erase(output.node);
  node.process->pass(here(node), [&] {
    switch (output.how) {
      case control::Parting::stranger:
        return node.data().let_go(output.node);
      case control::Parting::left:
        return node.data().part_from(output.node);
      case control::Parting::dead:
        return node.data().bury(output.node);
    }
  });
}

void World::publish(const Node& node, const ControlMessage& message) {
  const std::string bytes = encoded(message);
  for (const Node& other : nodes_) {
    const auto connected = other.connected.find(node.info.key);
    if (!other.running() || connected == other.connected.end()) continue;
    if (connected->second <= now()) network_.gossip(node.machine, other.machine, bytes);
  }
}

void World::deliver_gossip(int from, int to, const std::string& bytes) {
  Node& receiver = node(to);
  if (!receiver.running()) return;
  const auto message = decoded(bytes);
  hash(bytes);
  if (!message) return fail("undecodable gossip from " + node(from).name);
  act(receiver, Side::control, [&receiver, message, this] {
    if (const auto* digest = std::get_if<Digest>(&*message)) {
      receiver.control().on_digest(here(receiver), *digest);
    } else if (const auto* delta = std::get_if<TableDelta>(&*message)) {
      receiver.control().on_delta(here(receiver), delta->to.claimant, *delta);
    }
  });
}

// The kernel of a machine without the process refuses the connection, if it can be reached.
void World::probe(Node& at, NodeKey dead) {
  if (!at.connected.contains(dead)) return;
  const int machine = machine_of(dead);
  events_.after(
      network_.delay() * 2, [this, observing = at.machine, starts = at.starts, dead, machine] {
        Node& observer = node(observing);
        const bool refused = !node(machine).running() && !network_.apart(observing, machine);
        if (!observer.running() || observer.starts != starts || !refused) return;
        act(observer, Side::control, [&observer, dead, this] {
          observer.control().on_proof_of_death(here(observer), dead);
        });
      });
}

// Somebody who answers WHO: any other machine that is in a cluster.
void World::look_for_seeds(int machine, std::uint64_t starts) {
  const Node& node = this->node(machine);
  if (!node.running() || node.starts != starts) return;
  events_.after(kSeedInterval, [this, machine, starts] { look_for_seeds(machine, starts); });
  if (node.control().cluster_id() != 0) return;
  std::vector<int> others;
  for (const Node& other : nodes_) {
    if (!other.awake() || network_.apart(machine, other.machine)) continue;
    if (other.control().status().in_cluster) others.push_back(other.machine);
  }
  if (others.empty()) return;
  const Node& seed = this->node(others[random_.below(others.size())]);
  const std::uint64_t cluster_id = seed.control().cluster_id();
  events_.after(network_.delay() * 2, [this, machine, starts, info = seed.info, cluster_id] {
    Node& joiner = this->node(machine);
    if (!joiner.running() || joiner.starts != starts) return;
    act(joiner, Side::control, [&joiner, info, cluster_id, this] {
      joiner.control().on_seed(here(joiner), info, "sim", cluster_id);
    });
  });
}

// --- what happens at the sockets ---

Port World::port(int machine) const {
  const Node& node = this->node(machine);
  if (!node.running()) return Port::closed;
  return node.paused ? Port::silent : Port::open;
}

void World::on_connected(int machine, NodeKey peer) {
  Node& node = this->node(machine);
  act(node, Side::data, [&node, peer] { node.data().links().on_connected(peer); });
}

void World::on_disconnected(int machine, NodeKey peer) {
  Node& node = this->node(machine);
  act(node, Side::data, [&node, peer] { node.data().links().on_disconnected(peer); });
}

void World::on_link_frame(int machine, NodeKey peer, std::string frame) {
  Node& node = this->node(machine);
  if (config_.trace) trace_frame(node, "back from " + to_text(peer), frame);
  hash(frame);
  act(node, Side::data,
      [&node, peer, bytes = std::move(frame)] { node.data().links().on_frame(peer, bytes); });
}

void World::on_peer_frame(int machine, std::uint32_t connection, std::string frame) {
  Node& node = this->node(machine);
  if (config_.trace) trace_frame(node, "on " + std::to_string(connection), frame);
  hash(frame);
  act(node, Side::data, [&node, connection, bytes = std::move(frame)] {
    node.data().peers().on_frame(connection, bytes);
  });
}

void World::trace_frame(const Node& node, const std::string& from, const std::string& frame) {
  const std::string text = frame_text(frame);
  if (!text.empty()) trace(node, "frame " + from + ": " + text);
}

}  // namespace shardbus::sim
