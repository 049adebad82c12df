// Kinds 50..63: between coordinators, regions and control loops.
#include "base/model/keys.hpp"
#include "wire/codec.hpp"
#include "wire/fields.hpp"

namespace shardbus::wire {
namespace {

// --- commands ---

template <class Command>
void write_command(Writer& out, Kind kind, const Command& command, NodeKey other) {
  out.envelope(kind, 4);
  write_shard(out, command.shard);
  write_generation(out, command.generation);
  write_key(out, other);
}

void write(Writer& out, const BeginHandoff& m) {
  write_command(out, Kind::begin, m, m.next);
}
void write(Writer& out, const PrepareHandoff& m) {
  write_command(out, Kind::prepare, m, m.from);
}
void write(Writer& out, const FreezeShard& m) {
  write_command(out, Kind::freeze, m, m.from);
}

template <class Command>
Errc read_command(const Envelope& in, Command& out, NodeKey& other) {
  Cursor from = body_of(in, 4);
  read_shard(from, out.shard);
  out.generation = read_generation(from);
  other = read_key(from);
  return from.error();
}

Errc read(const Envelope& in, BeginHandoff& out) {
  return read_command(in, out, out.next);
}
Errc read(const Envelope& in, PrepareHandoff& out) {
  return read_command(in, out, out.from);
}
Errc read(const Envelope& in, FreezeShard& out) {
  return read_command(in, out, out.from);
}

void write(Writer& out, const RehomeShard& m) {
  out.envelope(Kind::rehome, 5);
  write_shard(out, m.shard);
  write_generation(out, m.generation);
  out.uint(m.shard_count);
  write_generation(out, m.frozen);
}

Errc read(const Envelope& in, RehomeShard& out) {
  Cursor from = body_of(in, 5);
  read_shard(from, out.shard);
  out.generation = read_generation(from);
  out.shard_count = read_shard_count(from);
  out.frozen = read_generation(from);
  check_shard(from, out.shard.shard, out.shard_count);
  return from.error();
}

void write(Writer& out, const RegionAnswer& m) {
  out.envelope(Kind::answer, 5);
  write_shard(out, m.shard);
  write_generation(out, m.generation);
  out.uint(static_cast<std::uint64_t>(m.kind));
  write_key(out, m.node);
}

Errc read(const Envelope& in, RegionAnswer& out) {
  Cursor from = body_of(in, 5);
  read_shard(from, out.shard);
  out.generation = read_generation(from);
  const std::uint64_t kind = from.uint(static_cast<std::uint64_t>(RegionAnswerKind::frozen));
  if (kind == 0) from.fail();
  out.kind = static_cast<RegionAnswerKind>(kind);
  out.node = read_key(from);
  return from.error();
}

// --- reports ---

void write(Writer& out, const ReportRequest& m) {
  out.envelope(Kind::report_request, 2);
  out.uint(m.term.value);
  write_key(out, m.claimant);
}

Errc read(const Envelope& in, ReportRequest& out) {
  Cursor from = body_of(in, 2);
  out.term = Term{from.uint()};
  out.claimant = read_key(from);
  return from.error();
}

using ShardRow = std::vector<ReportedShard>::const_iterator;

bool same_type(const ReportedShard& a, const ReportedShard& b) {
  return a.shard.type == b.shard.type && a.shard_count == b.shard_count;
}

// Rows of one type stand together under its name, for a report may name 65536 shards.
std::vector<ShardRow> type_starts(const std::vector<ReportedShard>& shards) {
  std::vector<ShardRow> starts;
  for (auto row = shards.begin(); row != shards.end(); ++row) {
    if (row == shards.begin() || !same_type(*row, *(row - 1))) starts.push_back(row);
  }
  return starts;
}

void write_row(Writer& out, const ReportedShard& row, const KeyList& keys) {
  out.array(6);
  out.uint(row.shard.shard.value);
  out.uint(static_cast<std::uint64_t>(row.state));
  out.uint(row.generation.term.value);
  keys.write_index(out, row.generation.claimant);
  out.uint(row.generation.counter);
  keys.write_index(out, row.other);
}

void read_row(Cursor& in, const KeyList& keys, ReportedShard& out) {
  read_array(in, 6, [&] {
    out.shard.shard = ShardId{static_cast<std::uint32_t>(in.uint(kShardCountMax - 1))};
    out.state = static_cast<RegionState>(in.uint(static_cast<std::uint64_t>(RegionState::frozen)));
    out.generation.term = Term{in.uint()};
    out.generation.claimant = keys.read_index(in);
    out.generation.counter = in.uint();
    out.other = keys.read_index(in);
  });
}

void write(Writer& out, const RegionReport& m) {
  KeyList keys;
  for (const ReportedShard& row : m.shards) {
    keys.add(row.generation.claimant);
    keys.add(row.other);
  }
  out.envelope(Kind::report, 5);
  out.uint(m.term.value);
  write_key(out, m.claimant);
  write_key(out, m.node);
  keys.write(out);
  const std::vector<ShardRow> starts = type_starts(m.shards);
  out.array(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const ShardRow end = i + 1 < starts.size() ? starts[i + 1] : m.shards.end();
    out.array(3);
    out.str(starts[i]->shard.type);
    out.uint(starts[i]->shard_count);
    out.array(static_cast<std::size_t>(end - starts[i]));
    for (ShardRow row = starts[i]; row != end; ++row) write_row(out, *row, keys);
  }
}

void read_report_type(Cursor& in, const KeyList& keys, std::vector<ReportedShard>& out) {
  read_array(in, 3, [&] {
    std::string type;
    read_type(in, type);
    const std::uint32_t shard_count = read_shard_count(in);
    const std::uint32_t rows = in.array(kShardCountMax);
    for (std::uint32_t i = 0; i < rows && in.ok(); ++i) {
      ReportedShard& row = out.emplace_back();
      row.shard.type = type;
      row.shard_count = shard_count;
      read_row(in, keys, row);
      check_shard(in, row.shard.shard, shard_count);
    }
  });
}

Errc read(const Envelope& in, RegionReport& out) {
  Cursor from = body_of(in, 5);
  KeyList keys;
  out.term = Term{from.uint()};
  out.claimant = read_key(from);
  out.node = read_key(from);
  keys.read(from);
  out.shards.clear();
  const std::uint32_t types = from.array(kTypesMax);
  for (std::uint32_t i = 0; i < types && from.ok(); ++i) read_report_type(from, keys, out.shards);
  return from.error();
}

// --- joining and the table ---

void write(Writer& out, const JoinRequest& m) {
  out.envelope(Kind::join, 4);
  out.str(m.cluster);
  write_node(out, m.node);
  write_types(out, m.hosts);
  out.array(m.settings.size());
  for (const Setting& setting : m.settings) {
    out.array(2);
    out.str(setting.name);
    out.str(setting.value);
  }
}

Errc read(const Envelope& in, JoinRequest& out) {
  Cursor from = body_of(in, 3);
  read_string(from, kNodeNameBytesMax, out.cluster);
  read_node(from, out.node);
  read_types(from, out.hosts);
  out.settings.clear();
  if (in.body_items < 4) return from.error();  // of a node that does not tell them
  read_list(from, kSettingsMax, out.settings, [&](Setting& setting) {
    read_array(from, 2, [&] {
      read_string(from, kNodeNameBytesMax, setting.name);
      read_string(from, kTextBytesMax, setting.value);
    });
  });
  return from.error();
}

void write(Writer& out, const JoinRefused& m) {
  out.envelope(Kind::join_refused, 2);
  write_code(out, m.code, m.text);
}

Errc read(const Envelope& in, JoinRefused& out) {
  Cursor from = body_of(in, 2);
  out.code = read_code(from);
  read_string(from, kTextBytesMax, out.text);
  return from.error();
}

void write(Writer& out, const TablePull& m) {
  out.envelope(Kind::table_pull, 1);
  write_version(out, m.have);
}

Errc read(const Envelope& in, TablePull& out) {
  Cursor from = body_of(in, 1);
  read_version(from, out.have);
  return from.error();
}

void read_node_name(Cursor& in, std::string& out) {
  read_string(in, kNodeNameBytesMax, out);
  if (in.ok() && !is_node_name(out)) in.fail();
}

void write_names(Writer& out, const std::vector<std::string>& names) {
  out.array(names.size());
  for (const std::string& name : names) out.str(name);
}

void read_names(Cursor& in, std::vector<std::string>& out) {
  read_list(in, kOrderedNodesMax, out, [&](std::string& name) { read_node_name(in, name); });
}

void write_orders(Writer& out, const Orders& orders) {
  out.array(4);
  write_names(out, orders.cordoned);
  write_names(out, orders.draining);
  out.boolean(orders.suspended);
  out.array(orders.pins.size());
  for (const Pin& pin : orders.pins) {
    out.array(3);
    write_shard(out, pin.shard);
    out.str(pin.node);
  }
}

void read_orders(Cursor& in, Orders& out) {
  read_array(in, 4, [&] {
    read_names(in, out.cordoned);
    read_names(in, out.draining);
    out.suspended = in.boolean();
    read_list(in, kPinsMax, out.pins, [&](Pin& pin) {
      read_array(in, 3, [&] {
        read_shard(in, pin.shard);
        read_node_name(in, pin.node);
      });
    });
  });
}

void write(Writer& out, const TablePart& m) {
  out.envelope(Kind::table_part, 4);
  write_table(out, m.table);
  write_orders(out, m.table.orders);
}

Errc read(const Envelope& in, TablePart& out) {
  Cursor from = body_of(in, 4);
  read_table(from, out.table);
  read_orders(from, out.table.orders);
  return from.error();
}

void write(Writer& out, const TableDelta& m) {
  out.envelope(Kind::table_delta, 4);
  write_version(out, m.from);
  write_version(out, m.to);
  out.array(m.changes.size());
  for (const TableChange& change : m.changes) {
    out.array(7);
    write_shard(out, change.shard);
    out.uint(change.shard_count);
    write_key(out, change.entry.owner);
    write_generation(out, change.entry.generation);
    out.uint(static_cast<std::uint64_t>(change.cause));
    out.str(change.actor);
  }
  if (!m.new_orders) return out.nil();
  write_orders(out, m.orders);
}

Errc read(const Envelope& in, TableDelta& out) {
  Cursor from = body_of(in, 4);
  read_version(from, out.from);
  read_version(from, out.to);
  read_list(from, kFrameBytesMax, out.changes, [&](TableChange& change) {
    read_array(from, 7, [&] {
      read_shard(from, change.shard);
      change.shard_count = read_shard_count(from);
      change.entry.owner = read_key(from);
      change.entry.generation = read_generation(from);
      check_shard(from, change.shard.shard, change.shard_count);
      change.cause = static_cast<Cause>(from.uint(static_cast<std::uint64_t>(Cause::unhosted)));
      read_string(from, kActorBytesMax, change.actor);
    });
  });
  out.new_orders = !from.take_nil();
  if (out.new_orders) read_orders(from, out.orders);
  return from.error();
}

void write(Writer& out, const DownRequest& m) {
  out.envelope(Kind::down, 1);
  write_key(out, m.node);
}

Errc read(const Envelope& in, DownRequest& out) {
  Cursor from = body_of(in, 1);
  out.node = read_key(from);
  return from.error();
}

// --- digest ---

void write_members(Writer& out, const std::vector<Member>& members) {
  out.array(members.size());
  for (const Member& member : members) {
    out.array(3);
    write_node(out, member.node);
    out.uint(static_cast<std::uint64_t>(member.state));
    out.uint(member.age);
  }
}

void write_set(Writer& out, const MemberSet& set) {
  out.array(5);
  out.array(3);
  out.uint(set.stamp.term.value);
  write_key(out, set.stamp.claimant);
  out.uint(set.stamp.number);
  if (is_brief(set)) {
    out.nil();
  } else {
    write_members(out, set.members);
  }
  write_keys(out, set.previous);
  out.boolean(set.counted);
  out.boolean(set.evidence);
}

void read_member(Cursor& in, Member& out) {
  read_array(in, 3, [&] {
    read_node(in, out.node);
    out.state = static_cast<MemberState>(in.uint(static_cast<std::uint64_t>(MemberState::removed)));
    out.age = in.uint();
  });
}

void read_set(Cursor& in, MemberSet& out) {
  read_array(in, 5, [&] {
    read_array(in, 3, [&] {
      out.stamp.term = Term{in.uint()};
      out.stamp.claimant = read_key(in);
      out.stamp.number = in.uint();
    });
    if (!in.take_nil()) {
      read_list(in, kMembersMax, out.members, [&](Member& member) { read_member(in, member); });
    }
    read_keys(in, out.previous, kMembersMax);
    out.counted = in.boolean();
    out.evidence = in.boolean();
  });
}

void write_vote(Writer& out, const Vote& vote) {
  out.array(3);
  out.uint(vote.term.value);
  write_key(out, vote.claimant);
  out.uint(vote.digest);
}

void read_vote(Cursor& in, Vote& out) {
  read_array(in, 3, [&] {
    out.term = Term{in.uint()};
    out.claimant = read_key(in);
    out.digest = in.uint();
  });
}

constexpr std::uint32_t kDigestItems = 14;  // and traits and repeats, where they say anything

void write_repeats(Writer& out, const std::vector<Repeat>& repeats) {
  out.array(repeats.size());
  for (const Repeat& repeat : repeats) {
    out.array(2);
    write_key(out, repeat.node);
    out.uint(repeat.digest);
  }
}

void read_repeats(Cursor& in, std::vector<Repeat>& out) {
  read_list(in, kMembersMax, out, [&](Repeat& repeat) {
    read_array(in, 2, [&] {
      repeat.node = read_key(in);
      repeat.digest = in.uint();
    });
  });
}

void write(Writer& out, const Digest& m) {
  const bool repeats = !m.repeats.empty();
  const bool traits = repeats || m.traits != NodeTraits{};
  out.envelope(Kind::digest, kDigestItems + (traits ? 1 : 0) + (repeats ? 1 : 0));
  out.str(m.cluster);
  out.uint(m.cluster_id);
  write_node(out, m.from);
  out.uint(m.number);
  write_vote(out, m.vote);
  out.uint(m.resigned.value);
  write_set(out, m.set);
  write_keys(out, m.unreachable);
  write_keys(out, m.dead);
  write_types(out, m.hosts);
  write_version(out, m.table);
  out.uint(m.table_hash);
  out.uint(m.load);
  out.boolean(m.leaving);
  if (traits) write_traits(out, m.traits);
  if (repeats) write_repeats(out, m.repeats);
}

Errc read(const Envelope& in, Digest& out) {
  Cursor from = body_of(in, kDigestItems);
  read_string(from, kNodeNameBytesMax, out.cluster);
  out.cluster_id = from.uint();
  read_node(from, out.from);
  out.number = from.uint();
  read_vote(from, out.vote);
  out.resigned = Term{from.uint()};
  read_set(from, out.set);
  read_keys(from, out.unreachable, kMembersMax);
  read_keys(from, out.dead, kMembersMax);
  read_types(from, out.hosts);
  read_version(from, out.table);
  out.table_hash = from.uint();
  out.load = from.uint();
  out.leaving = from.boolean();
  if (in.body_items > kDigestItems) read_traits(from, out.traits);
  if (in.body_items > kDigestItems + 1) read_repeats(from, out.repeats);
  return from.error();
}

template <class T>
Errc read_as(const Envelope& in, ControlMessage& out) {
  return read(in, out.emplace<T>());
}

}  // namespace

void encode(std::string& out, const ControlMessage& message) {
  Writer to(out);
  std::visit([&to](const auto& m) { write(to, m); }, message);
}

Errc decode(const Envelope& in, ControlMessage& out) {
  switch (in.kind) {
    case Kind::begin:
      return read_as<BeginHandoff>(in, out);
    case Kind::prepare:
      return read_as<PrepareHandoff>(in, out);
    case Kind::freeze:
      return read_as<FreezeShard>(in, out);
    case Kind::rehome:
      return read_as<RehomeShard>(in, out);
    case Kind::answer:
      return read_as<RegionAnswer>(in, out);
    case Kind::report_request:
      return read_as<ReportRequest>(in, out);
    case Kind::report:
      return read_as<RegionReport>(in, out);
    case Kind::join:
      return read_as<JoinRequest>(in, out);
    case Kind::join_refused:
      return read_as<JoinRefused>(in, out);
    case Kind::table_pull:
      return read_as<TablePull>(in, out);
    case Kind::table_part:
      return read_as<TablePart>(in, out);
    case Kind::down:
      return read_as<DownRequest>(in, out);
    case Kind::digest:
      return read_as<Digest>(in, out);
    case Kind::table_delta:
      return read_as<TableDelta>(in, out);
    default:
      return Errc::unknown_kind;
  }
}

}  // namespace shardbus::wire
