// Incarnations of nodes that are gone for good.
//
// They never come back, but a table, a message or the node itself may name them a little longer.
// Bounded: the one that has been gone the longest is forgotten first.
#pragma once

#include <deque>
#include <set>

#include "base/ids.hpp"

namespace shardbus {

class GoneNodes {
 public:
  void add(NodeKey node) {
    if (!keys_.insert(node).second) return;
    order_.push_back(node);
    if (order_.size() <= kMax) return;
    keys_.erase(order_.front());
    order_.pop_front();
  }
  [[nodiscard]] bool contains(NodeKey node) const { return keys_.contains(node); }

 private:
  static constexpr std::size_t kMax = 1024;
  std::set<NodeKey> keys_;
  std::deque<NodeKey> order_;
};

}  // namespace shardbus
