// Deadlines of many numbered things: arm, cancel and expire in constant time.
//
// A wheel of buckets (Varghese and Lauck 1987, scheme 6), each an intrusive list over the numbers.
// Resolution: 8 ms; nothing expires early. Numbers are dense (indices of a slab).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/time.hpp"

namespace shardbus::core {

class Deadlines {
 public:
  // Arms `index`; it must not be armed already.
  void arm(std::uint32_t index, Time deadline);
  // Does nothing if `index` is not armed.
  void cancel(std::uint32_t index);
  // Appends to `expired` every number whose deadline is at or before `now`, and disarms it.
  void expire(Time now, std::vector<std::uint32_t>& expired);
  // When to call expire next: at most one resolution after the earliest deadline, possibly before
  // it (another turn of the wheel); kNever if none is armed.
  [[nodiscard]] Time next(Time now) const;
  [[nodiscard]] std::size_t size() const { return armed_; }

 private:
  static constexpr std::int64_t kTick = 8'000'000;  // ns
  static constexpr std::size_t kBuckets = 2048;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Entry {
    Time deadline{};
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
    bool armed = false;
  };
  static std::int64_t tick_of(Time time) { return time.time_since_epoch().count() / kTick; }
  static std::size_t bucket_of(Time time) {
    return static_cast<std::size_t>(tick_of(time)) % kBuckets;
  }
  void unlink(std::uint32_t index);
  void expire_bucket(std::size_t bucket, Time now, std::vector<std::uint32_t>& expired);

  std::vector<Entry> entries_;
  std::array<std::uint32_t, kBuckets> heads_ = filled();
  std::array<std::uint64_t, kBuckets / 64> occupied_{};
  std::int64_t swept_ = -1;  // every tick up to this one was expired
  std::size_t armed_ = 0;

  static std::array<std::uint32_t, kBuckets> filled() {
    std::array<std::uint32_t, kBuckets> heads{};
    heads.fill(kNone);
    return heads;
  }
};

}  // namespace shardbus::core
