#include "core/placement/settle.hpp"

#include "core/placement/view.hpp"

namespace shardbus::placement {

std::vector<PlacementMove> settle(const PlacementSnapshot& snapshot, const HomeOf& home) {
  std::vector<PlacementMove> moves;
  if (snapshot.nodes.empty()) return moves;
  const View view(snapshot);
  const auto shards = static_cast<std::uint32_t>(snapshot.owners.size());
  const auto add = [&](std::uint32_t shard) {
    const NodeKey to = home(shard);
    if (to == view.owner(shard)) return false;
    moves.push_back(PlacementMove{ShardId{shard}, view.owner(shard), to});
    return true;
  };
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    if (view.unowned(shard)) add(shard);
  }
  std::size_t moved = 0;
  for (std::uint32_t shard = 0; shard < shards && moved < snapshot.move_limit; ++shard) {
    if (view.misplaced(shard) && add(shard)) ++moved;
  }
  if (!snapshot.rebalance) return moves;
  for (std::uint32_t shard = 0; shard < shards && moved < snapshot.move_limit; ++shard) {
    if (view.may_balance(shard) && add(shard)) ++moved;
  }
  return moves;
}

}  // namespace shardbus::placement
