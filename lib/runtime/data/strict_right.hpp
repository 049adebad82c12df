// Whether handlers of strict types may start, and their outputs leave, at this very instant.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "base/time.hpp"

namespace shardbus::runtime {

// Set by the control loop, asked before each handler of a strict type.
//
// Threads: any.
class StrictRight {
 public:
  // `clock` must not lag: a pass that stood still has an old time of its own.
  explicit StrictRight(std::function<Time()> clock) : clock_(std::move(clock)) {}

  void set(Time until) { until_.store(until, std::memory_order_relaxed); }
  [[nodiscard]] bool holds() const { return clock_() < until_.load(std::memory_order_relaxed); }

 private:
  std::function<Time()> clock_;
  std::atomic<Time> until_{Time{}};
};

}  // namespace shardbus::runtime
