// Asks the kernel at the other end, once, whether anything listens on an address. Never blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "transport/endpoint.hpp"

namespace shardbus::transport {

// Starts a connect, without blocking. The socket's errno, 0, or EINPROGRESS; EINVAL for a host that
// is no literal address.
int begin_connect(int& descriptor, const Endpoint& endpoint);

class Prober {
 public:
  Prober() = default;
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  enum class Outcome : std::uint8_t { refused, connected, unknown };
  struct Finding {
    std::uint64_t peer = 0;
    Outcome outcome = Outcome::unknown;
  };
  // Literal IPv4 and IPv6 hosts only: a name that has to be resolved proves nothing quickly.
  void start(std::uint64_t peer, const std::string& endpoint, Time now);
  // What is known by now.
  std::vector<Finding> collect(Time now);
  // Descriptors that turn writable when `collect` has news.
  [[nodiscard]] std::vector<int> descriptors() const;

 private:
  struct Attempt {
    std::uint64_t peer = 0;
    int descriptor = -1;
    Time deadline{};
  };
  std::vector<Attempt> attempts_;
  std::vector<Finding> done_;
};

}  // namespace shardbus::transport
