// The one place that reads the clock of nodes and clients.
#pragma once

#include <ctime>

#include "base/time.hpp"

namespace shardbus::transport {

// CLOCK_BOOTTIME, as CLOCK_MONOTONIC stands still while the machine is suspended; both cost the
// same.
inline Time now() {
  timespec read{};
  clock_gettime(CLOCK_BOOTTIME, &read);
  return Time{std::chrono::seconds(read.tv_sec) + std::chrono::nanoseconds(read.tv_nsec)};
}

}  // namespace shardbus::transport
