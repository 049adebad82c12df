// The parts that several envelopes share, each as PROTOCOL.md "Common fields" lays it out.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "wire/codec.hpp"
#include "wire/cursor.hpp"
#include "wire/envelope.hpp"
#include "wire/limits.hpp"
#include "wire/writer.hpp"

namespace shardbus::wire {

// Reads one positional array of at least `items` elements; more are ignored.
template <class Read>
void read_array(Cursor& in, std::uint32_t items, Read&& read) {
  const std::uint32_t count = in.array();
  if (count < items) return in.fail();
  read();
  in.skip(count - items);
}

// Reads `count` values with `read(T&)`. The claimed count is no reason to reserve much memory: the
// vector grows with what is really there.
template <class T, class Read>
void read_items(Cursor& in, std::uint32_t count, std::vector<T>& out, Read&& read) {
  out.clear();
  out.reserve(std::min<std::uint32_t>(count, 64));
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) read(out.emplace_back());
}

template <class T, class Read>
void read_list(Cursor& in, std::uint32_t limit, std::vector<T>& out, Read&& read) {
  read_items(in, in.array(limit), out, std::forward<Read>(read));
}

// Starts reading a body whose first `items` elements are required.
inline Cursor body_of(const Envelope& envelope, std::uint32_t items) {
  Cursor in(envelope.body);
  if (envelope.body_items < items) in.fail();
  return in;
}

// Reads the body's one map; `read(key)` says whether it knew the key and took the value.
template <class Read>
void read_map(Cursor& in, Read&& read) {
  const std::uint32_t pairs = in.map();
  for (std::uint32_t i = 0; i < pairs && in.ok(); ++i) {
    const std::string_view key = in.bytes(kTextBytesMax);
    if (!read(key)) in.skip();
  }
}

void write_key(Writer& out, NodeKey key);  // nil for nobody
NodeKey read_key(Cursor& in);
void write_generation(Writer& out, const Generation& generation);
Generation read_generation(Cursor& in);
char* put_generation(char* at, const Generation& generation);
inline constexpr std::size_t kGenerationBytesMax = 1 + 3 * kUintBytesMax;

char* put_correlation(char* at, const Correlation& correlation);
constexpr std::size_t correlation_bytes_max(const Correlation& correlation) {
  return std::max(correlation.opaque.size(), 1 + 2 * kUintBytesMax);
}
void write_correlation(Writer& out, const Correlation& correlation);
Correlation read_correlation(Cursor& in);

bool is_node_name(std::string_view name);
void write_node(Writer& out, const NodeInfo& node);
void read_node(Cursor& in, NodeInfo& out);
void write_nodes(Writer& out, const std::vector<NodeInfo>& nodes);
void read_nodes(Cursor& in, std::vector<NodeInfo>& out);
void write_keys(Writer& out, const std::vector<NodeKey>& keys);
void read_keys(Cursor& in, std::vector<NodeKey>& out, std::uint32_t limit);
void write_traits(Writer& out, const NodeTraits& traits);
void read_traits(Cursor& in, NodeTraits& out);
void write_types(Writer& out, const std::vector<HostedType>& types);
void read_types(Cursor& in, std::vector<HostedType>& out);
void write_credit(Writer& out, const Credit& credit);
void read_credit(Cursor& in, Credit& out);
void write_code(Writer& out, std::uint16_t code, std::string_view text);
std::uint16_t read_code(Cursor& in);

// Two elements: type, shard.
void write_shard(Writer& out, const ShardName& shard);
void read_shard(Cursor& in, ShardName& out);
void read_type(Cursor& in, std::string& out);
void read_string(Cursor& in, std::size_t limit, std::string& out);
std::uint32_t read_shard_count(Cursor& in);
// A shard number that its type's shard_count does not have is malformed.
inline void check_shard(Cursor& in, ShardId shard, std::uint32_t shard_count) {
  if (in.ok() && shard.value >= shard_count) in.fail();
}

void write_version(Writer& out, const TableVersion& version);
void read_version(Cursor& in, TableVersion& out);
// Three elements: version, keys, types.
void write_table(Writer& out, const AllocationTable& table);
void read_table(Cursor& in, AllocationTable& out);

// Node keys by their index in a list that is sent once: a key takes nine bytes, an index one or
// two.
class KeyList {
 public:
  void add(NodeKey key);  // ignores nobody and repeats
  void write(Writer& out);
  void write_index(Writer& out, NodeKey key) const;
  void read(Cursor& in) { read_keys(in, keys_, kShardCountMax); }
  NodeKey read_index(Cursor& in) const;

 private:
  void sort();
  std::vector<NodeKey> keys_;
};

}  // namespace shardbus::wire
