#include "sim/checker.hpp"

#include <algorithm>

#include "base/model/table.hpp"
#include "base/model/text.hpp"

namespace shardbus::sim {

std::vector<OwnedShard> owned_shards(const runtime::DataPlane& data) {
  std::vector<OwnedShard> owned;
  for (const runtime::Type& type : data.dispatch().types()) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      const core::Region& region = type.shards[i].region;
      if (region.owns()) owned.push_back({{type.name, ShardId{i}}, region.generation()});
    }
  }
  return owned;
}

std::optional<std::string> check_limits(Node& node, std::uint64_t divisor) {
  static constexpr std::string_view kSuffix = "_limit";
  const runtime::DataStatus status = node.data().status();
  for (const auto& [name, limit] : status.counters) {
    if (!name.ends_with(kSuffix)) continue;
    const std::string gauge = name.substr(0, name.size() - kSuffix.size());
    const std::uint64_t value = status.counters.at(gauge);
    if (value <= limit / divisor) continue;
    return node.name + " has " + gauge + " " + std::to_string(value) + ", the limit is " +
           std::to_string(limit / divisor);
  }
  return std::nullopt;
}

std::optional<std::string> Checker::check(Time now, const Node& node) {
  if (auto broken = check_right(node)) return broken;
  if (auto broken = check_progress(node)) return broken;
  if (auto broken = check_owners(now, node)) return broken;
  return check_strict(now, node);
}

std::optional<std::string> Checker::check_strict(Time now, const Node& node) {
  if (strict_.empty()) return std::nullopt;
  const NodeKey self = node.info.key;
  Time& right = right_[self];
  right = node.clock.world(node.process->told_right);
  if (now >= right) return std::nullopt;
  for (const OwnedShard& shard : owned_by_[self]) {
    if (!strict_.contains(shard.shard.type)) continue;
    for (const auto& [other, generation] : owners_[shard.shard]) {
      if (other == self || now >= right_[other]) continue;
      return "strict " + to_text(shard.shard) + " may be run by " + to_text(self) + "@" +
             to_text(shard.generation) + " and by " + to_text(other) + "@" + to_text(generation);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Checker::check_right(const Node& node) {
  if (node.control().authority() == Authority::none) return std::nullopt;
  const Term term = node.control().vote().term;
  const bool full = node.control().authority() == Authority::full;
  Decider& decider = deciders_[std::pair(node.control().cluster_id(), term)];
  if (decider.key == kNoNode) decider.key = node.info.key;
  // A side that lost its whole past with others may give a term again, but by evidence only, and
  // only where a partition kept it from hearing of it.
  const bool again = decider.key != node.info.key;
  if (again && ((full && decider.full && !confirmed_) || !overlap_allowed_)) {
    return "two deciders in term " + std::to_string(term.value) + ": " + to_text(decider.key) +
           " and " + to_text(node.info.key);
  }
  decider.full = decider.full || full;
  return std::nullopt;
}

std::optional<std::string> Checker::check_progress(const Node& node) {
  Memory& memory = memory_[node.info.key];
  const Vote vote = node.control().vote();
  const std::string who = to_text(node.info.key);
  if (vote.term < memory.vote.term) {
    return who + " repeated a lower term: " + to_text(vote) + " after " + to_text(memory.vote);
  }
  if (vote.term == memory.vote.term && memory.vote.term.value != 0 &&
      vote.claimant != memory.vote.claimant) {
    return who + " repeated two claimants in one term: " + to_text(vote) + " after " +
           to_text(memory.vote);
  }
  memory.vote = vote;
  const Stamp stamp = node.control().members().stamp;
  if (stamp < memory.stamp) {
    return who + " went back from set " + to_text(memory.stamp) + " to " + to_text(stamp);
  }
  memory.stamp = stamp;
  return check_table(memory, node);
}

std::optional<std::string> Checker::check_table(Memory& memory, const Node& node) const {
  const AllocationTable& table = node.control().table();
  if (table.version == memory.table) return std::nullopt;
  const std::string who = to_text(node.info.key);
  if (table.version < memory.table) {
    return who + " went back from table " + to_text(memory.table) + " to " + to_text(table.version);
  }
  // A new coordinator that could not ask everybody may have to go back; one coordinator never does.
  const bool same_reign = table.version.term == memory.table.term;
  memory.table = table.version;
  for (const TypeTable& type : memory.entries.types) {
    for (std::uint32_t i = 0; i < type.entries.size() && (same_reign || !overlap_allowed_); ++i) {
      const ShardName name{type.name, ShardId{i}};
      const TableEntry* entry = find_entry(table, name);
      if (entry == nullptr || (!same_reign && entry->owner == kNoNode)) continue;
      if (entry->generation < type.entries[i].generation) {
        return who + " saw " + to_text(name) + " go back from " + to_text(type.entries[i]) +
               " to " + to_text(*entry);
      }
    }
  }
  memory.entries = table;
  return std::nullopt;
}

std::optional<std::string> Checker::check_owners(Time now, const Node& node) {
  const NodeKey self = node.info.key;
  std::vector<OwnedShard> owned = owned_shards(node.data());
  if (owned == owned_by_[self]) return std::nullopt;
  forget_owner(now, self);
  owned_by_[self] = owned;
  for (const OwnedShard& shard : owned) {
    if (auto broken = check_owner(now, self, shard)) return broken;
  }
  return std::nullopt;
}

std::optional<std::string> Checker::check_owner(Time now, NodeKey self, const OwnedShard& shard) {
  const auto [first, added] =
      generations_.try_emplace(std::pair(shard.shard, shard.generation), self);
  if (first->second != self) {
    return to_text(shard.shard) + " " + to_text(shard.generation) +
           " has two owners: " + to_text(first->second) + " and " + to_text(self);
  }
  Generation& last = last_owned_[std::pair(self, shard.shard)];
  if (shard.generation < last) {
    return to_text(self) + " went back on " + to_text(shard.shard) + " from " + to_text(last) +
           " to " + to_text(shard.generation);
  }
  last = shard.generation;
  auto& owners = owners_[shard.shard];
  owners[self] = shard.generation;
  if (owners.size() < 2) return std::nullopt;
  if (!overlap_allowed_) {
    std::string text = to_text(shard.shard) + " is run by";
    for (const auto& [key, generation] : owners) {
      text += " " + to_text(key) + "@" + to_text(generation);
    }
    return text;
  }
  if (overlap_since_.try_emplace(shard.shard, now).second) ++overlaps_;
  return std::nullopt;
}

void Checker::gone(Time now, const Node& node) {
  forget_owner(now, node.info.key);
  owned_by_[node.info.key].clear();
}

void Checker::forget_owner(Time now, NodeKey self) {
  for (const OwnedShard& shard : owned_by_[self]) {
    owners_[shard.shard].erase(self);
    if (owners_[shard.shard].size() < 2) end_overlap(now, shard.shard);
  }
}

void Checker::end_overlap(Time now, const ShardName& shard) {
  const auto since = overlap_since_.find(shard);
  if (since == overlap_since_.end()) return;
  longest_overlap_ = std::max(longest_overlap_, now - since->second);
  overlap_since_.erase(since);
}

}  // namespace shardbus::sim
