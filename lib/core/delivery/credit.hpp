// Absolute credit: how many envelopes and bytes a session may carry since its start.
//
// Repeating or losing a grant does no harm, since a grant is a total and never an increment
// (PROTOCOL.md "Credit").
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardbus::core {

// Sender's side.
class CreditUse {
 public:
  void grant(std::uint64_t envelopes, std::uint64_t bytes) {
    envelopes_ = std::max(envelopes_, envelopes);
    bytes_ = std::max(bytes_, bytes);
  }
  [[nodiscard]] bool covers(std::uint64_t bytes) const {
    return used_envelopes_ < envelopes_ && used_bytes_ + bytes <= bytes_;
  }
  void use(std::uint64_t bytes) {
    ++used_envelopes_;
    used_bytes_ += bytes;
  }
  [[nodiscard]] std::uint64_t used() const { return used_envelopes_; }

 private:
  std::uint64_t envelopes_ = 0, bytes_ = 0;
  std::uint64_t used_envelopes_ = 0, used_bytes_ = 0;
};

// Receiver's side: a window beyond what was received, told again after each half of it.
class CreditGrant {
 public:
  CreditGrant(std::uint64_t envelopes, std::uint64_t bytes)
      : window_envelopes_(envelopes), window_bytes_(bytes) {
    renew();
  }
  // False: the sender went over what it was granted; the envelope must be refused.
  bool receive(std::uint64_t bytes) {
    ++received_envelopes_;
    received_bytes_ += bytes;
    return received_envelopes_ <= told_envelopes_ && received_bytes_ <= told_bytes_;
  }
  // `open`: envelopes received whose work is not done yet; they keep their share of the window.
  [[nodiscard]] bool due(std::uint64_t open = 0) const {
    const std::uint64_t done = received_envelopes_ - std::min(open, received_envelopes_);
    return done + window_envelopes_ / 2 >= told_envelopes_ ||
           received_bytes_ + window_bytes_ / 2 >= told_bytes_;
  }
  // Moves the window; send `told_*()` afterwards.
  void renew(std::uint64_t open = 0) {
    const std::uint64_t done = received_envelopes_ - std::min(open, received_envelopes_);
    told_envelopes_ = std::max(told_envelopes_, done + window_envelopes_);
    told_bytes_ = received_bytes_ + window_bytes_;
  }
  [[nodiscard]] std::uint64_t told_envelopes() const { return told_envelopes_; }
  [[nodiscard]] std::uint64_t told_bytes() const { return told_bytes_; }

 private:
  std::uint64_t window_envelopes_, window_bytes_;
  std::uint64_t received_envelopes_ = 0, received_bytes_ = 0;
  std::uint64_t told_envelopes_ = 0, told_bytes_ = 0;
};

}  // namespace shardbus::core
