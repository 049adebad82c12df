#include "core/placement/least_shards.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace shardbus::placement {
namespace {

struct Load {
  NodeKey key;
  std::uint64_t count = 0;
  std::uint64_t total = 0;  // with all other types
};

class Plan {
 public:
  explicit Plan(const PlacementSnapshot& snapshot) : in_(snapshot), owners_(snapshot.owners) {
    for (const PlacementNode& node : in_.nodes) loads_.push_back(Load{node.key, 0, node.total});
    for (const NodeKey owner : owners_) {
      if (Load* load = find(owner)) add(*load);
    }
  }

  std::vector<PlacementMove> make() {
    if (loads_.empty()) return {};
    for (std::uint32_t shard = 0; shard < owners_.size(); ++shard) {
      if (!in_.fixed[shard] && owners_[shard] == kNoNode) move(shard, emptiest());
    }
    moved_ = 0;
    for (std::uint32_t shard = 0; shard < owners_.size() && may_move(); ++shard) {
      if (!in_.fixed[shard] && find(owners_[shard]) == nullptr) move(shard, emptiest());
    }
    while (in_.rebalance && may_move() && level_once()) {
    }
    return std::move(moves_);
  }

 private:
  Load* find(NodeKey key) {
    for (Load& load : loads_) {
      if (load.key == key) return &load;
    }
    return nullptr;
  }

  static void add(Load& load) {
    ++load.count;
    ++load.total;
  }

  Load& emptiest() {
    return *std::min_element(loads_.begin(), loads_.end(), [](const Load& a, const Load& b) {
      return std::pair(a.count, a.total) < std::pair(b.count, b.total);
    });
  }

  [[nodiscard]] bool may_move() const { return moved_ < in_.move_limit; }

  void move(std::uint32_t shard, Load& to) {
    moves_.push_back(PlacementMove{ShardId{shard}, in_.owners[shard], to.key});
    if (Load* from = find(owners_[shard])) {
      --from->count;
      --from->total;
    }
    owners_[shard] = to.key;
    add(to);
    ++moved_;
  }

  // One move from a node that has at least two more than the emptiest; fullest first, but a node
  // whose shards are all fixed cannot give.
  bool level_once() {
    Load& to = emptiest();
    std::vector<Load*> givers;
    for (Load& load : loads_) {
      if (load.count > to.count + 1) givers.push_back(&load);
    }
    std::stable_sort(givers.begin(), givers.end(), [](const Load* a, const Load* b) {
      return std::pair(a->count, a->total) > std::pair(b->count, b->total);
    });
    for (const Load* giver : givers) {
      for (std::uint32_t shard = 0; shard < owners_.size(); ++shard) {
        const bool movable = !in_.fixed[shard] && in_.owners[shard] == owners_[shard];
        if (!movable || owners_[shard] != giver->key) continue;
        move(shard, to);
        return true;
      }
    }
    return false;
  }

  const PlacementSnapshot& in_;
  std::vector<NodeKey> owners_;
  std::vector<Load> loads_;
  std::vector<PlacementMove> moves_;
  std::size_t moved_ = 0;
};

}  // namespace

std::vector<PlacementMove> least_shards(const PlacementSnapshot& snapshot) {
  return Plan(snapshot).make();
}

}  // namespace shardbus::placement
