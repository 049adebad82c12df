// The stream that carries a shard from its old owner to the next one.
#include "wire/codec.hpp"
#include "wire/fields.hpp"
#include "wire/handoff_fields.hpp"

namespace shardbus::wire {
namespace {

constexpr std::uint32_t kStreamItems = 4;  // type, shard, generation, index

template <class Item>
void write_stream(Writer& out, Kind kind, const Item& item, std::uint32_t more) {
  out.envelope(kind, kStreamItems + more);
  write_shard(out, item.shard);
  write_generation(out, item.generation);
  out.uint(item.index);
}

template <class Item>
Cursor read_stream(const Envelope& in, Item& out, std::uint32_t more) {
  Cursor from = body_of(in, kStreamItems + more);
  read_shard(from, out.shard);
  out.generation = read_generation(from);
  out.index = from.uint();
  return from;
}

}  // namespace

void encode(std::string& out, const StreamStart& item) {
  Writer to(out);
  to.envelope(Kind::stream_start, 5);
  write_shard(to, item.shard);
  write_generation(to, item.generation);
  to.uint(item.shard_count);
  to.array(item.marks.size());
  for (const StreamMark& mark : item.marks) {
    to.array(2);
    to.uint(mark.sender);
    write_generation(to, mark.generation);
  }
}

Errc decode(const Envelope& in, StreamStart& out) {
  Cursor from = body_of(in, 5);
  read_shard(from, out.shard);
  out.generation = read_generation(from);
  out.shard_count = read_shard_count(from);
  read_list(from, kShardCountMax, out.marks, [&](StreamMark& mark) {
    read_array(from, 2, [&] {
      mark.sender = from.uint();
      mark.generation = read_generation(from);
    });
  });
  check_shard(from, out.shard.shard, out.shard_count);
  return from.error();
}

void encode(std::string& out, const StreamState& item) {
  Writer to(out);
  write_stream(to, Kind::stream_state, item, 2);
  to.bin(item.id);
  to.bin(item.state);
}

Errc decode(const Envelope& in, StreamState& out) {
  Cursor from = read_stream(in, out, 2);
  out.id = from.bytes(kEntityIdBytesMax);
  out.state = from.bytes(kPayloadBytesMax);
  return from.error();
}

void encode(std::string& out, const StreamMessage& item) {
  Writer to(out);
  write_stream(to, Kind::stream_message, item, 3);
  to.uint(item.sender);
  to.bin(item.envelope);
  write_generation(to, item.passed);
}

Errc decode(const Envelope& in, StreamMessage& out) {
  Cursor from = read_stream(in, out, 3);
  out.sender = from.uint();
  out.envelope = from.bytes(kPeerFrameBytesMax);
  out.passed = read_generation(from);
  return from.error();
}

void encode(std::string& out, const StreamFence& item) {
  Writer to(out);
  write_stream(to, Kind::stream_fence, item, 3);
  write_key(to, item.origin);
  to.array(kFenceItems);
  write_fence(to, item.fence);
  write_generation(to, item.passed);
}

Errc decode(const Envelope& in, StreamFence& out) {
  Cursor from = read_stream(in, out, 3);
  out.origin = read_key(from);
  read_array(from, kFenceItems, [&] { read_fence(from, out.fence); });
  out.passed = read_generation(from);
  return from.error();
}

void encode(std::string& out, const StreamEnd& item, Kind kind) {
  Writer to(out);
  write_stream(to, kind, item, 1);
  write_key(to, item.node);
}

Errc decode(const Envelope& in, StreamEnd& out) {
  Cursor from = read_stream(in, out, 1);
  out.node = read_key(from);
  return from.error();
}

}  // namespace shardbus::wire
