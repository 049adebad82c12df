// Time as the pure code sees it: a number handed in, never read.
#pragma once

#include <chrono>
#include <cstdint>

namespace shardbus {

using Duration = std::chrono::nanoseconds;
// Monotonic time since an arbitrary origin of this process (or of the simulation).
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline constexpr Time kNever = Time::max();

}  // namespace shardbus
