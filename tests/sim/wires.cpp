#include "sim/wires.hpp"

#include <algorithm>
#include <vector>

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRedial = 100ms;
constexpr Duration kRefusalMax = 40ms;

}  // namespace

void Wires::open(int from, NodeKey peer, int to) {
  close(from, peer);
  dealers_[{from, peer}].to = to;
  dial({from, peer}, network_.delay(from, to) * 2);
}

void Wires::dial(const DealerName& name, Duration after) {
  const std::uint64_t number = ++last_dial_;
  dealers_[name].dial = number;
  clock_.after(after, [this, name, number] { attempt(name, number); });
}

void Wires::attempt(const DealerName& name, std::uint64_t number) {
  const auto found = dealers_.find(name);
  if (found == dealers_.end() || found->second.dial != number) return;
  const auto [from, peer] = name;
  const int to = found->second.to;
  const Port port = events_.port(to);
  if (network_.apart(from, to) || port == Port::silent) return dial(name, kRedial);
  if (port == Port::closed) {
    dial(name, kRedial);
    return events_.on_disconnected(from, peer);
  }
  const std::uint32_t id = ++last_connection_;
  Connection& made = connections_[id];
  made.from = from;
  made.to = to;
  made.peer = peer;
  found->second.connection = id;
  put(id, false, ItemKind::connected, {});
}

void Wires::close(int from, NodeKey peer) {
  const auto found = dealers_.find({from, peer});
  if (found == dealers_.end()) return;
  const std::uint32_t id = found->second.connection;
  dealers_.erase(found);
  if (id != 0) end_dealer(id);
}

bool Wires::send(int from, NodeKey peer, std::string_view frame) {
  const auto found = dealers_.find({from, peer});
  if (found == dealers_.end() || found->second.connection == 0) return false;
  Dealer& dealer = found->second;
  if (connections_.at(dealer.connection).broken) return false;
  if (clock_.now() < dealer.takes_none_until) return false;
  const double refusal = network_.config().refusal;
  if (refusal > 0 && random_.chance(refusal)) {
    const auto most = static_cast<std::uint64_t>(kRefusalMax.count());
    dealer.takes_none_until =
        clock_.now() + Duration(static_cast<std::int64_t>(random_.below(most)));
    return false;
  }
  const std::uint32_t id = dealer.connection;
  put(id, true, ItemKind::frame, frame);
  if (network_.breaks(from, dealer.to)) lose(id);
  return true;
}

bool Wires::reply(int at, std::uint32_t connection, std::string_view frame) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || found->second.to != at) return false;
  if (!found->second.router || !found->second.dealer) return false;
  const int to = found->second.from;
  put(connection, false, ItemKind::frame, frame);
  if (network_.breaks(at, to)) lose(connection);
  return true;
}

// --- flows ---

void Wires::put(std::uint32_t id, bool out, ItemKind kind, std::string_view bytes) {
  Connection& connection = connections_.at(id);
  Flow& flow = out ? connection.out : connection.back;
  const int from = out ? connection.from : connection.to;
  const int to = out ? connection.to : connection.from;
  flow.last = std::max(flow.last, clock_.now() + network_.delay(from, to));
  flow.items.push_back({flow.last, kind, std::string(bytes)});
  if (out && !garbles_.empty()) garble_last(connection, flow);
  arm(id, out);
}

void Wires::garble_last(const Connection& connection, Flow& flow) {
  const auto found = garbles_.find({connection.from, connection.to});
  if (found == garbles_.end()) return;
  const std::size_t count = flow.items.size();
  if (found->second == Garble::swap) {
    if (count < 2) return;  // with the next one then
    std::swap(flow.items[count - 1].bytes, flow.items[count - 2].bytes);
  } else if (found->second == Garble::repeat) {
    flow.items.push_back(flow.items.back());
  } else {
    flow.items.pop_back();
  }
  garbles_.erase(found);
}

void Wires::arm(std::uint32_t id, bool out) {
  Connection& connection = connections_.at(id);
  Flow& flow = out ? connection.out : connection.back;
  if (flow.items.empty() || std::exchange(flow.armed, true)) return;
  clock_.at(flow.items.front().due, [this, id, out] {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    (out ? found->second.out : found->second.back).armed = false;
    fire(id, out);
  });
}

void Wires::fire(std::uint32_t id, bool out) {
  for (auto found = connections_.find(id); found != connections_.end();
       found = connections_.find(id)) {
    Connection& connection = found->second;
    Flow& flow = out ? connection.out : connection.back;
    // What an end has noticed itself is told also while the way is blocked.
    const bool waits = !flow.items.empty() && flow.items.front().kind == ItemKind::frame &&
                       stands(connection, out);
    if (waits) return;
    if (flow.items.empty() || flow.items.front().due > clock_.now()) return arm(id, out);
    Item item = std::move(flow.items.front());
    flow.items.pop_front();
    deliver(id, out, std::move(item));
  }
}

void Wires::deliver(std::uint32_t id, bool out, Item item) {
  const Connection& connection = connections_.at(id);
  const int from = connection.from;
  const int to = connection.to;
  const NodeKey peer = connection.peer;
  if (out) {
    const bool arrives = connection.router;
    const bool last = !connection.dealer && connection.out.items.empty();
    if (last) connections_.erase(id);
    if (arrives) events_.on_peer_frame(to, id, std::move(item.bytes));
    return;
  }
  if (item.kind == ItemKind::connected) return events_.on_connected(from, peer);
  if (item.kind == ItemKind::frame) return events_.on_link_frame(from, peer, std::move(item.bytes));
  connections_.erase(id);
  dealers_.at({from, peer}).connection = 0;
  dial({from, peer}, kRedial);
  events_.on_disconnected(from, peer);
}

// --- ends ---

// Both ends find the connection broken, and what was under way is lost.
void Wires::lose(std::uint32_t id) {
  Connection& connection = connections_.at(id);
  if (connection.broken) return;
  if (!connection.dealer) {
    connections_.erase(id);
    return;
  }
  connection.router = false;
  connection.stuck = false;
  connection.out.items.clear();
  std::erase_if(connection.back.items, [](const Item& i) { return i.kind == ItemKind::frame; });
  tell_broken(id);
}

void Wires::tell_broken(std::uint32_t id) {
  connections_.at(id).broken = true;
  put(id, false, ItemKind::disconnected, {});
}

// The dealer's end is gone. What it sent before may still arrive.
void Wires::end_dealer(std::uint32_t id) {
  Connection& connection = connections_.at(id);
  connection.dealer = false;
  connection.back.items.clear();
  const bool arrives = connection.router && !connection.out.items.empty() &&
                       !stands(connection, true) && random_.chance(0.5);
  if (!arrives) connections_.erase(id);
}

// The router's end is gone. What it sent before may still arrive.
void Wires::end_router(std::uint32_t id) {
  Connection& connection = connections_.at(id);
  if (connection.broken) return;
  connection.router = false;
  connection.out.items.clear();
  if (network_.apart(connection.from, connection.to)) {
    connection.stuck = true;
  } else if (connection.dealer && random_.chance(0.5)) {
    tell_broken(id);
  } else {
    lose(id);
  }
}

template <class F>
void Wires::each_between(int from, int to, F what) {
  std::vector<std::uint32_t> ids;
  for (const auto& [id, connection] : connections_) {
    const bool there = connection.from == from && connection.to == to;
    const bool back = connection.from == to && connection.to == from;
    if (there || back) ids.push_back(id);
  }
  for (const std::uint32_t id : ids) {
    if (connections_.contains(id)) what(id, connections_.at(id).from == from);
  }
}

void Wires::end_process(int machine) {
  std::vector<NodeKey> peers;
  for (const auto& [name, dealer] : dealers_) {
    if (name.first == machine) peers.push_back(name.second);
  }
  for (const NodeKey peer : peers) close(machine, peer);
  std::vector<std::uint32_t> ids;
  for (const auto& [id, connection] : connections_) {
    if (connection.to == machine) ids.push_back(id);
  }
  for (const std::uint32_t id : ids) end_router(id);
}

void Wires::reset(int a, int b) {
  each_between(a, b, [this](std::uint32_t id, bool) { lose(id); });
}

void Wires::on_unblocked(int from, int to) {
  if (random_.chance(0.5)) return reset(from, to);
  on_released(from, to);
}

void Wires::on_released(int from, int to) {
  const bool together = !network_.apart(from, to);
  each_between(from, to, [&](std::uint32_t id, bool out) {
    if (connections_.at(id).stuck) {
      if (together) lose(id);
      return;
    }
    Connection& connection = connections_.at(id);
    Flow& flow = out ? connection.out : connection.back;
    if (flow.armed) return;
    for (Item& item : flow.items) item.due = std::max(item.due, clock_.now());
    arm(id, out);
  });
}

}  // namespace shardbus::sim
