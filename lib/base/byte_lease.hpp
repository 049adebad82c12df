// A share of a total of bytes, for as long as something holds it.
#pragma once

#include <cstddef>
#include <utility>

namespace shardbus {

// The total has to outlive the lease. Not for threads.
class ByteLease {
 public:
  ByteLease() = default;
  ByteLease(std::size_t& total, std::size_t bytes) : total_(&total), bytes_(bytes) {
    total += bytes;
  }
  ByteLease(ByteLease&& other) noexcept
      : total_(std::exchange(other.total_, nullptr)), bytes_(other.bytes_) {}
  ByteLease& operator=(ByteLease&& other) noexcept {
    if (this == &other) return *this;
    release();
    total_ = std::exchange(other.total_, nullptr);
    bytes_ = other.bytes_;
    return *this;
  }
  ByteLease(const ByteLease&) = delete;
  ByteLease& operator=(const ByteLease&) = delete;
  ~ByteLease() { release(); }

 private:
  void release() {
    if (total_ != nullptr) *std::exchange(total_, nullptr) -= bytes_;
  }
  std::size_t* total_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace shardbus
