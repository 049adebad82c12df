// When this node sent its last digests: what others repeat of them is as old as its sending.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/time.hpp"

namespace shardbus {

// Holds those of one lease, as older ones prove nothing any more. Numbers only grow.
class SentDigests {
 public:
  void add(std::uint64_t number, Time now, Duration lease) {
    sent_.emplace_back(number, now);
    while (sent_.front().second + lease < now) sent_.pop_front();
  }
  // Nothing: it is none of this node's, or too old.
  [[nodiscard]] std::optional<Time> when(std::uint64_t number) const {
    const auto sent = std::lower_bound(
        sent_.begin(), sent_.end(), number,
        [](const auto& entry, std::uint64_t wanted) { return entry.first < wanted; });
    if (sent == sent_.end() || sent->first != number) return std::nullopt;
    return sent->second;
  }
  void clear() { sent_.clear(); }

 private:
  std::deque<std::pair<std::uint64_t, Time>> sent_;  // oldest first
};

}  // namespace shardbus
