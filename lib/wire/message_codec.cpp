// tell, ask, reply, error: the path that every message takes, so no allocation but for `out`.
#include <cassert>
#include <limits>

#include "wire/codec.hpp"
#include "wire/cursor.hpp"
#include "wire/fields.hpp"
#include "wire/text.hpp"
#include "wire/writer.hpp"

namespace shardbus::wire {
namespace {

constexpr std::uint32_t kPrefixItems = 3;       // kind, flags, correlation
constexpr std::uint32_t kMessageItems = 9;      // type .. payload
constexpr std::uint32_t kMessageItemsMin = 3;   // type, id, method
constexpr std::size_t kSmallHeadBytesMax = 16;  // envelope head, kind and flags

constexpr bool is_known(std::uint64_t kind) {
  if (kind > std::numeric_limits<std::uint8_t>::max()) return false;  // the cast would cut it
  switch (static_cast<Kind>(kind)) {
    case Kind::tell:
    case Kind::ask:
    case Kind::reply:
    case Kind::error:
    case Kind::hello:
    case Kind::welcome:
    case Kind::reject:
    case Kind::no_session:
    case Kind::goodbye:
    case Kind::ping:
    case Kind::pong:
    case Kind::credit:
    case Kind::link:
    case Kind::who:
    case Kind::here:
    case Kind::moved:
    case Kind::table:
    case Kind::fence:
    case Kind::fence_ok:
    case Kind::path_lost:
    case Kind::stream_start:
    case Kind::stream_state:
    case Kind::stream_message:
    case Kind::stream_fence:
    case Kind::stream_end:
    case Kind::stream_ack:
    case Kind::begin:
    case Kind::prepare:
    case Kind::freeze:
    case Kind::rehome:
    case Kind::answer:
    case Kind::report_request:
    case Kind::report:
    case Kind::join:
    case Kind::join_refused:
    case Kind::table_pull:
    case Kind::table_part:
    case Kind::down:
    case Kind::digest:
    case Kind::table_delta:
    case Kind::restore:
    case Kind::release:
    case Kind::released:
    case Kind::offer:
      return true;
  }
  return false;
}

std::string_view read_headers(Cursor& in) {
  if (in.remaining() == 0 || in.take_nil()) return {};
  const auto head = static_cast<unsigned char>(*in.at());
  if ((head & 0xf0) != 0x80 && head != 0xde && head != 0xdf) {
    in.fail();
    return {};
  }
  const std::string_view headers = in.raw();
  if (headers.size() <= kHeadersBytesMax) return headers;
  in.note_too_large();
  return {};
}

// Elements after `method`. What a short array leaves out has its default.
void read_message_rest(Cursor& in, std::uint32_t items, Message& out) {
  out.generation = items > 3 ? read_generation(in) : Generation{};
  out.sender_generation = items > 4 ? read_generation(in) : Generation{};
  out.time_left_ms =
      items > 5 ? static_cast<std::uint32_t>(in.limited(kTimeLeftMsMax)) : std::uint32_t{0};
  out.hops = items > 6 ? in.narrow<std::uint8_t>() : std::uint8_t{0};
  out.headers = items > 7 ? read_headers(in) : std::string_view{};
  out.payload = items > 8 && !in.take_nil() ? in.bytes(kPayloadBytesMax) : std::string_view{};
}

void read_message(Cursor& in, std::uint32_t items, std::uint32_t flags, Envelope& out) {
  if (items < kMessageItemsMin) return in.fail();
  Message& message = out.message;
  message.kind = out.kind;
  message.flags = flags;
  message.correlation = out.correlation;
  message.type = in.text(kTypeBytesMax);
  if (in.ok() && message.type.empty()) in.fail();
  message.id = in.bytes(kEntityIdBytesMax);
  message.method = in.text(kMethodBytesMax);
  read_message_rest(in, items, message);
  if (items > kMessageItems) in.skip(items - kMessageItems);
}

void read_reply(Cursor& in, std::uint32_t items, Envelope& out) {
  Reply& reply = out.reply;
  reply.correlation = out.correlation;
  reply.code = 0;
  reply.text = {};
  reply.payload = {};
  std::uint32_t taken = 0;
  if (out.kind == Kind::error) {
    if (items == 0) return in.fail();
    reply.code = read_code(in);
    if (items > 1) reply.text = in.text(kTextBytesMax);
    taken = 2;
  } else {
    if (items > 0 && !in.take_nil()) reply.payload = in.bytes(kPayloadBytesMax);
    taken = 1;
  }
  if (items > taken) in.skip(items - taken);
}

// Gives `out` room for `head` more bytes that the caller writes, and `tail` that it appends.
char* open_room(std::string& out, std::size_t head, std::size_t tail) {
  const std::size_t before = out.size();
  if (out.capacity() - before < head + tail) out.reserve(before + head + tail);
  out.resize(before + head);
  return out.data() + before;
}

void close_room(std::string& out, const char* end) {
  out.resize(static_cast<std::size_t>(end - out.data()));
}

}  // namespace

Errc next_envelope(std::string_view& rest, Envelope& out) noexcept {
  Cursor in(rest);
  const std::uint32_t count = in.array();
  const std::uint64_t kind = in.uint();
  const auto flags = in.narrow<std::uint32_t>();
  out.correlation = read_correlation(in);
  if (count < kPrefixItems) in.fail();
  if (in.stopped()) out.correlation = {};
  const std::uint32_t items = count - kPrefixItems;
  const char* body = in.at();
  const bool known = is_known(kind);
  out.kind = static_cast<Kind>(known ? kind : 0);
  if (!in.stopped()) {
    if (kind == static_cast<std::uint64_t>(Kind::tell) ||
        kind == static_cast<std::uint64_t>(Kind::ask)) {
      read_message(in, items, flags, out);
    } else if (kind == static_cast<std::uint64_t>(Kind::reply) ||
               kind == static_cast<std::uint64_t>(Kind::error)) {
      read_reply(in, items, out);
    } else {
      in.skip(items);
    }
  }
  if (in.stopped()) {
    rest = {};
    return Errc::malformed;
  }
  const auto size = static_cast<std::size_t>(in.at() - rest.data());
  out.raw = rest.substr(0, size);
  out.body = {body, static_cast<std::size_t>(in.at() - body)};
  out.body_items = items;
  rest.remove_prefix(size);
  return known || !in.ok() ? in.error() : Errc::unknown_kind;
}

Envelope own_envelope(std::string_view envelope) noexcept {
  Envelope out;
  const Errc readable = next_envelope(envelope, out);
  assert(readable == Errc::ok && envelope.empty());
  (void)readable;
  return out;
}

void encode(std::string& out, const Message& message) {
  const std::size_t head_max = kSmallHeadBytesMax + correlation_bytes_max(message.correlation) +
                               message.type.size() + message.id.size() + message.method.size() +
                               2 * kGenerationBytesMax + message.headers.size() +
                               4 * kHeadBytesMax + 2 * kUintBytesMax + 1;
  char* at = open_room(out, head_max, message.payload.size());
  at = put_array_head(at, kPrefixItems + kMessageItems);
  at = put_uint(at, static_cast<std::uint64_t>(message.kind));
  at = put_uint(at, message.flags);
  at = put_correlation(at, message.correlation);
  at = put_raw(put_str_head(at, message.type.size()), message.type);
  at = put_raw(put_bin_head(at, message.id.size()), message.id);
  at = put_raw(put_str_head(at, message.method.size()), message.method);
  at = put_generation(at, message.generation);
  at = put_generation(at, message.sender_generation);
  at = put_uint(at, message.time_left_ms);
  at = put_uint(at, message.hops);
  at = message.headers.empty() ? put_nil(at) : put_raw(at, message.headers);
  at = put_bin_head(at, message.payload.size());
  close_room(out, at);
  out.append(message.payload);
}

void encode(std::string& out, const Reply& reply) {
  std::string scratch;
  const bool failed = reply.code != 0;
  const std::string_view content = failed ? clean_text(reply.text, scratch) : reply.payload;
  const std::size_t head_max =
      kSmallHeadBytesMax + correlation_bytes_max(reply.correlation) + kUintBytesMax + kHeadBytesMax;
  char* at = open_room(out, head_max, content.size());
  at = put_array_head(at, kPrefixItems + (failed ? 2 : 1));
  at = put_uint(at, static_cast<std::uint64_t>(failed ? Kind::error : Kind::reply));
  at = put_uint(at, 0);
  at = put_correlation(at, reply.correlation);
  if (failed) at = put_uint(at, reply.code);
  at = failed ? put_str_head(at, content.size()) : put_bin_head(at, content.size());
  close_room(out, at);
  out.append(content);
}

}  // namespace shardbus::wire
