// A bound ROUTER whose peers are numbers: the FRONT or PEER socket of a node.
//
// Accepts [frame] and ["", frame]; a peer with an identity of its own is answered `identity_set`.
// Never reveals a routing id: a peer that knew the next one could abort the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "transport/zmq.hpp"

namespace shardbus::transport {

class RouterHandler {
 public:
  virtual ~RouterHandler() = default;
  virtual void on_frame(std::uint32_t connection, bool delimited, std::string_view frame) = 0;
  // A message of another shape; all of it has been read.
  virtual void on_bad_frame(std::uint32_t connection, std::size_t frames) = 0;
};

class Router {
 public:
  // `identity_refusal`: the frame that answers peers with a set identity.
  static Result<Router> bind(ZmqContext& context, const std::string& endpoint,
                             std::size_t frame_limit, std::string identity_refusal);

  // Reads up to `budget` messages; returns how many.
  std::size_t drain(RouterHandler& handler, std::size_t budget);
  bool send(std::uint32_t connection, bool delimited, std::string_view frame);
  // Cuts the TCP connection of a peer that has sent something.
  void kick(std::uint32_t connection);
  // Whether the TCP connection of a peer that has sent something is at its end.
  [[nodiscard]] bool is_gone(std::uint32_t connection) const;
  void close() { socket_.close(); }
  [[nodiscard]] std::string endpoint() const { return endpoint_; }
  [[nodiscard]] bool readable() const { return socket_.readable(); }
  [[nodiscard]] int descriptor() const { return socket_.descriptor(); }

 private:
  struct Source {  // descriptors are reused: the inode tells whether it is still the same
    int descriptor = -1;
    std::uint64_t inode = 0;
  };
  void note_source(std::uint32_t connection, const Frame& frame);
  void prune_sources();
  bool receive_message(RouterHandler& handler);

  Socket socket_;
  std::string endpoint_;
  std::string identity_refusal_;
  std::unordered_map<std::uint32_t, Source> sources_;
  std::uint32_t last_noted_ = 0;
};

}  // namespace shardbus::transport
