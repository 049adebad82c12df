// The hashes behind rendezvous and ring. A cluster whose nodes compute them differently would move
// its shards with each change of the coordinator, so they never change.
#pragma once

#include <cstdint>
#include <string>

#include "base/hash.hpp"
#include "base/model/placement.hpp"

namespace shardbus::placement {

// Finaliser of splitmix64: every bit of the input reaches every bit of the result.
constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Of the name, so that a restarted node is the same one.
inline std::uint64_t hash_of(const PlacementNode& node) {
  const std::string name = node.name.empty() ? std::to_string(node.key.value) : node.name;
  return mixed(fnv1a64(name));
}

// `type_hash` is fnv1a64 of the type's name.
constexpr std::uint64_t hash_of_shard(std::uint64_t type_hash, std::uint32_t shard) {
  return mixed(type_hash + 0x9e3779b97f4a7c15ULL * (shard + std::uint64_t{1}));
}

}  // namespace shardbus::placement
