// ZeroMQ behind two owning handles. No other module sees a zmq header.
//
// Every socket gets the options that hold for all: no ZMTP heartbeats (they can abort the process),
// LINGER 0 from birth, a limit on every frame, keep-alive. Retries EINTR everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "shardbus/status.hpp"

namespace shardbus::transport {

// A ZeroMQ context with one I/O thread for data and one for control. Closing it waits for its
// sockets, which must be closed before.
class ZmqContext {
 public:
  ZmqContext();
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;
  [[nodiscard]] void* get() const { return context_; }
  // Thread id of the I/O thread that serves data sockets; 0 where it cannot be told.
  [[nodiscard]] int data_thread() const { return data_thread_; }
  void find_data_thread();

 private:
  void* context_;
  int data_thread_ = 0;
};

enum class SocketKind : std::uint8_t { router, dealer, pub, sub, pair };
enum class IoThread : std::uint8_t { data, control };

// A frame that was received; its bytes live as long as this does.
class Frame {
 public:
  Frame();
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  [[nodiscard]] std::string_view bytes() const;
  [[nodiscard]] bool more() const;
  // Descriptor of the TCP connection that it came over; -1 if there is none.
  [[nodiscard]] int source_descriptor() const;
  [[nodiscard]] void* raw() { return storage_; }

 private:
  alignas(8) mutable unsigned char storage_[64];  // zmq_msg_t
};

// One socket. Threads: one at a time, with a full fence between them.
class Socket {
 public:
  Socket() = default;
  Socket(Socket&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  // Errors: exhausted (no descriptor or socket left).
  static Result<Socket> open(ZmqContext& context, SocketKind kind, IoThread thread,
                             std::size_t frame_limit);
  void close();

  // Errors: address_in_use, bad_address (both name the endpoint).
  Status bind(const std::string& endpoint);
  Status connect(const std::string& endpoint);
  void disconnect(const std::string& endpoint);
  [[nodiscard]] std::string last_endpoint() const;
  void set_int(int option, int value);
  void subscribe_all();

  enum class Sent : std::uint8_t { yes, full, gone };
  // Never blocks. `more`: another frame of the same message follows.
  Sent send(std::string_view bytes, bool more = false);
  // Never blocks. False: nothing there.
  bool receive(Frame& frame);
  // Drops what is left of a message whose last received frame had `more()`; returns how many.
  std::size_t drop_rest();
  // Reads ZMQ_EVENTS: whether a receive would find something. Also re-arms the descriptor.
  [[nodiscard]] bool readable() const;
  [[nodiscard]] int descriptor() const;
  // Reports connection events to `endpoint` (inproc, to be connected by a pair socket).
  void monitor(const std::string& endpoint, int events);
  void stop_monitor();
  [[nodiscard]] void* get() const { return socket_; }
  explicit operator bool() const { return socket_ != nullptr; }

 private:
  explicit Socket(void* socket) : socket_(socket) {}
  void* socket_ = nullptr;
};

}  // namespace shardbus::transport
