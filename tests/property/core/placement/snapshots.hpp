// Random snapshots, and what a plan makes of one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/model/placement.hpp"
#include "base/random.hpp"

namespace shardbus::placement {

inline PlacementNode named_node(std::uint64_t number, std::uint32_t capacity = 1,
                                std::string zone = "") {
  PlacementNode node{NodeKey{number}};
  node.name = "node-" + std::to_string(number);
  node.traits.capacity = capacity;
  node.traits.zone = std::move(zone);
  return node;
}

struct Shape {
  std::uint64_t nodes_max = 100;
  std::uint64_t shards_max = 1000;
  std::uint64_t capacity_max = 1;
  std::uint64_t zones = 1;
  bool fixed = false;  // some are fixed, some rest
};

// Some shards are unowned, some belong to nodes 1001 to 1009, which may not own any more.
inline PlacementSnapshot random_snapshot(Random& random, const Shape& shape) {
  PlacementSnapshot snapshot;
  snapshot.type = "type-" + std::to_string(random.below(5));
  const std::uint64_t nodes = random.between(1, shape.nodes_max);
  for (std::uint64_t i = 1; i <= nodes; ++i) {
    const auto capacity = static_cast<std::uint32_t>(random.between(1, shape.capacity_max));
    snapshot.nodes.push_back(
        named_node(i, capacity, "zone-" + std::to_string(random.below(shape.zones))));
    snapshot.nodes.back().total = random.below(5);
  }
  const std::uint64_t shards = random.between(1, shape.shards_max);
  const std::uint64_t crowd = random.between(1, nodes);  // often only some have all
  for (std::uint64_t i = 0; i < shards; ++i) {
    NodeKey owner{random.between(1, crowd)};
    if (random.chance(0.1)) owner = NodeKey{random.between(1001, 1009)};
    if (random.chance(0.2)) owner = kNoNode;
    snapshot.owners.push_back(owner);
    snapshot.fixed.push_back(shape.fixed && random.chance(0.1));
    snapshot.resting.push_back(shape.fixed && random.chance(0.1));
    snapshot.pins.push_back(kNoNode);
  }
  snapshot.move_limit = shards;
  return snapshot;
}

// Checks each move for itself.
inline std::vector<NodeKey> applied(const PlacementSnapshot& snapshot,
                                    const std::vector<PlacementMove>& moves) {
  std::vector<NodeKey> owners = snapshot.owners;
  std::size_t owned = 0;
  for (const PlacementMove& move : moves) {
    EXPECT_EQ(owners.at(move.shard.value), move.from);
    EXPECT_EQ(snapshot.owners[move.shard.value], move.from) << "moved twice";
    EXPECT_FALSE(snapshot.fixed[move.shard.value]);
    EXPECT_NE(move.from, move.to);
    EXPECT_TRUE(std::any_of(snapshot.nodes.begin(), snapshot.nodes.end(),
                            [&](const PlacementNode& node) { return node.key == move.to; }));
    if (move.from == kNoNode) {
      EXPECT_EQ(owned, 0U) << "the unowned come first";
    } else {
      ++owned;
    }
    owners[move.shard.value] = move.to;
  }
  EXPECT_LE(owned, snapshot.move_limit);
  return owners;
}

inline std::map<NodeKey, std::int64_t> counts(const PlacementSnapshot& snapshot,
                                              const std::vector<NodeKey>& owners) {
  std::map<NodeKey, std::int64_t> result;
  for (const PlacementNode& node : snapshot.nodes) result[node.key] = 0;
  for (const NodeKey owner : owners) {
    if (result.contains(owner)) ++result[owner];
  }
  return result;
}

inline std::int64_t spread(const std::map<NodeKey, std::int64_t>& loads) {
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::max_element(loads.begin(), loads.end(), less)->second -
         std::min_element(loads.begin(), loads.end(), less)->second;
}

}  // namespace shardbus::placement
