#include "wire/fields.hpp"

#include "base/hash.hpp"
#include "wire/text.hpp"

namespace shardbus::wire {
bool is_node_name(std::string_view name) {
  static constexpr std::string_view kMarks = "._:-";
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed);
}

namespace {

void write_entry(Writer& out, const TableEntry& entry, const KeyList& keys) {
  if (entry == TableEntry{}) return out.nil();
  out.array(4);
  keys.write_index(out, entry.owner);
  out.uint(entry.generation.term.value);
  keys.write_index(out, entry.generation.claimant);
  out.uint(entry.generation.counter);
}

void read_entry(Cursor& in, const KeyList& keys, TableEntry& out) {
  if (in.take_nil()) return;
  read_array(in, 4, [&] {
    out.owner = keys.read_index(in);
    out.generation.term = Term{in.uint()};
    out.generation.claimant = keys.read_index(in);
    out.generation.counter = in.uint();
  });
}

void read_type_table(Cursor& in, const KeyList& keys, TypeTable& out) {
  read_array(in, 3, [&] {
    read_type(in, out.name);
    out.shard_count = read_shard_count(in);
    const std::uint32_t count = in.array(kShardCountMax);
    if (count != out.shard_count) return in.fail();
    read_items(in, count, out.entries, [&](TableEntry& entry) { read_entry(in, keys, entry); });
  });
}

void read_hosted_type(Cursor& in, HostedType& out) {
  const std::uint32_t count = in.array();
  if (count < 2) return in.fail();
  read_type(in, out.name);
  out.shard_count = read_shard_count(in);
  if (count > 2) read_type(in, out.placement.strategy);
  if (count > 3) read_string(in, kNodeNameBytesMax, out.placement.role);
  if (count > 4) out.placement.spread_zones = in.boolean();
  if (count > 5) out.placement.strict = in.boolean();
  if (count > 6) in.skip(count - 6);
}

}  // namespace

void write_key(Writer& out, NodeKey key) {
  key == kNoNode ? out.nil() : out.uint(key.value);
}

NodeKey read_key(Cursor& in) {
  return in.take_nil() ? kNoNode : NodeKey{in.uint()};
}

char* put_generation(char* at, const Generation& generation) {
  if (!generation.known()) return put_nil(at);
  at = put_array_head(at, 3);
  at = put_uint(at, generation.term.value);
  at = put_uint(at, generation.claimant.value);
  return put_uint(at, generation.counter);
}

void write_generation(Writer& out, const Generation& generation) {
  char buffer[kGenerationBytesMax];
  const char* end = put_generation(buffer, generation);
  out.raw({buffer, static_cast<std::size_t>(end - buffer)});
}

Generation read_generation(Cursor& in) {
  Generation out;
  if (in.take_nil()) return out;
  const std::uint32_t count = in.array();
  if (count < 3) {
    in.fail();
    return out;
  }
  out.term = Term{in.uint()};
  out.claimant = NodeKey{in.uint()};
  out.counter = in.uint();
  in.skip(count - 3);
  // Nil is the one form of "unknown"; two forms would compare unequal.
  if (out.term.value == 0) in.fail();
  return out;
}

char* put_correlation(char* at, const Correlation& correlation) {
  if (!correlation.opaque.empty()) return put_raw(at, correlation.opaque);
  if (!correlation.is_port()) return put_nil(at);
  at = put_array_head(at, 2);
  at = put_uint(at, correlation.node.value);
  return put_uint(at, correlation.slot);
}

void write_correlation(Writer& out, const Correlation& correlation) {
  if (!correlation.opaque.empty()) return out.raw(correlation.opaque);
  if (!correlation.is_port()) return out.nil();
  out.array(2);
  out.uint(correlation.node.value);
  out.uint(correlation.slot);
}

Correlation read_correlation(Cursor& in) {
  Correlation out;
  if (in.take_nil() || in.remaining() == 0) return out;
  const auto head = static_cast<unsigned char>(*in.at());
  if ((head & 0xf0) == 0x90) {
    const std::uint32_t count = in.array();
    out.node = read_key(in);
    out.slot = in.uint();
    if (count < 2 || out.node == kNoNode) in.fail();
    if (count > 2) in.skip(count - 2);
    return out;
  }
  const bool integer = head < 0x80 || head >= 0xe0 || (head >= 0xcc && head <= 0xd3);
  const bool string = (head & 0xe0) == 0xa0 || (head >= 0xd9 && head <= 0xdb);
  const bool binary = head >= 0xc4 && head <= 0xc6;
  if (!integer && !string && !binary) {
    in.fail();
    return out;
  }
  out.opaque = in.raw();
  if (out.opaque.size() > kCorrelationBytesMax) {
    out.opaque = {};
    in.note_too_large();
  }
  return out;
}

void write_node(Writer& out, const NodeInfo& node) {
  out.array(6);
  out.str(node.name);
  out.uint(node.incarnation);
  out.uint(node.key.value);
  out.str(node.front);
  out.str(node.peer);
  out.str(node.gossip);
}

void read_node(Cursor& in, NodeInfo& out) {
  read_array(in, 6, [&] {
    read_string(in, kNodeNameBytesMax, out.name);
    out.incarnation = in.uint();
    out.key = NodeKey{in.uint()};
    read_string(in, kEndpointBytesMax, out.front);
    read_string(in, kEndpointBytesMax, out.peer);
    read_string(in, kEndpointBytesMax, out.gossip);
  });
  if (!in.ok()) return;
  if (!is_node_name(out.name) || out.key != node_key(out.name, out.incarnation)) in.fail();
}

void write_nodes(Writer& out, const std::vector<NodeInfo>& nodes) {
  out.array(nodes.size());
  for (const NodeInfo& node : nodes) write_node(out, node);
}

void read_nodes(Cursor& in, std::vector<NodeInfo>& out) {
  read_list(in, kMembersMax, out, [&](NodeInfo& node) { read_node(in, node); });
}

void write_keys(Writer& out, const std::vector<NodeKey>& keys) {
  out.array(keys.size());
  for (const NodeKey key : keys) out.uint(key.value);
}

void read_keys(Cursor& in, std::vector<NodeKey>& out, std::uint32_t limit) {
  read_list(in, limit, out, [&](NodeKey& key) {
    key = NodeKey{in.uint()};
    if (key == kNoNode) in.fail();
  });
}

void write_traits(Writer& out, const NodeTraits& traits) {
  out.array(4);
  out.str(traits.zone);
  out.array(traits.roles.size());
  for (const std::string& role : traits.roles) out.str(role);
  out.uint(traits.capacity);
  out.str(traits.version);
}

void read_traits(Cursor& in, NodeTraits& out) {
  read_array(in, 4, [&] {
    read_string(in, kNodeNameBytesMax, out.zone);
    read_list(in, kRolesMax, out.roles,
              [&](std::string& role) { read_string(in, kNodeNameBytesMax, role); });
    out.capacity = static_cast<std::uint32_t>(in.uint(kCapacityMax));
    if (out.capacity == 0) in.fail();
    read_string(in, kNodeNameBytesMax, out.version);
  });
}

// The settings are left out where all have their default, as older nodes do.
void write_types(Writer& out, const std::vector<HostedType>& types) {
  out.array(types.size());
  for (const HostedType& type : types) {
    const bool settings = type.placement != PlacementSettings{};
    out.array(settings ? 6 : 2);
    out.str(type.name);
    out.uint(type.shard_count);
    if (!settings) continue;
    out.str(type.placement.strategy);
    out.str(type.placement.role);
    out.boolean(type.placement.spread_zones);
    out.boolean(type.placement.strict);
  }
}

void read_types(Cursor& in, std::vector<HostedType>& out) {
  read_list(in, kTypesMax, out, [&](HostedType& type) { read_hosted_type(in, type); });
}

void write_credit(Writer& out, const Credit& credit) {
  out.array(2);
  out.uint(credit.envelopes);
  out.uint(credit.bytes);
}

void read_credit(Cursor& in, Credit& out) {
  read_array(in, 2, [&] {
    out.envelopes = in.uint();
    out.bytes = in.uint();
  });
}

void write_code(Writer& out, std::uint16_t code, std::string_view text) {
  std::string scratch;
  out.uint(code);
  out.str(clean_text(text, scratch));
}

std::uint16_t read_code(Cursor& in) {
  const auto code = in.narrow<std::uint16_t>();
  if (code == 0) in.fail();
  return code;
}

void write_shard(Writer& out, const ShardName& shard) {
  out.str(shard.type);
  out.uint(shard.shard.value);
}

void read_shard(Cursor& in, ShardName& out) {
  read_type(in, out.type);
  out.shard = ShardId{static_cast<std::uint32_t>(in.uint(kShardCountMax - 1))};
}

void read_type(Cursor& in, std::string& out) {
  read_string(in, kTypeBytesMax, out);
  if (in.ok() && out.empty()) in.fail();
}

void read_string(Cursor& in, std::size_t limit, std::string& out) {
  out = in.text(limit);
}

std::uint32_t read_shard_count(Cursor& in) {
  const auto count = static_cast<std::uint32_t>(in.limited(kShardCountMax));
  if (count == 0) in.fail();
  return count;
}

void write_version(Writer& out, const TableVersion& version) {
  out.array(3);
  out.uint(version.term.value);
  write_key(out, version.claimant);
  out.uint(version.number);
}

void read_version(Cursor& in, TableVersion& out) {
  read_array(in, 3, [&] {
    out.term = Term{in.uint()};
    out.claimant = read_key(in);
    out.number = in.uint();
  });
}

void write_table(Writer& out, const AllocationTable& table) {
  KeyList keys;
  for (const TypeTable& type : table.types) {
    for (const TableEntry& entry : type.entries) {
      keys.add(entry.owner);
      keys.add(entry.generation.claimant);
    }
  }
  write_version(out, table.version);
  keys.write(out);
  out.array(table.types.size());
  for (const TypeTable& type : table.types) {
    out.array(3);
    out.str(type.name);
    out.uint(type.shard_count);
    out.array(type.entries.size());
    for (const TableEntry& entry : type.entries) write_entry(out, entry, keys);
  }
}

void read_table(Cursor& in, AllocationTable& out) {
  KeyList keys;
  read_version(in, out.version);
  keys.read(in);
  read_list(in, kTypesMax, out.types, [&](TypeTable& type) { read_type_table(in, keys, type); });
}

void KeyList::add(NodeKey key) {
  // Neighbouring entries mostly name the same keys; the rest is sorted out in write().
  if (key == kNoNode) return;
  const std::size_t size = keys_.size();
  if (size >= 1 && keys_[size - 1] == key) return;
  if (size >= 2 && keys_[size - 2] == key) return;
  keys_.push_back(key);
}

void KeyList::sort() {
  std::sort(keys_.begin(), keys_.end());
  keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
}

void KeyList::write(Writer& out) {
  sort();
  write_keys(out, keys_);
}

void KeyList::write_index(Writer& out, NodeKey key) const {
  if (key == kNoNode) return out.nil();
  const auto found = std::lower_bound(keys_.begin(), keys_.end(), key);
  out.uint(static_cast<std::uint64_t>(found - keys_.begin()));
}

NodeKey KeyList::read_index(Cursor& in) const {
  if (in.take_nil()) return kNoNode;
  const std::uint64_t index = in.uint();
  if (index < keys_.size()) return keys_[index];
  in.fail();
  return kNoNode;
}

}  // namespace shardbus::wire
