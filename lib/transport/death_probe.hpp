// Finds out whether a peer whose connection broke is dead: whether the kernel at its address still
// lets anybody in.
//
// A refused connection proves that the process that had the port is gone (DESIGN 7); anything else
// proves nothing. A process that dies closes its sockets one after the other, so for a moment its
// port may still take a connection. That connection is kept: it ends when the port goes, and then
// the address is tried again. Never blocks.
#pragma once

#include <poll.h>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "transport/endpoint.hpp"

namespace shardbus::transport {

class DeathProbe {
 public:
  DeathProbe() = default;
  ~DeathProbe();
  DeathProbe(const DeathProbe&) = delete;
  DeathProbe& operator=(const DeathProbe&) = delete;

  // Asks for a second, or until it is proven. Literal IPv4 and IPv6 hosts only: a name that has to
  // be resolved proves nothing quickly.
  void start(std::uint64_t peer, const std::string& endpoint, Time now);
  // Peers that are proven dead since the last call.
  std::vector<std::uint64_t> collect(Time now);
  // What `collect` waits for: these descriptors, or this time.
  void add_waits(std::vector<pollfd>& items) const;
  [[nodiscard]] Time next_deadline() const;

 private:
  enum class State : std::uint8_t { pausing, connecting, connected };
  enum class Step : std::uint8_t { waits, proven, vain };
  struct Watch {
    std::uint64_t peer = 0;
    Endpoint endpoint;
    State state = State::pausing;
    int descriptor = -1;
    Time until{};
    Time next_try{};  // while pausing
    Duration pause{};
  };
  static Step look(Watch& watch, Time now);
  static Step judge(Watch& watch, int error, Time now);
  static void close_connection(Watch& watch);

  std::vector<Watch> watches_;
};

}  // namespace shardbus::transport
