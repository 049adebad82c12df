#include "runtime/data/move_queue.hpp"

#include <algorithm>
#include <utility>

#include "core/region/region.hpp"

namespace shardbus::runtime {
namespace {

// A handler that does not end, or a worker that gives nothing back, holds up no other shard.
constexpr Duration kStopPatience = std::chrono::milliseconds(20);

}  // namespace

bool MoveQueue::takes(std::size_t entities, Time now) {
  std::erase_if(leaving_, [now](const Leaving& one) {
    const bool stops = one.region->stopping() && now < one.since + kStopPatience;
    return !stops && one.region->state() != RegionState::sending;
  });
  std::size_t all = entities;
  for (const Leaving& one : leaving_) all += one.entities;
  return leaving_.empty() || all <= entities_;
}

void MoveQueue::leaves(const core::Region& region, std::size_t entities, Time now) {
  leaving_.push_back({&region, entities, now});
}

void MoveQueue::wait(const Waiting& waiting) {
  const auto known = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.command.shard == waiting.command.shard;
  });
  if (known == waiting_.end()) return waiting_.push_back(waiting);
  if (known->command.generation < waiting.command.generation) *known = waiting;
}

void MoveQueue::forget(NodeKey next) {
  std::erase_if(waiting_, [next](const Waiting& one) { return one.command.next == next; });
}

MoveQueue::Waiting MoveQueue::take() {
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

}  // namespace shardbus::runtime
