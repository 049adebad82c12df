// One queue of everything that will happen, ordered by (time, sequence).
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace shardbus::sim {

class Events {
 public:
  void at(Time when, std::function<void()> what) {
    queue_.push(Entry{std::max(when, now_), next_++, std::move(what)});
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  // Runs the next one if it is due by `until`; otherwise moves the time there.
  bool run_next(Time until) {
    if (queue_.empty() || queue_.top().when > until) {
      now_ = std::max(now_, until);
      return false;
    }
    const Entry entry = queue_.top();
    queue_.pop();
    now_ = entry.when;
    ++ran_;
    entry.what();
    return true;
  }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t count() const { return ran_; }

 private:
  struct Entry {
    Time when;
    std::uint64_t sequence = 0;
    std::function<void()> what;
    bool operator<(const Entry& other) const {
      return std::pair(when, sequence) > std::pair(other.when, other.sequence);
    }
  };
  std::priority_queue<Entry> queue_;
  Time now_ = Time{} + std::chrono::seconds(1);
  std::uint64_t next_ = 0;
  std::uint64_t ran_ = 0;
};

}  // namespace shardbus::sim
