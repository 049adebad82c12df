// Bare ZeroMQ in the rounds of a benchmark, as what its figures are held against.
#pragma once

#include <cstdint>

namespace shardbusctl::bench {

struct Figures {
  double asks_per_s = 0;
  double cpu_us_per_ask = 0;
  double p50_us = 0;
  double p99_us = 0;
};

// One run of shardbus-floor, which stands beside this program: a client process and `servers`
// others, so many asks in flight in all. Blocks until it ends. Errors end the command.
Figures measure_floor(std::uint32_t servers, std::uint64_t asks, std::uint64_t window,
                      std::size_t payload);

}  // namespace shardbusctl::bench
