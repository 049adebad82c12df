#include "core/delivery/deadlines.hpp"

#include <algorithm>

namespace shardbus::core {

void Deadlines::arm(std::uint32_t index, Time deadline) {
  if (index >= entries_.size()) entries_.resize(std::max<std::size_t>(index + 1U, 64));
  // A deadline in a tick that was swept already would wait a whole turn of the wheel.
  if (tick_of(deadline) <= swept_) deadline = Time(Duration((swept_ + 1) * kTick));
  const std::size_t bucket = bucket_of(deadline);
  Entry& entry = entries_[index];
  entry = {deadline, kNone, heads_[bucket], true};
  if (entry.next != kNone) entries_[entry.next].previous = index;
  heads_[bucket] = index;
  occupied_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
  ++armed_;
}

void Deadlines::cancel(std::uint32_t index) {
  if (index < entries_.size() && entries_[index].armed) unlink(index);
}

void Deadlines::unlink(std::uint32_t index) {
  Entry& entry = entries_[index];
  const std::size_t bucket = bucket_of(entry.deadline);
  if (entry.previous != kNone) entries_[entry.previous].next = entry.next;
  if (entry.next != kNone) entries_[entry.next].previous = entry.previous;
  if (heads_[bucket] == index) heads_[bucket] = entry.next;
  if (heads_[bucket] == kNone) occupied_[bucket / 64] &= ~(std::uint64_t{1} << (bucket % 64));
  entry.armed = false;
  --armed_;
}

void Deadlines::expire_bucket(std::size_t bucket, Time now, std::vector<std::uint32_t>& expired) {
  std::uint32_t index = heads_[bucket];
  while (index != kNone) {
    const std::uint32_t following = entries_[index].next;
    if (entries_[index].deadline <= now) {
      unlink(index);
      expired.push_back(index);
    }
    index = following;
  }
}

void Deadlines::expire(Time now, std::vector<std::uint32_t>& expired) {
  const std::int64_t last = tick_of(now);
  if (armed_ > 0 && swept_ < last) {
    std::int64_t first = std::max(swept_ + 1, last - static_cast<std::int64_t>(kBuckets) + 1);
    for (; first < last; ++first) {
      const std::size_t bucket = static_cast<std::size_t>(first) % kBuckets;
      if (heads_[bucket] != kNone) expire_bucket(bucket, now, expired);
    }
  }
  // The current tick is not over: its bucket is looked at again next time.
  expire_bucket(static_cast<std::size_t>(last) % kBuckets, now, expired);
  swept_ = std::max(swept_, last - 1);
}

Time Deadlines::next(Time now) const {
  if (armed_ == 0) return kNever;
  // From what was not swept yet: a deadline may have passed since the last call of expire.
  const std::int64_t turn = static_cast<std::int64_t>(kBuckets);
  const std::int64_t start = std::max(std::min(swept_ + 1, tick_of(now)), tick_of(now) - turn + 1);
  for (std::size_t step = 0; step < kBuckets; ++step) {
    const std::size_t bucket = (static_cast<std::size_t>(start + turn) + step) % kBuckets;
    if ((occupied_[bucket / 64] >> (bucket % 64) & 1U) != 0) {
      const Time end_of_tick =
          Time(Duration((start + static_cast<std::int64_t>(step) + 1) * kTick));
      return end_of_tick;
    }
    // Skip empty words whole.
    if (bucket % 64 == 0 && occupied_[bucket / 64] == 0) step += 63;
  }
  return now;
}

}  // namespace shardbus::core
