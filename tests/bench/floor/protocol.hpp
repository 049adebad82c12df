// What travels between the client and the servers of the floor: nothing but a number and filling.
#pragma once

#include <zmq.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace shardbus_floor {

inline constexpr std::size_t kBatchBytesMax = 64 * 1024;
inline constexpr int kDrainMax = 256;    // messages that one pass takes from a socket
inline constexpr int kFollowEvery = 64;  // passes between two looks at the poller's core

struct Options {
  std::uint32_t servers = 3;
  std::uint64_t asks = 200'000;
  std::uint32_t window = 64;
  std::uint32_t payload = 40;  // bytes of one ask, 8 or more
  bool batched = false;        // all asks of a pass to one server share a frame
  bool follow = false;         // the I/O thread runs where the thread that polls does
};

// A benchmark that cannot open a socket has nothing to say.
inline void must(bool good, std::string_view what) {
  if (good) return;
  std::cerr << "shardbus-floor: " << what << ": " << zmq_strerror(errno) << "\n";
  std::exit(1);
}

// One of libzmq's frames.
class Frame {
 public:
  Frame() { zmq_msg_init(&message_); }
  ~Frame() { zmq_msg_close(&message_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  bool receive(void* socket, int flags) { return zmq_msg_recv(&message_, socket, flags) >= 0; }
  // Gives the bytes away.
  void send(void* socket, int flags) { must(zmq_msg_send(&message_, socket, flags) >= 0, "send"); }
  [[nodiscard]] const char* data() { return static_cast<const char*>(zmq_msg_data(&message_)); }
  [[nodiscard]] std::size_t size() const { return zmq_msg_size(&message_); }

 private:
  zmq_msg_t message_{};
};

inline void unlimited(void* socket) {
  const int zero = 0;
  for (const int option : {ZMQ_SNDHWM, ZMQ_RCVHWM, ZMQ_LINGER}) {
    must(zmq_setsockopt(socket, option, &zero, sizeof zero) == 0, "option");
  }
}

}  // namespace shardbus_floor
