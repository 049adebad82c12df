#include "transport/dealers.hpp"

#include <zmq.h>
#include <algorithm>
#include <cstring>
#include <utility>

namespace shardbus::transport {
namespace {

constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED |
                        ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
constexpr Duration kBackoffMax = std::chrono::seconds(5);
// ZeroMQ tries again after most losses and says so at once. After a breach of its protocol, such as
// a frame over the limit, it never does and says nothing.
constexpr Duration kSilentLoss = std::chrono::seconds(3);

}  // namespace

Dealers::~Dealers() {
  close_all();
}

void Dealers::close_all() {
  for (auto& [peer, dealer] : dealers_) release(dealer);
  dealers_.clear();
}

Status Dealers::open(std::uint64_t peer, const std::string& endpoint) {
  close(peer);
  Result<Socket> socket = Socket::open(context_, SocketKind::dealer, IoThread::data, frame_limit_);
  if (!socket) return socket.error();
  Result<Socket> events = Socket::open(context_, SocketKind::pair, IoThread::data, frame_limit_);
  if (!events) return events.error();
  Dealer dealer;
  dealer.peer = peer;
  dealer.endpoint = endpoint;
  dealer.socket = std::move(*socket);
  dealer.events = std::move(*events);
  const std::string monitor = "inproc://monitor-" + std::to_string(++monitors_);
  dealer.socket.monitor(monitor, kEvents);
  (void)dealer.events.connect(monitor);
  Status connected = dealer.socket.connect(endpoint);
  if (!connected) {
    dealer.socket.stop_monitor();
    return connected;
  }
  dealer.descriptor = dealer.socket.descriptor();
  dealer.events_descriptor = dealer.events.descriptor();
  descriptors_.watch(dealer.descriptor);
  descriptors_.watch(dealer.events_descriptor);
  // Both may have something already: their descriptors speak only on a change.
  dealer.touched = true;
  any_touched_ = true;
  dealers_.emplace(peer, std::move(dealer));
  return {};
}

void Dealers::release(Dealer& dealer) {
  descriptors_.unwatch(dealer.descriptor);
  descriptors_.unwatch(dealer.events_descriptor);
  dealer.socket.stop_monitor();  // before the pair is closed, or the I/O thread blocks
  dealer.events.close();
  dealer.socket.close();
}

void Dealers::close(std::uint64_t peer) {
  const auto found = dealers_.find(peer);
  if (found == dealers_.end()) return;
  release(found->second);
  dealers_.erase(found);
}

bool Dealers::send(std::uint64_t peer, std::string_view frame) {
  const auto found = dealers_.find(peer);
  if (found == dealers_.end()) return false;
  found->second.touched = true;
  any_touched_ = true;
  return found->second.socket.send(frame) == Socket::Sent::yes;
}

bool Dealers::drain(DealerHandler& handler, const std::vector<int>& ready, std::size_t budget) {
  if (ready.empty() && !any_touched_) return false;
  any_touched_ = false;
  bool more = false;
  std::vector<std::uint64_t> peers;
  for (auto& [peer, dealer] : dealers_) {
    const bool wanted =
        std::exchange(dealer.touched, false) ||
        std::find(ready.begin(), ready.end(), dealer.descriptor) != ready.end() ||
        std::find(ready.begin(), ready.end(), dealer.events_descriptor) != ready.end();
    if (wanted) peers.push_back(peer);
  }
  for (const std::uint64_t peer : peers) {  // a handler may close any of them
    auto found = dealers_.find(peer);
    if (found == dealers_.end()) continue;
    more = drain_frames(found->second, handler, budget) || more;
    found = dealers_.find(peer);
    if (found != dealers_.end()) drain_events(found->second, handler);
  }
  return more;
}

bool Dealers::drain_frames(Dealer& dealer, DealerHandler& handler, std::size_t budget) {
  const std::uint64_t peer = dealer.peer;
  for (std::size_t i = 0; i < budget; ++i) {
    Frame frame;
    if (!dealer.socket.receive(frame)) return false;
    if (frame.more()) {
      dealer.socket.drop_rest();
      continue;
    }
    handler.on_dealer_frame(peer, frame.bytes());
    if (!dealers_.contains(peer)) return false;
  }
  dealer.touched = true;
  any_touched_ = true;
  return true;
}

void Dealers::drain_events(Dealer& dealer, DealerHandler& handler) {
  const std::uint64_t peer = dealer.peer;
  for (;;) {
    Frame event;
    if (!dealer.events.receive(event)) return;
    std::uint16_t kind = 0;
    if (event.bytes().size() >= sizeof kind) std::memcpy(&kind, event.bytes().data(), sizeof kind);
    if (event.more()) dealer.events.drop_rest();
    if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      dealer.backoff = std::chrono::milliseconds(200);
      dealer.reconnect = kNever;
      handler.on_dealer_connected(peer);
    } else {
      if (kind == ZMQ_EVENT_CONNECT_RETRIED) {
        dealer.reconnect = kNever;
      } else if (kind == ZMQ_EVENT_DISCONNECTED) {
        dealer.reconnect = std::min(dealer.reconnect, now_ + kSilentLoss);
      } else {
        // A failed handshake leaves the endpoint dead for good; only a new connect revives it.
        dealer.reconnect = now_ + dealer.backoff;
      }
      handler.on_dealer_disconnected(peer);
    }
    if (!dealers_.contains(peer)) return;
  }
}

bool Dealers::touched_readable() {
  if (!any_touched_) return false;
  for (auto& [peer, dealer] : dealers_) {
    if (dealer.touched && (dealer.socket.readable() || dealer.events.readable())) return true;
  }
  return false;
}

void Dealers::tick(Time now) {
  now_ = now;
  for (auto& [peer, dealer] : dealers_) {
    if (dealer.reconnect > now) continue;
    dealer.reconnect = kNever;
    dealer.backoff = std::min(2 * dealer.backoff, kBackoffMax);
    dealer.socket.disconnect(dealer.endpoint);
    (void)dealer.socket.connect(dealer.endpoint);
  }
}

Time Dealers::next_deadline() const {
  Time next = kNever;
  for (const auto& [peer, dealer] : dealers_) next = std::min(next, dealer.reconnect);
  return next;
}

}  // namespace shardbus::transport
