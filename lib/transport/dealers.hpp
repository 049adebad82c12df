// DEALER sockets to numbered peers, one each, with the monitor that tells their connection's fate.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "transport/zmq.hpp"

namespace shardbus::transport {

class DealerHandler {
 public:
  virtual ~DealerHandler() = default;
  virtual void on_dealer_frame(std::uint64_t peer, std::string_view frame) = 0;
  virtual void on_dealer_connected(std::uint64_t peer) = 0;
  // The connection broke, was refused, or its handshake failed; it is tried again by itself.
  virtual void on_dealer_disconnected(std::uint64_t peer) = 0;
};

// Called when a descriptor is to be watched, or not any more.
class DescriptorSet {
 public:
  virtual ~DescriptorSet() = default;
  virtual void watch(int descriptor) = 0;
  virtual void unwatch(int descriptor) = 0;
};

class Dealers {
 public:
  Dealers(ZmqContext& context, DescriptorSet& descriptors, std::size_t frame_limit)
      : context_(context), descriptors_(descriptors), frame_limit_(frame_limit) {}
  ~Dealers();
  Dealers(const Dealers&) = delete;
  Dealers& operator=(const Dealers&) = delete;

  // Errors: bad_address, exhausted.
  Status open(std::uint64_t peer, const std::string& endpoint);
  void close(std::uint64_t peer);
  void close_all();
  bool send(std::uint64_t peer, std::string_view frame);
  // Reads the sockets whose descriptor is in `ready`, and those that were sent to since the last
  // call (a send takes the edge of a socket's descriptor). True if there may be more.
  bool drain(DealerHandler& handler, const std::vector<int>& ready, std::size_t budget);
  // True if a socket that was sent to since the last drain has something to read.
  [[nodiscard]] bool touched_readable();
  // Connects again what ZeroMQ has given up.
  void tick(Time now);
  [[nodiscard]] Time next_deadline() const;

 private:
  struct Dealer {
    std::uint64_t peer = 0;
    std::string endpoint;
    Socket socket;
    Socket events;
    int descriptor = -1;
    int events_descriptor = -1;
    bool touched = false;
    Time reconnect = kNever;
    Duration backoff = std::chrono::milliseconds(200);
  };
  void drain_events(Dealer& dealer, DealerHandler& handler);
  bool drain_frames(Dealer& dealer, DealerHandler& handler, std::size_t budget);
  void release(Dealer& dealer);

  ZmqContext& context_;
  DescriptorSet& descriptors_;
  std::size_t frame_limit_;
  std::map<std::uint64_t, Dealer> dealers_;
  std::uint64_t monitors_ = 0;
  bool any_touched_ = false;
  Time now_{};
};

}  // namespace shardbus::transport
