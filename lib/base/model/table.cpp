#include "base/model/table.hpp"

#include <algorithm>
#include <array>

#include "base/hash.hpp"

namespace shardbus {
namespace {

template <class Types>
auto place_of(Types& types, const std::string& name) {
  return std::lower_bound(
      types.begin(), types.end(), name,
      [](const TypeTable& type, const std::string& wanted) { return type.name < wanted; });
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  std::array<char, 8> bytes{};
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return fnv1a64({bytes.data(), bytes.size()}, hash);
}

std::uint64_t mix(std::uint64_t hash, const std::vector<std::string>& names) {
  for (const std::string& name : names) hash = fnv1a64(name, mix(hash, name.size()));
  return mix(hash, names.size());
}

std::uint64_t mix(std::uint64_t hash, const Orders& orders) {
  hash = mix(mix(hash, orders.cordoned), orders.draining);
  hash = mix(hash, std::uint64_t{orders.suspended});
  for (const Pin& pin : orders.pins) {
    hash = mix(hash, {pin.shard.type, pin.node});
    hash = mix(hash, std::uint64_t{pin.shard.shard.value});
  }
  return hash;
}

}  // namespace

const TypeTable* find_type(const AllocationTable& table, const std::string& name) {
  const auto type = place_of(table.types, name);
  return type == table.types.end() || type->name != name ? nullptr : &*type;
}

const TableEntry* find_entry(const AllocationTable& table, const ShardName& shard) {
  const TypeTable* type = find_type(table, shard.type);
  if (type == nullptr || shard.shard.value >= type->entries.size()) return nullptr;
  return &type->entries[shard.shard.value];
}

void set_entry(AllocationTable& table, const TableChange& change) {
  auto type = place_of(table.types, change.shard.type);
  if (type == table.types.end() || type->name != change.shard.type) {
    type = table.types.insert(type, TypeTable{change.shard.type, change.shard_count, {}});
    type->entries.resize(change.shard_count);
  }
  if (change.shard.shard.value >= type->entries.size()) return;
  type->entries[change.shard.shard.value] = change.entry;
}

bool apply(AllocationTable& table, const TableDelta& delta) {
  if (delta.from != table.version) return false;
  for (const TableChange& change : delta.changes) set_entry(table, change);
  if (delta.new_orders) table.orders = delta.orders;
  table.version = delta.to;
  return true;
}

std::uint64_t table_hash(const AllocationTable& table) {
  std::uint64_t hash = fnv1a64("");
  for (const TypeTable& type : table.types) {
    hash = mix(fnv1a64(type.name, hash), type.shard_count);
    for (const TableEntry& entry : type.entries) {
      hash = mix(hash, entry.owner.value);
      hash = mix(hash, entry.generation.term.value);
      hash = mix(hash, entry.generation.claimant.value);
      hash = mix(hash, entry.generation.counter);
    }
  }
  return mix(hash, table.orders) & kMaxWireInteger;
}

}  // namespace shardbus
