// The client of the floor: one DEALER per server, a fixed number of asks in flight, one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/floor/protocol.hpp"
#include "common/histogram.hpp"

namespace shardbus_floor {

struct Figures {
  std::uint64_t asks = 0;
  std::chrono::nanoseconds wall{};
  std::chrono::nanoseconds cpu{};  // of this process
  shardbus_tools::Histogram latency_ns;
};

class Client {
 public:
  Client(const Options& options, const std::vector<std::string>& servers);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends so many asks and waits for every reply. Ends the process if one is not for an ask that is
  // open.
  Figures run(std::uint64_t asks);

 private:
  using Clock = std::chrono::steady_clock;
  struct Server {
    void* socket = nullptr;
    int descriptor = -1;
    std::string batch;
  };

  void ask(std::uint32_t slot);
  void flush();
  bool drain(Server& server);
  void take(std::string_view replies);
  void wait();

  Options options_;
  void* context_;
  std::vector<Server> servers_;
  std::vector<Clock::time_point> sent_;  // by slot; epoch: not in flight
  std::string ask_;
  std::uint64_t left_ = 0;
  std::uint64_t open_ = 0;
  std::uint64_t random_ = 0x9e3779b97f4a7c15ULL;
  shardbus_tools::Histogram latency_ns_;
};

}  // namespace shardbus_floor
