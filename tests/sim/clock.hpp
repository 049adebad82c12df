// The two clocks of a machine: a monotonic one, which may run too fast or too slow, and a wall
// clock, which may jump and gives processes their incarnations.
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace shardbus::sim {

class Clock {
 public:
  [[nodiscard]] Time local(Time world) const { return local_base_ + scaled(world - world_base_); }
  // The first instant of the world at which the local clock shows `local`.
  [[nodiscard]] Time world(Time local) const {
    if (local == kNever || rate_ == 0) return local == kNever ? kNever : local - offset();
    const auto rate = static_cast<double>(kWhole + rate_) / static_cast<double>(kWhole);
    const auto ahead = static_cast<double>((local - local_base_).count()) / rate;
    Time when = world_base_ + Duration(static_cast<std::int64_t>(ahead));
    while (this->local(when) >= local) when -= Duration(1);
    while (this->local(when) < local) when += Duration(1);
    return when;
  }
  // From now on it gains `rate` microseconds in each second; below 0 it loses them.
  void drift(Time world, std::int64_t rate) {
    local_base_ = local(world);
    world_base_ = world;
    rate_ = rate;
  }
  void jump(Duration by) { wall_offset_ += by; }
  [[nodiscard]] std::uint64_t wall_us(Time world) const {
    const Duration since = world.time_since_epoch() + wall_offset_ + kBegin;
    return static_cast<std::uint64_t>(since.count() / 1000);
  }

 private:
  static constexpr std::int64_t kWhole = 1'000'000;
  static constexpr Duration kBegin = std::chrono::hours(24);  // before it nothing jumps

  [[nodiscard]] Duration offset() const { return local_base_ - world_base_; }
  [[nodiscard]] Duration scaled(Duration passed) const {
    const std::int64_t ns = passed.count();
    return Duration(ns + ns / kWhole * rate_ + ns % kWhole * rate_ / kWhole);
  }

  Time world_base_{};
  Time local_base_{};
  std::int64_t rate_ = 0;
  Duration wall_offset_{};
};

}  // namespace shardbus::sim
