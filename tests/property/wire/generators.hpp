// Random values of the wire's structs, within their limits.
#pragma once

#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/hash.hpp"
#include "wire/codec.hpp"

namespace shardbus::test {

// Small numbers, numbers around the widths of msgpack, and large ones.
inline rc::Gen<std::uint64_t> any_uint(std::uint64_t max = kMaxWireInteger) {
  return rc::gen::exec([max] {
    const auto bits = *rc::gen::inRange<unsigned>(0, 54);
    const std::uint64_t value = *rc::gen::arbitrary<std::uint64_t>();
    return bits == 0 ? 0 : std::min((value >> (64 - bits)), max);
  });
}
template <class T>
T small(std::uint64_t max) {
  return static_cast<T>(*any_uint(max));
}

inline std::string any_bytes(std::size_t max) {
  const auto size = *rc::gen::inRange<std::size_t>(0, max + 1);
  return *rc::gen::container<std::string>(size, rc::gen::arbitrary<char>());
}
inline std::string any_name(std::size_t max) {
  const auto size = *rc::gen::inRange<std::size_t>(1, max + 1);
  return *rc::gen::container<std::string>(
      size, rc::gen::elementOf(std::string("abcdefghijklmnopqrstuvwxyzABC019._:-")));
}

template <class Make>
auto list_of(std::size_t max, Make&& make) {
  std::vector<decltype(make())> out(*rc::gen::inRange<std::size_t>(0, max + 1));
  for (auto& item : out) item = make();
  return out;
}

inline NodeKey any_key() {
  return NodeKey{*any_uint()};
}
inline NodeKey some_key() {
  return NodeKey{std::max<std::uint64_t>(1, *any_uint())};
}
inline Generation any_generation() {
  if (*rc::gen::inRange(0, 4) == 0) return {};
  return {Term{std::max<std::uint64_t>(1, *any_uint())}, any_key(), *any_uint()};
}

inline NodeInfo any_node() {
  NodeInfo node;
  node.name = any_name(wire::kNodeNameBytesMax);
  node.incarnation = *any_uint();
  node.key = node_key(node.name, node.incarnation);
  node.front = any_name(wire::kEndpointBytesMax);
  node.peer = any_name(wire::kEndpointBytesMax);
  node.gossip = any_name(wire::kEndpointBytesMax);
  return node;
}

inline std::uint32_t any_shard_count() {
  return static_cast<std::uint32_t>(*rc::gen::inRange<std::uint32_t>(1, 65537));
}
inline ShardName any_shard(std::uint32_t shard_count = wire::kShardCountMax) {
  return {any_name(wire::kTypeBytesMax), ShardId{*rc::gen::inRange<std::uint32_t>(0, shard_count)}};
}
inline PlacementSettings any_placement() {
  if (*rc::gen::arbitrary<bool>()) return {};
  return {any_name(wire::kTypeBytesMax), any_name(wire::kNodeNameBytesMax),
          *rc::gen::arbitrary<bool>()};
}
inline HostedType any_type() {
  return {any_name(wire::kTypeBytesMax), any_shard_count(), any_placement()};
}
inline NodeTraits any_traits() {
  if (*rc::gen::arbitrary<bool>()) return {};
  return {any_name(wire::kNodeNameBytesMax),
          list_of(5, [] { return any_name(wire::kNodeNameBytesMax); }),
          *rc::gen::inRange<std::uint32_t>(1, wire::kCapacityMax + 1),
          any_name(wire::kNodeNameBytesMax)};
}
inline std::vector<HostedType> any_types() {
  return list_of(5, any_type);
}
inline wire::Credit any_credit() {
  return {*any_uint(), *any_uint()};
}
inline TableVersion any_version() {
  return {Term{*any_uint()}, any_key(), *any_uint()};
}

inline TypeTable any_type_table() {
  TypeTable table;
  table.name = any_name(wire::kTypeBytesMax);
  const NodeKey keys[] = {some_key(), some_key(), kNoNode, some_key()};
  const auto one = [&] { return keys[*rc::gen::inRange(0, 4)]; };
  table.entries = list_of(40, [&] {
    return TableEntry{one(), {Term{*any_uint()}, one(), *any_uint()}};
  });
  if (table.entries.empty()) table.entries.emplace_back();
  table.shard_count = static_cast<std::uint32_t>(table.entries.size());
  return table;
}
inline AllocationTable any_table() {
  return {any_version(), list_of(4, any_type_table), {}};
}

inline Orders any_orders() {
  return {list_of(4, [] { return any_name(64); }), list_of(4, [] { return any_name(64); }),
          *rc::gen::arbitrary<bool>(), list_of(4, [] {
            return Pin{any_shard(), any_name(64)};
          })};
}

// What a message's views point to.
struct MessageParts {
  std::string opaque, type, id, method, headers, payload;
};

}  // namespace shardbus::test
