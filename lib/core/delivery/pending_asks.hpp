// Asks that wait for their answer: a slab of slots, each completed exactly once.
//
// Invariant: a slot number names one ask for ever (its index is reused under a new number), so a
// late or repeated answer finds nothing and is counted. `Origin` is what the caller needs to
// answer.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "core/delivery/deadlines.hpp"

namespace shardbus::core {

template <class Origin>
class PendingAsks {
 public:
  struct Ask {
    Origin origin{};
    NodeKey target;  // who has it now; kNoNode: not sent yet
    Time deadline{};
  };

  explicit PendingAsks(std::uint32_t limit) : limit_(limit < kIndexMask ? limit : kIndexMask) {}

  [[nodiscard]] bool full() const { return open_ >= limit_; }
  // Opens a slot. Not when full: refuse the ask with `overloaded` then.
  std::uint64_t open(Ask ask) {
    std::uint32_t index = 0;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      index = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    }
    Slot& slot = slots_[index];
    slot.open = true;
    deadlines_.arm(index, ask.deadline);
    slot.ask = std::move(ask);
    ++open_;
    return number(index);
  }

  // The ask of an open slot, or null.
  Ask* find(std::uint64_t slot) {
    const auto index = static_cast<std::uint32_t>(slot & kIndexMask);
    if (index >= slots_.size() || !slots_[index].open || number(index) != slot) return nullptr;
    return &slots_[index].ask;
  }

  // Moves the instant at which `expire` takes an open slot; `Ask::deadline` stays.
  void wait_until(std::uint64_t slot, Time until) {
    if (find(slot) == nullptr) return;
    const auto index = static_cast<std::uint32_t>(slot & kIndexMask);
    deadlines_.cancel(index);
    deadlines_.arm(index, until);
  }

  // Takes the ask out of its slot; nothing if it was completed before.
  std::optional<Ask> close(std::uint64_t slot) {
    if (find(slot) == nullptr) {
      ++late_;
      return std::nullopt;
    }
    return take(static_cast<std::uint32_t>(slot & kIndexMask));
  }

  // Takes every ask whose deadline has passed. `done` may open and close slots: an ask that it
  // closes is not taken again, and one that it opens is not taken now.
  template <class Done>
  void expire(Time now, Done done) {
    expired_.clear();
    deadlines_.expire(now, expired_);
    std::vector<std::uint64_t> due;
    due.reserve(expired_.size());
    for (const std::uint32_t index : expired_) due.push_back(number(index));
    take_all(due, done);
  }

  // Takes every ask for which `matches` holds, in the order of slots; as for expire.
  template <class Matches, class Done>
  void close_if(Matches matches, Done done) {
    if (open_ == 0) return;
    std::vector<std::uint64_t> matching;
    for (std::uint32_t index = 0; index < slots_.size(); ++index) {
      if (slots_[index].open && matches(slots_[index].ask)) matching.push_back(number(index));
    }
    take_all(matching, done);
  }

  template <class Matches>
  [[nodiscard]] bool any(Matches matches) const {
    if (open_ == 0) return false;
    for (const Slot& slot : slots_) {
      if (slot.open && matches(slot.ask)) return true;
    }
    return false;
  }

  [[nodiscard]] Time next_deadline(Time now) const { return deadlines_.next(now); }
  [[nodiscard]] std::size_t size() const { return open_; }
  [[nodiscard]] std::uint32_t limit() const { return limit_; }
  // Answers that found no open slot.
  [[nodiscard]] std::uint64_t late() const { return late_; }

 private:
  static constexpr std::uint32_t kIndexBits = 24;
  static constexpr std::uint32_t kIndexMask = (1U << kIndexBits) - 1;
  static constexpr std::uint32_t kLifeMask = (1U << 29) - 1;  // 24 + 29 = 53 bits on the wire
  struct Slot {
    Ask ask;
    std::uint32_t life = 1;
    bool open = false;
  };

  [[nodiscard]] std::uint64_t number(std::uint32_t index) const {
    return (std::uint64_t{slots_[index].life} << kIndexBits) | index;
  }
  template <class Done>
  void take_all(const std::vector<std::uint64_t>& numbers, Done& done) {
    for (const std::uint64_t slot : numbers) {
      if (find(slot) != nullptr) done(*take(static_cast<std::uint32_t>(slot & kIndexMask)));
    }
  }
  std::optional<Ask> take(std::uint32_t index) {
    Slot& slot = slots_[index];
    deadlines_.cancel(index);
    slot.open = false;
    slot.life = slot.life == kLifeMask ? 1 : slot.life + 1;
    free_.push_back(index);
    --open_;
    return std::move(slot.ask);
  }

  std::uint32_t limit_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> expired_;
  Deadlines deadlines_;
  std::size_t open_ = 0;
  std::uint64_t late_ = 0;
};

}  // namespace shardbus::core
