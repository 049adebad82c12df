// Replies for nodes that this one has not been told of yet: an ask of a node that has just joined
// may come through another one, and be answered, before the membership has arrived here.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace shardbus::runtime {

class EarlyReplies {
 public:
  // False: no room.
  bool hold(NodeKey node, std::string envelope, Time now) {
    if (held_.size() >= kNumberMax || bytes_ + envelope.size() > kBytesMax) return false;
    bytes_ += envelope.size();
    held_.push_back({node, std::move(envelope), now + kPatience});
    return true;
  }
  // Those for a node, the oldest first.
  std::vector<std::string> take(NodeKey node) {
    return take_if([node](const Held& held) { return held.node == node; });
  }
  // Forgets the overdue ones; returns how many they were.
  std::size_t expire(Time now) {
    return take_if([now](const Held& held) { return held.until <= now; }).size();
  }
  [[nodiscard]] std::size_t size() const { return held_.size(); }
  static constexpr std::size_t kNumberMax = 4096;

 private:
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20;
  static constexpr Duration kPatience = std::chrono::seconds(2);
  struct Held {
    NodeKey node;
    std::string envelope;
    Time until{};
  };

  template <class Wanted>
  std::vector<std::string> take_if(Wanted wanted) {
    std::vector<std::string> taken;
    std::erase_if(held_, [&](Held& held) {
      if (!wanted(held)) return false;
      bytes_ -= held.envelope.size();
      taken.push_back(std::move(held.envelope));
      return true;
    });
    return taken;
  }

  std::deque<Held> held_;
  std::size_t bytes_ = 0;
};

}  // namespace shardbus::runtime
