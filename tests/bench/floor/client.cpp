#include "bench/floor/client.hpp"

#include <poll.h>

#include <cstring>

#include "bench/floor/follow.hpp"
#include "common/process.hpp"

namespace shardbus_floor {
namespace {

constexpr int kPatienceMs = 10'000;

}  // namespace

Client::Client(const Options& options, const std::vector<std::string>& servers)
    : options_(options),
      context_(zmq_ctx_new()),
      sent_(options.window),
      ask_(options.payload, 'x') {
  for (const std::string& address : servers) {
    Server server;
    server.socket = zmq_socket(context_, ZMQ_DEALER);
    unlimited(server.socket);
    must(zmq_connect(server.socket, address.c_str()) == 0, "connect");
    std::size_t size = sizeof server.descriptor;
    must(zmq_getsockopt(server.socket, ZMQ_FD, &server.descriptor, &size) == 0, "descriptor");
    servers_.push_back(std::move(server));
  }
}

Client::~Client() {
  for (const Server& server : servers_) zmq_close(server.socket);
  zmq_ctx_term(context_);
}

Figures Client::run(std::uint64_t asks) {
  latency_ns_ = {};
  left_ = asks;
  Follower follower(options_.follow);
  const auto cpu = shardbus_tools::cpu_time(0);
  const auto begin = Clock::now();
  for (std::uint32_t slot = 0; slot < options_.window && left_ > 0; ++slot) ask(slot);
  flush();
  while (open_ > 0) {
    bool any = false;
    for (Server& server : servers_) any = drain(server) || any;
    flush();
    follower.pass();
    if (!any) wait();
  }
  return {asks, Clock::now() - begin, shardbus_tools::cpu_time(0) - cpu, latency_ns_};
}

void Client::ask(std::uint32_t slot) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  Server& server = servers_[random_ % servers_.size()];
  const std::uint64_t number = slot;
  std::memcpy(ask_.data(), &number, sizeof number);
  --left_;
  ++open_;
  sent_[slot] = Clock::now();
  if (options_.batched) {
    server.batch += ask_;
    return;
  }
  must(zmq_send(server.socket, ask_.data(), ask_.size(), 0) >= 0, "send");
}

void Client::flush() {
  for (Server& server : servers_) {
    if (server.batch.empty()) continue;
    must(zmq_send(server.socket, server.batch.data(), server.batch.size(), 0) >= 0, "send");
    server.batch.clear();
  }
}

bool Client::drain(Server& server) {
  for (int taken = 0; taken < kDrainMax; ++taken) {
    Frame frame;
    if (!frame.receive(server.socket, ZMQ_DONTWAIT)) return taken > 0;
    take({frame.data(), frame.size()});
  }
  return true;
}

void Client::take(std::string_view replies) {
  const auto now = Clock::now();
  for (; replies.size() >= ask_.size(); replies.remove_prefix(ask_.size())) {
    std::uint64_t slot = 0;
    std::memcpy(&slot, replies.data(), sizeof slot);
    const bool open = slot < sent_.size() && sent_[slot] != Clock::time_point{};
    errno = EPROTO;
    must(open, "a reply that nobody waits for");
    latency_ns_.add(static_cast<std::uint64_t>((now - sent_[slot]).count()));
    sent_[slot] = {};
    --open_;
    if (left_ > 0) ask(static_cast<std::uint32_t>(slot));
    if (!options_.batched) continue;
    for (Server& server : servers_) {
      if (server.batch.size() >= kBatchBytesMax) flush();
    }
  }
}

// The descriptors speak only on a change, and sending looks at the sockets too: so it is asked
// once more, before and after it speaks.
void Client::wait() {
  std::vector<pollfd> items;
  for (const Server& server : servers_) {
    int events = 0;
    std::size_t size = sizeof events;
    must(zmq_getsockopt(server.socket, ZMQ_EVENTS, &events, &size) == 0, "events");
    if ((events & ZMQ_POLLIN) != 0) return;
    items.push_back({server.descriptor, POLLIN, 0});
  }
  errno = ETIMEDOUT;
  must(poll(items.data(), items.size(), kPatienceMs) > 0, "no reply");
}

}  // namespace shardbus_floor
