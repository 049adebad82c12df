#include "core/placement/level.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/placement/view.hpp"

namespace shardbus::placement {
namespace {

struct Load {
  NodeKey key;
  std::int64_t weight = 1;
  std::uint64_t others = 0;            // shards of other types
  std::int64_t count = 0;              // shards of this type
  std::int64_t resting = 0;            // of them: will be movable later
  std::vector<std::uint32_t> movable;  // may go for balance, the next one last
};

class Plan {
 public:
  Plan(const PlacementSnapshot& snapshot, const std::vector<std::uint64_t>& weights,
       const std::vector<std::uint32_t>& order)
      : view_(snapshot), order_(order) {
    for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
      const PlacementNode& node = snapshot.nodes[i];
      loads_.push_back(Load{node.key, static_cast<std::int64_t>(weights[i]), node.total, 0, 0, {}});
      weight_ += loads_.back().weight;
    }
    for (const std::uint32_t shard : order_) count(shard);
    for (Load& load : loads_) std::reverse(load.movable.begin(), load.movable.end());
  }

  std::vector<PlacementMove> make() {
    if (loads_.empty()) return {};
    for (const std::uint32_t shard : order_) {
      if (view_.unowned(shard)) move(shard, lowest());
    }
    std::size_t moved = 0;
    const std::size_t limit = view_.snapshot().move_limit;
    for (const std::uint32_t shard : order_) {
      if (!view_.misplaced(shard)) continue;
      if (moved++ == limit) return std::move(moves_);
      move(shard, lowest());
    }
    for (; view_.snapshot().rebalance && moved < limit && level_once(); ++moved) {
    }
    return std::move(moves_);
  }

 private:
  void count(std::uint32_t shard) {
    const std::size_t at = view_.index_of(view_.owner(shard));
    if (at < loads_.size()) {
      ++loads_[at].count;
      if (view_.may_balance(shard)) loads_[at].movable.push_back(shard);
      loads_[at].resting += view_.rests(shard) ? 1 : 0;
    }
    if (at < loads_.size() || !view_.fixed(shard)) ++shards_;
  }

  // How far a node is above its share, in units of 1 / weight_ of a shard.
  [[nodiscard]] std::int64_t excess(const Load& load) const {
    return load.count * weight_ - shards_ * load.weight;
  }

  [[nodiscard]] bool below(const Load& a, const Load& b) const {
    const auto others = [](const Load& x, const Load& y) {
      return x.others * static_cast<std::uint64_t>(y.weight);
    };
    return std::pair(excess(a), others(a, b)) < std::pair(excess(b), others(b, a));
  }

  Load& lowest() {
    return *std::min_element(loads_.begin(), loads_.end(),
                             [this](const Load& a, const Load& b) { return below(a, b); });
  }

  // Of those that can give at all.
  Load* highest() {
    Load* found = nullptr;
    for (Load& load : loads_) {
      if (load.movable.empty()) continue;
      if (found == nullptr || below(*found, load)) found = &load;
    }
    return found;
  }

  void move(std::uint32_t shard, Load& to) {
    moves_.push_back(PlacementMove{ShardId{shard}, view_.owner(shard), to.key});
    ++to.count;
  }

  // Whether it would give what it gets back once the shards of a fuller node have rested.
  [[nodiscard]] bool waits_for_others(const Load& from) const {
    if (from.count > shards_ * from.weight / weight_) return false;
    return std::any_of(loads_.begin(), loads_.end(), [this](const Load& load) {
      return load.resting > 0 && excess(load) >= weight_;
    });
  }

  bool level_once() {
    Load* from = highest();
    Load& to = lowest();
    if (from == nullptr || excess(*from) - excess(to) <= weight_) return false;
    if (waits_for_others(*from)) return false;
    move(from->movable.back(), to);
    from->movable.pop_back();
    --from->count;
    return true;
  }

  View view_;
  const std::vector<std::uint32_t>& order_;
  std::vector<Load> loads_;
  std::int64_t weight_ = 0;  // of all nodes
  std::int64_t shards_ = 0;  // that are to be shared out
  std::vector<PlacementMove> moves_;
};

}  // namespace

std::vector<PlacementMove> level(const PlacementSnapshot& snapshot,
                                 const std::vector<std::uint64_t>& weights,
                                 const std::vector<std::uint32_t>& order) {
  return Plan(snapshot, weights, order).make();
}

std::vector<std::uint32_t> lowest_first(const PlacementSnapshot& snapshot) {
  std::vector<std::uint32_t> order(snapshot.owners.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

}  // namespace shardbus::placement
