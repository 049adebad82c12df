// The hash that places entities: part of the protocol, so it never changes (PROTOCOL.md "Shards").
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.hpp"

namespace shardbus {

// FNV-1a, 64 bit, over the bytes as they are.
constexpr std::uint64_t fnv1a64(std::string_view bytes,
                                std::uint64_t seed = 0xcbf29ce484222325ULL) noexcept {
  std::uint64_t hash = seed;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

// The part of an id that is hashed: what stands in the first non-empty `{...}`, else all of it.
constexpr std::string_view hash_tag(std::string_view id) noexcept {
  const auto open = id.find('{');
  if (open == std::string_view::npos) return id;
  const auto close = id.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return id;
  return id.substr(open + 1, close - open - 1);
}

// The shard of an id. `shard_count` is at least 1.
constexpr ShardId shard_of(std::string_view id, std::uint32_t shard_count) noexcept {
  return ShardId{static_cast<std::uint32_t>(fnv1a64(hash_tag(id)) % shard_count)};
}

// Key of one incarnation of a node: fnv1a64 of name, a zero byte, and the incarnation as eight
// bytes, lowest first; cut to 53 bits; never 0.
NodeKey node_key(std::string_view name, std::uint64_t incarnation) noexcept;

}  // namespace shardbus
