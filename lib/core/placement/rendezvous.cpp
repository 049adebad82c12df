#include "core/placement/rendezvous.hpp"

#include <algorithm>
#include <cmath>

#include "core/placement/score.hpp"
#include "core/placement/settle.hpp"

namespace shardbus::placement {
namespace {

class Draw {
 public:
  explicit Draw(const PlacementSnapshot& snapshot)
      : nodes_(snapshot.nodes), type_(fnv1a64(snapshot.type)) {
    for (const PlacementNode& node : nodes_) {
      hashes_.push_back(hash_of(node));
      weighted_ = weighted_ || node.traits.capacity != nodes_.front().traits.capacity;
    }
  }

  [[nodiscard]] NodeKey home(std::uint32_t shard) const {
    const std::uint64_t hash = hash_of_shard(type_, shard);
    std::size_t best = 0;
    double highest = -1;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const double score = score_of(nodes_[i], mixed(hashes_[i] ^ hash));
      if (score <= highest) continue;
      highest = score;
      best = i;
    }
    return nodes_[best].key;
  }

 private:
  // w / -ln(u) wins with a chance in proportion to w. It grows with u, so among equals u will do.
  [[nodiscard]] double score_of(const PlacementNode& node, std::uint64_t draw) const {
    const double u = (static_cast<double>(draw >> 11) + 0.5) * 0x1.0p-53;
    return weighted_ ? std::max<double>(node.traits.capacity, 1) / -std::log(u) : u;
  }

  const std::vector<PlacementNode>& nodes_;
  std::uint64_t type_;
  std::vector<std::uint64_t> hashes_;
  bool weighted_ = false;
};

}  // namespace

std::vector<PlacementMove> rendezvous(const PlacementSnapshot& snapshot) {
  const Draw draw(snapshot);
  return settle(snapshot, [&draw](std::uint32_t shard) { return draw.home(shard); });
}

}  // namespace shardbus::placement
