// What operators see of routes and shards.
#include "runtime/data/dispatch.hpp"

namespace shardbus::runtime {

std::size_t Dispatch::owned() const {
  std::size_t total = 0;
  for (const Type& type : types_) {
    for (const Shard& shard : type.shards) total += shard.region.owns() ? 1 : 0;
  }
  return total;
}

void Dispatch::add_counters(std::map<std::string, std::uint64_t>& counters) const {
  core::RegionCounters total;
  std::uint64_t parked = 0;
  for (const Type& type : types_) {
    for (const Shard& shard : type.shards) {
      const core::RegionCounters& one = shard.region.counters();
      total.stale_commands += one.stale_commands;
      total.stream_repeats += one.stream_repeats;
      total.stream_gaps += one.stream_gaps;
      parked += shard.region.parked();
    }
  }
  counters["stale_commands"] = total.stale_commands;
  counters["stream_repeats"] = total.stream_repeats;
  counters["stream_gaps"] = total.stream_gaps;
  counters["parked_in_moves"] = parked;
}

std::string Dispatch::unsettled() const {
  for (const Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      const Shard& shard = type.shards[i];
      const RegionState state = shard.region.state();
      const bool moving = shard.region.stopping() || state == RegionState::sending ||
                          state == RegionState::incoming;
      if (!moving && shard.route.may_send()) continue;
      if (!moving && ends_in(type, shard) == Errc::no_such_type) continue;  // the table says enough
      return "shard " + std::to_string(i) + " of " + type.name +
             (moving ? " is moving: " : " has no open route from here: ") +
             shard.region.state_text() + " via=" + std::to_string(shard.route.via().value) +
             " fence=" + std::to_string(shard.route.fence_id());
    }
  }
  return {};
}

}  // namespace shardbus::runtime
