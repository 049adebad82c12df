// restore, release, released, offer: between a node and its workers.
#include "wire/codec.hpp"
#include "wire/fields.hpp"

namespace shardbus::wire {
namespace {

void read_entity(Cursor& in, EntityState& out) {
  out.id = in.bytes(kEntityIdBytesMax);
  out.state = in.bytes(kPayloadBytesMax);
}

}  // namespace

void encode(std::string& out, const Restore& restore) {
  Writer to(out);
  to.envelope(Kind::restore, 3);
  to.str(restore.type);
  to.bin(restore.entity.id);
  to.bin(restore.entity.state);
}

Errc decode(const Envelope& in, Restore& out) {
  Cursor from = body_of(in, 3);
  read_type(from, out.type);
  read_entity(from, out.entity);
  return from.error();
}

void encode(std::string& out, const Release& release) {
  Writer to(out);
  to.envelope(Kind::release, 3);
  write_shard(to, release.shard);
  to.uint(release.shard_count);
}

Errc decode(const Envelope& in, Release& out) {
  Cursor from = body_of(in, 3);
  read_shard(from, out.shard);
  out.shard_count = read_shard_count(from);
  check_shard(from, out.shard.shard, out.shard_count);
  return from.error();
}

void encode(std::string& out, const Released& released) {
  Writer to(out);
  to.envelope(Kind::released, released.unbegun.empty() ? 4 : 5);
  write_shard(to, released.shard);
  to.array(released.states.size());
  for (const EntityState& state : released.states) {
    to.array(2);
    to.bin(state.id);
    to.bin(state.state);
  }
  to.boolean(released.more);
  if (released.unbegun.empty()) return;
  to.array(released.unbegun.size());
  for (const std::string& message : released.unbegun) to.bin(message);
}

Errc decode(const Envelope& in, Released& out) {
  Cursor from = body_of(in, 3);
  read_shard(from, out.shard);
  read_list(from, kFrameBytesMax, out.states,
            [&](EntityState& state) { read_array(from, 2, [&] { read_entity(from, state); }); });
  out.more = in.body_items > 3 && from.boolean();
  out.unbegun.clear();
  if (in.body_items > 4) {
    read_list(from, kFrameBytesMax, out.unbegun,
              [&](std::string& message) { message = from.bytes(kFrameBytesMax); });
  }
  return from.error();
}

void encode_offer(std::string& out, const std::vector<HostedType>& types) {
  Writer to(out);
  to.envelope(Kind::offer, 1);
  write_types(to, types);
}

Errc decode_offer(const Envelope& in, std::vector<HostedType>& out) {
  Cursor from = body_of(in, 1);
  read_types(from, out);
  return from.error();
}

}  // namespace shardbus::wire
