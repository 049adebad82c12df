// Questions that every strategy asks of a snapshot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/model/placement.hpp"

namespace shardbus::placement {

// Lists by shard that are shorter than `owners` go on with their default.
class View {
 public:
  explicit View(const PlacementSnapshot& snapshot) : in_(snapshot) {
    for (std::size_t i = 0; i < in_.nodes.size(); ++i) index_.emplace_back(in_.nodes[i].key, i);
    std::sort(index_.begin(), index_.end());
  }

  [[nodiscard]] const PlacementSnapshot& snapshot() const { return in_; }
  [[nodiscard]] NodeKey owner(std::uint32_t shard) const { return in_.owners[shard]; }
  [[nodiscard]] bool fixed(std::uint32_t shard) const { return at(in_.fixed, shard); }
  // Where in `nodes` a node is; its size where it is not.
  [[nodiscard]] std::size_t index_of(NodeKey key) const {
    const auto found =
        std::lower_bound(index_.begin(), index_.end(), std::pair(key, std::size_t{}));
    return found != index_.end() && found->first == key ? found->second : index_.size();
  }
  [[nodiscard]] bool has(NodeKey key) const { return index_of(key) < index_.size(); }

  // It may be placed and has no owner.
  [[nodiscard]] bool unowned(std::uint32_t shard) const {
    return !fixed(shard) && owner(shard) == kNoNode;
  }
  // It may be moved, and its owner may not own it.
  [[nodiscard]] bool misplaced(std::uint32_t shard) const {
    return !fixed(shard) && owner(shard) != kNoNode && !has(owner(shard));
  }
  // It may be moved though its owner may own it.
  [[nodiscard]] bool may_balance(std::uint32_t shard) const {
    return !fixed(shard) && !at(in_.resting, shard) && has(owner(shard));
  }
  // It could be, had it not been moved lately.
  [[nodiscard]] bool rests(std::uint32_t shard) const {
    return !fixed(shard) && at(in_.resting, shard) && has(owner(shard));
  }
  // Where an operator wants it, if it can be there now; else nobody.
  [[nodiscard]] NodeKey pin(std::uint32_t shard) const {
    const NodeKey wanted = shard < in_.pins.size() ? in_.pins[shard] : kNoNode;
    return has(wanted) ? wanted : kNoNode;
  }

 private:
  static bool at(const std::vector<bool>& flags, std::uint32_t shard) {
    return shard < flags.size() && flags[shard];
  }

  const PlacementSnapshot& in_;
  std::vector<std::pair<NodeKey, std::size_t>> index_;
};

}  // namespace shardbus::placement
