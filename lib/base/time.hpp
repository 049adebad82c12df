// Time as the pure code sees it: a number handed in, never read.
#pragma once

#include <chrono>
#include <cstdint>

namespace shardbus {

using Duration = std::chrono::nanoseconds;
// It never goes back, and goes on while the machine is suspended: a node that was away for that
// long has to know. It is nobody's clock to read: `transport::now` reads it, and what waits is
// handed the time that is left, as waits do not count a suspension.
// NOLINTBEGIN(readability-identifier-naming): the names of the standard's requirements for clocks
struct NodeClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<NodeClock, duration>;
  static constexpr bool is_steady = true;
};
// NOLINTEND(readability-identifier-naming)
// Since an arbitrary origin of this machine (or of the simulation).
using Time = NodeClock::time_point;

inline constexpr Time kNever = Time::max();

}  // namespace shardbus
