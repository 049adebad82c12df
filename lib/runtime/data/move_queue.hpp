// The shards that leave this node, one after the other.
//
// Entities of a shard wait from the end of their old life until the whole shard is at its next
// owner. Two large shards that leave at once make each other's entities wait, so one goes on with
// its work until its turn has come. Small ones go together.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/model/allocation.hpp"
#include "base/time.hpp"

namespace shardbus::core {
class Region;
}

namespace shardbus::runtime {

class MoveQueue {
 public:
  // `entities`: so many at most leave at once, unless they are of one shard.
  explicit MoveQueue(std::size_t entities) : entities_(entities) {}

  struct Waiting {
    NodeKey from;  // who commanded
    BeginHandoff command;
  };

  // Whether a shard with so many entities may leave beside those that are leaving.
  [[nodiscard]] bool takes(std::size_t entities, Time now);
  void leaves(const core::Region& region, std::size_t entities, Time now);
  // A newer command for a shard takes the place of the older one.
  void wait(const Waiting& waiting);
  // Nothing goes to a node that is gone.
  void forget(NodeKey next);

  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] std::size_t size() const { return waiting_.size(); }
  [[nodiscard]] const Waiting& next() const { return waiting_.front(); }
  Waiting take();

 private:
  struct Leaving {
    const core::Region* region = nullptr;
    std::size_t entities = 0;
    Time since{};
  };

  std::size_t entities_;
  std::vector<Leaving> leaving_;
  std::deque<Waiting> waiting_;  // one per shard
};

}  // namespace shardbus::runtime
