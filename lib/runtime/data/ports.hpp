// The two exits of the data plane: to the network, and to the control loop and the host process.
//
// The real node puts ZeroMQ and threads behind them, the simulator an in-memory network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/model/allocation.hpp"
#include "base/time.hpp"
#include "shardbus/options.hpp"

namespace shardbus::runtime {

// Sends frames. No call blocks; false says that the frame was not taken (connection gone or full).
class WirePort {
 public:
  virtual ~WirePort() = default;
  // FRONT ROUTER, to a client or worker; `delimited`: with the empty frame that a REQ expects.
  virtual bool send_front(std::uint32_t connection, bool delimited, std::string_view frame) = 0;
  // PEER ROUTER, back to a node that is connected to us.
  virtual bool send_peer(std::uint32_t connection, std::string_view frame) = 0;
  // DEALER to a node. Taken frames arrive in order or not at all; a lost connection is reported.
  virtual bool send_link(NodeKey node, std::string_view frame) = 0;
  virtual void open_link(const NodeInfo& node) = 0;
  virtual void close_link(NodeKey node) = 0;
  // Ends a client's connection.
  virtual void kick_front(std::uint32_t connection) = 0;
  // Whether a client's or worker's connection has ended, as far as the operating system knows.
  [[nodiscard]] virtual bool front_is_gone(std::uint32_t connection) const = 0;
};

// An administrative ask (`$node`), to be answered through DataPlane::answer.
struct AdminCall {
  NodeKey asker;
  std::uint64_t slot = 0;
  std::string method;
  std::string payload;
};

// Told of what happens. Calls come from within a pass: they must only note it down.
class DataListener {
 public:
  virtual ~DataListener() = default;
  virtual void on_control(NodeKey from, ControlMessage message) = 0;
  virtual void on_traffic(NodeKey from) = 0;  // at most once per node and pass
  virtual void on_link_lost(NodeKey node) = 0;
  virtual void on_hosted_types(std::vector<HostedType> types) = 0;
  virtual void on_admin(AdminCall call) = 0;
  virtual void log(LogLevel level, std::string_view event, std::string text) = 0;
  // Whether the control loop has looked at the clock lately. If not, this process may have stood
  // still and lost its place without knowing: until it has judged that, nothing is handled.
  [[nodiscard]] virtual bool awake(Time now) const = 0;
};

}  // namespace shardbus::runtime
