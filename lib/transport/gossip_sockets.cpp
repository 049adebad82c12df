#include "transport/gossip_sockets.hpp"

#include <algorithm>
#include <utility>

namespace shardbus::transport {
namespace {

constexpr std::size_t kGossipFrameMax = 1U << 20;

}  // namespace

Result<GossipSockets> GossipSockets::bind(ZmqContext& context, const std::string& endpoint) {
  Result<Socket> pub = Socket::open(context, SocketKind::pub, IoThread::control, kGossipFrameMax);
  if (!pub) return pub.error();
  Result<Socket> sub = Socket::open(context, SocketKind::sub, IoThread::control, kGossipFrameMax);
  if (!sub) return sub.error();
  const Status bound = pub->bind(endpoint);
  if (!bound) return bound;
  GossipSockets sockets;
  sockets.pub_ = std::move(*pub);
  sockets.sub_ = std::move(*sub);
  sockets.sub_.subscribe_all();
  sockets.endpoint_ = sockets.pub_.last_endpoint();
  return sockets;
}

void GossipSockets::connect(NodeKey node, const std::string& endpoint) {
  const auto [place, fresh] = connected_.try_emplace(node, Connected{endpoint, {}});
  if (fresh) (void)sub_.connect(endpoint);
}

void GossipSockets::disconnect(NodeKey node) {
  const auto found = connected_.find(node);
  if (found == connected_.end()) return;
  const std::string endpoint = found->second.endpoint;
  connected_.erase(found);
  // A restarted node may listen on the same endpoint under a new key.
  for (const auto& [other, used] : connected_) {
    if (used.endpoint == endpoint) return;
  }
  sub_.disconnect(endpoint);
}

void GossipSockets::heard(NodeKey node, Time now) {
  const auto found = connected_.find(node);
  if (found != connected_.end()) found->second.alive = now;
}

void GossipSockets::revive(Time now, Duration silence) {
  for (auto& entry : connected_) {
    const NodeKey node = entry.first;
    auto& peer = entry.second;
    if (peer.alive == Time{}) peer.alive = now;
    if (now - peer.alive < silence) continue;
    peer.alive = now;
    // Of two lives of a node at one address the living one keeps the connection.
    const bool lives = std::any_of(connected_.begin(), connected_.end(), [&](const auto& other) {
      return other.first != node && other.second.endpoint == peer.endpoint &&
             now - other.second.alive < silence;
    });
    if (lives) continue;
    sub_.disconnect(peer.endpoint);
    (void)sub_.connect(peer.endpoint);
  }
}

bool GossipSockets::receive(Frame& frame) {
  for (;;) {
    if (!sub_.receive(frame)) return false;
    if (!frame.more()) return true;
    sub_.drop_rest();
  }
}

}  // namespace shardbus::transport
