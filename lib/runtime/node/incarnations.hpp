// The incarnation with which a process joins again after it lost its place.
//
// Normally the next number. A wall clock that went back before a restart gives one that is long
// over; nobody says by how much, so each refusal in a row makes a larger step.
#pragma once

#include <cstdint>

namespace shardbus::runtime {

class Incarnations {
 public:
  // `joined`: the incarnation `last` got into a cluster.
  std::uint64_t after(std::uint64_t last, bool joined) {
    if (joined) refused_ = 0;
    const std::uint64_t step = refused_ == 0 ? 1 : kSecond << (3 * (refused_ - 1));
    if (!joined && refused_ < kRefusedMax) ++refused_;
    return last + step;
  }

 private:
  static constexpr std::uint64_t kSecond = 1'000'000;  // incarnations are microseconds
  static constexpr std::uint64_t kRefusedMax = 9;      // half a year at once

  std::uint64_t refused_ = 0;  // in a row
};

}  // namespace shardbus::runtime
