// The operations on an allocation table that every node does in the same way.
#pragma once

#include <cstdint>

#include "base/model/allocation.hpp"

namespace shardbus {

// The entry of a shard; nullptr where the table has no such type or shard.
const TableEntry* find_entry(const AllocationTable& table, const ShardName& shard);
const TypeTable* find_type(const AllocationTable& table, const std::string& name);

// Sets one entry; adds the type where it is new, keeping types ordered. A change whose shard is
// outside the type's count is ignored.
void set_entry(AllocationTable& table, const TableChange& change);

// Applies `delta` if it starts at the table's version. Returns whether it did.
bool apply(AllocationTable& table, const TableDelta& delta);

// FNV-1a over all entries and orders, 53 bits: tells whether two tables of one version are equal.
std::uint64_t table_hash(const AllocationTable& table);

}  // namespace shardbus
