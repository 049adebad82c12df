// What a placement strategy sees and says: plain values, so that a strategy is a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/model/cluster.hpp"

namespace shardbus {

struct PlacementNode {
  NodeKey key;
  std::uint64_t total = 0;  // shards of all other types on this node: breaks ties
  NodeTraits traits = {};
  std::string name = {};  // the same after a restart, as the key is not
};

// One entity type at one instant.
struct PlacementSnapshot {
  std::string type;
  PlacementSettings settings;
  std::vector<PlacementNode> nodes;  // that may own shards of it, oldest first
  std::vector<NodeKey> owners;  // by shard; a moving shard counts for its next owner; 0: unowned
  std::vector<bool> fixed;      // by shard: may not be moved or placed now
  std::vector<bool> resting;    // by shard: moved lately, so not moved again for balance alone
  std::vector<NodeKey> pins;    // by shard: where an operator wants it; 0: wherever
  std::size_t move_limit = 0;   // at most so many moves of owned shards
  bool rebalance = true;        // false: only place the unowned and move off nodes not in `nodes`
};

struct PlacementMove {
  ShardId shard;
  NodeKey from;  // 0: it was unowned
  NodeKey to;
  friend bool operator==(const PlacementMove&, const PlacementMove&) = default;
};

using Planner = std::function<std::vector<PlacementMove>(const PlacementSnapshot&)>;

}  // namespace shardbus
