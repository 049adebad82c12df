// What operators see of routes and regions.
#include "base/model/table.hpp"
#include "runtime/data/dispatch.hpp"

namespace shardbus::runtime {

std::size_t Dispatch::owned() const {
  std::size_t total = 0;
  for (const Type& type : types_) {
    for (const Shard& shard : type.shards) total += shard.region.owns() ? 1 : 0;
  }
  return total;
}

core::RegionCounters Dispatch::region_counters() const {
  core::RegionCounters total = former_;
  for (const Type& type : types_) {
    for (const Shard& shard : type.shards) {
      const core::RegionCounters& one = shard.region.counters();
      total.stale_commands += one.stale_commands;
      total.stream_repeats += one.stream_repeats;
      total.stream_gaps += one.stream_gaps;
    }
  }
  return total;
}

void Dispatch::count_on(const Dispatch& former) {
  former_ = former.region_counters();
}

void Dispatch::add_counters(std::map<std::string, std::uint64_t>& counters) const {
  const core::RegionCounters total = region_counters();
  std::uint64_t parked = 0;
  for (const Type& type : types_) {
    for (const Shard& shard : type.shards) parked += shard.region.parked();
  }
  counters["stale_commands"] = total.stale_commands;
  counters["stream_repeats"] = total.stream_repeats;
  counters["stream_gaps"] = total.stream_gaps;
  counters["parked_in_moves"] = parked;
}

std::string Dispatch::unsettled(bool internals) const {
  std::string text;
  std::size_t more = 0;
  for (const Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      const Shard& shard = type.shards[i];
      const RegionState state = shard.region.state();
      const bool moving = shard.region.stopping() || state == RegionState::sending ||
                          state == RegionState::incoming;
      if (!moving && shard.route.may_send()) continue;
      if (!moving && ends_in(type, shard) == Errc::no_such_type) continue;  // the table says enough
      if (!text.empty()) {
        ++more;
        continue;
      }
      text = "shard " + std::to_string(i) + " of " + type.name +
             (moving ? " is moving" : why_closed(type, ShardId{i}));
      if (internals) {
        text += ": " + shard.region.state_text() +
                " via=" + std::to_string(shard.route.via().value) +
                " fence=" + std::to_string(shard.route.fence_id());
      }
    }
  }
  return more == 0 ? text : text + ", and " + std::to_string(more) + " more shards wait";
}

// Why nothing can be sent to a shard from here, for a person.
std::string Dispatch::why_closed(const Type& type, ShardId id) const {
  const core::Route& route = type.shards[id.value].route;
  const TypeTable* rows = shardbus::find_type(table_, type.name);
  const bool known = rows != nullptr && id.value < rows->entries.size();
  const NodeKey owner = known ? rows->entries[id.value].owner : kNoNode;
  if (owner == kNoNode) return " has no owner yet";
  if (gone_.contains(owner)) return " was owned by a node that is gone, and has no new owner yet";
  if (route.fence_id() != 0)
    return " has just moved: earlier messages are still on their way to it";
  return " has an owner that has not been told of yet";
}

}  // namespace shardbus::runtime
