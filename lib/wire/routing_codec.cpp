// moved, table, fence, fence_ok, path_lost.
#include "wire/codec.hpp"
#include "wire/fields.hpp"
#include "wire/handoff_fields.hpp"

namespace shardbus::wire {

void write_fence(Writer& out, const Fence& fence) {
  write_shard(out, fence.shard);
  out.uint(fence.id);
  out.uint(fence.sender);
  write_generation(out, fence.generation);
  write_key(out, fence.target);
  write_correlation(out, fence.reply);
}

void read_fence(Cursor& in, Fence& out) {
  read_shard(in, out.shard);
  out.id = in.uint();
  out.sender = in.uint();
  out.generation = read_generation(in);
  out.target = read_key(in);
  out.reply = read_correlation(in);
}

void encode(std::string& out, const Moved& moved) {
  Writer to(out);
  to.envelope(Kind::moved, 6);
  write_shard(to, moved.shard);
  write_key(to, moved.entry.owner);
  write_generation(to, moved.entry.generation);
  to.str(moved.front);
  to.uint(moved.slot);
}

Errc decode(const Envelope& in, Moved& out) {
  Cursor from = body_of(in, 6);
  read_shard(from, out.shard);
  out.entry.owner = read_key(from);
  out.entry.generation = read_generation(from);
  read_string(from, kEndpointBytesMax, out.front);
  out.slot = from.uint();
  return from.error();
}

void encode(std::string& out, const ClientTable& table) {
  Writer to(out);
  to.envelope(Kind::table, 4);
  write_nodes(to, table.nodes);
  write_table(to, table.table);
}

Errc decode(const Envelope& in, ClientTable& out) {
  Cursor from = body_of(in, 4);
  read_nodes(from, out.nodes);
  read_table(from, out.table);
  return from.error();
}

void encode(std::string& out, const Fence& fence) {
  Writer to(out);
  to.envelope(Kind::fence, kFenceItems);
  write_fence(to, fence);
}

Errc decode(const Envelope& in, Fence& out) {
  Cursor from = body_of(in, kFenceItems);
  read_fence(from, out);
  return from.error();
}

void encode(std::string& out, const FenceOk& answer) {
  Writer to(out);
  to.envelope(answer.lost ? Kind::path_lost : Kind::fence_ok, 6);
  write_shard(to, answer.shard);
  to.uint(answer.id);
  to.uint(answer.sender);
  write_generation(to, answer.generation);
  write_key(to, answer.node);
}

Errc decode(const Envelope& in, FenceOk& out) {
  Cursor from = body_of(in, 6);
  read_shard(from, out.shard);
  out.id = from.uint();
  out.sender = from.uint();
  out.generation = read_generation(from);
  out.node = read_key(from);
  out.lost = in.kind == Kind::path_lost;
  return from.error();
}

}  // namespace shardbus::wire
