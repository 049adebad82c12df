// Latencies of one run, with at most 3% error and without an allocation per value.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace shardbus_tools {

// Counts per logarithmic bucket, 32 per power of two. Not thread-safe.
class Histogram {
 public:
  void add(std::uint64_t value) {
    ++counts_.at(bucket_of(value));
    ++total_;
    if (value > max_) max_ = value;
  }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_.at(i) += other.counts_.at(i);
    total_ += other.total_;
    if (other.max_ > max_) max_ = other.max_;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }

  // The value that `share` (0..1) of all values do not exceed; 0 if there are none.
  [[nodiscard]] std::uint64_t quantile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_.at(i);
      if (seen > wanted || (seen == total_ && total_ > 0)) return middle_of(i);
    }
    return 0;
  }

 private:
  static constexpr unsigned kBits = 5;
  static constexpr std::uint64_t kSteps = 1U << kBits;

  // Values below 32 have a bucket each; above, the five bits behind the leading one choose it.
  static std::size_t bucket_of(std::uint64_t value) {
    if (value < kSteps) return value;
    const auto power = static_cast<unsigned>(std::bit_width(value)) - 1;
    return (power - kBits + 1) * kSteps + (value >> (power - kBits)) - kSteps;
  }
  static std::uint64_t middle_of(std::size_t bucket) {
    if (bucket < kSteps) return bucket;
    const auto shift = static_cast<unsigned>(bucket / kSteps - 1);
    return ((kSteps + bucket % kSteps) << shift) + (std::uint64_t{1} << shift) / 2;
  }

  std::array<std::uint64_t, (64 - kBits + 1) * kSteps> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace shardbus_tools
