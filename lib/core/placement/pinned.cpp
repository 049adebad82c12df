#include "core/placement/pinned.hpp"

#include <algorithm>
#include <utility>

#include "core/placement/view.hpp"

namespace shardbus::placement {
namespace {

std::vector<PlacementMove> plan(const PlacementSnapshot& snapshot, const Planner& inner) {
  const View view(snapshot);
  PlacementSnapshot rest = snapshot;
  rest.pins.clear();
  rest.fixed.resize(rest.owners.size());
  std::vector<PlacementMove> moves;
  for (std::uint32_t shard = 0; shard < rest.owners.size(); ++shard) {
    const NodeKey pin = view.pin(shard);
    if (pin == kNoNode || view.fixed(shard)) continue;
    const NodeKey owner = view.owner(shard);
    // What the limit leaves for a later plan is for the strategy already where it will be.
    rest.owners[shard] = pin;
    rest.fixed[shard] = true;
    if (owner == pin) continue;
    if (owner != kNoNode) {
      if (rest.move_limit == 0) continue;
      --rest.move_limit;
    }
    moves.push_back(PlacementMove{ShardId{shard}, owner, pin});
  }
  const std::vector<PlacementMove> others = inner(rest);
  moves.insert(moves.end(), others.begin(), others.end());
  std::stable_partition(moves.begin(), moves.end(),
                        [](const PlacementMove& move) { return move.from == kNoNode; });
  return moves;
}

}  // namespace

Planner pinned(Planner inner) {
  return [inner = std::move(inner)](const PlacementSnapshot& snapshot) {
    if (std::all_of(snapshot.pins.begin(), snapshot.pins.end(),
                    [](NodeKey pin) { return pin == kNoNode; })) {
      return inner(snapshot);
    }
    return plan(snapshot, inner);
  };
}

}  // namespace shardbus::placement
