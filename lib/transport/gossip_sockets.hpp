// PUB and SUB of a node, on the control I/O thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "transport/zmq.hpp"

namespace shardbus::transport {

class GossipSockets {
 public:
  // Errors: address_in_use, bad_address, exhausted.
  static Result<GossipSockets> bind(ZmqContext& context, const std::string& endpoint);

  void connect(NodeKey node, const std::string& endpoint);
  void disconnect(NodeKey node);
  // A digest of the node arrived.
  void heard(NodeKey node, Time now);
  // Connects anew to nodes that were silent for long: after a failed handshake nothing else does.
  void revive(Time now, Duration silence);
  void publish(std::string_view frame) { (void)pub_.send(frame); }
  // False: nothing there. Messages of several frames are dropped.
  bool receive(Frame& frame);
  // Lets the PUB take in new subscribers; they are seen only inside calls of its owner.
  void service() { (void)pub_.readable(); }
  void close() {
    pub_.close();
    sub_.close();
  }
  [[nodiscard]] std::string endpoint() const { return endpoint_; }
  [[nodiscard]] int descriptor() const { return sub_.descriptor(); }
  [[nodiscard]] bool readable() const { return sub_.readable(); }

 private:
  Socket pub_;
  Socket sub_;
  std::string endpoint_;
  struct Connected {
    std::string endpoint;
    Time alive{};  // last connect or digest
  };
  std::map<NodeKey, Connected> connected_;
};

}  // namespace shardbus::transport
