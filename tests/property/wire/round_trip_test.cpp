// decode(encode(x)) == x for every struct.
#include <gtest/gtest.h>

#include "property/wire/generators.hpp"
#include "support/wire_recode.hpp"
#include "wire/writer.hpp"

namespace shardbus::test {
namespace {

using wire::Kind;

template <class T>
void survives(const T& sent) {
  std::string bytes;
  wire::encode(bytes, sent);
  std::string_view rest = bytes;
  wire::Envelope envelope;
  RC_ASSERT(wire::next_envelope(rest, envelope) == Errc::ok);
  RC_ASSERT(rest.empty());
  T got;
  RC_ASSERT(wire::decode(envelope, got) == Errc::ok);
  RC_ASSERT(got == sent);
}

// For structs of views: equal bytes after decoding and encoding again.
template <class Encode>
void recodes(Encode&& encode) {
  std::string bytes, again;
  encode(bytes);
  std::string_view rest = bytes;
  RC_ASSERT(recode(rest, again) == Errc::ok);
  RC_ASSERT(again == bytes);
}

template <class T>
void control_survives(const T& message) {
  std::string bytes;
  wire::encode(bytes, ControlMessage(message));
  std::string_view rest = bytes;
  wire::Envelope envelope;
  RC_ASSERT(wire::next_envelope(rest, envelope) == Errc::ok);
  ControlMessage got;
  RC_ASSERT(wire::decode(envelope, got) == Errc::ok);
  RC_ASSERT(std::holds_alternative<T>(got));
  RC_ASSERT(std::get<T>(got) == message);
}

wire::Correlation any_correlation(std::string& storage) {
  wire::Correlation out;
  wire::Writer writer(storage);
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return out;
    case 1:
      writer.uint(*any_uint());
      break;
    case 2:
      writer.str(any_name(30));
      break;
    case 3:
      writer.bin(any_bytes(38));
      break;
    default:
      return {{}, some_key(), *any_uint()};
  }
  out.opaque = storage;
  return out;
}

RC_GTEST_PROP(RoundTrip, Message, ()) {
  MessageParts parts;
  wire::Message message;
  message.kind = *rc::gen::element(Kind::tell, Kind::ask);
  message.flags = *rc::gen::arbitrary<std::uint32_t>();
  message.correlation = any_correlation(parts.opaque);
  message.type = parts.type = any_name(wire::kTypeBytesMax);
  message.id = parts.id = any_bytes(wire::kEntityIdBytesMax);
  message.method = parts.method = any_name(wire::kMethodBytesMax);
  message.generation = any_generation();
  message.sender_generation = any_generation();
  message.time_left_ms = small<std::uint32_t>(wire::kTimeLeftMsMax);
  message.hops = *rc::gen::arbitrary<std::uint8_t>();
  message.payload = parts.payload = any_bytes(1000);
  std::string bytes;
  wire::encode(bytes, message);
  std::string_view rest = bytes;
  wire::Envelope got;
  RC_ASSERT(wire::next_envelope(rest, got) == Errc::ok);
  RC_ASSERT(rest.empty());
  RC_ASSERT(got.message.type == message.type);
  RC_ASSERT(got.message.id == message.id);
  RC_ASSERT(got.message.method == message.method);
  RC_ASSERT(got.message.generation == message.generation);
  RC_ASSERT(got.message.sender_generation == message.sender_generation);
  RC_ASSERT(got.message.payload == message.payload);
  recodes([&](std::string& out) { wire::encode(out, message); });
}

RC_GTEST_PROP(RoundTrip, Reply, ()) {
  std::string opaque, content = any_bytes(600);
  wire::Reply reply;
  reply.correlation = any_correlation(opaque);
  const std::string text = any_name(1000);
  reply.code = *rc::gen::element<std::uint16_t>(0, 1, 35, 999, 65535);
  (reply.code == 0 ? reply.payload : reply.text) = reply.code == 0 ? content : text;
  recodes([&](std::string& out) { wire::encode(out, reply); });
}

RC_GTEST_PROP(RoundTrip, Hello, ()) {
  wire::Hello hello;
  hello.major = *rc::gen::arbitrary<std::uint16_t>();
  hello.minor = *rc::gen::arbitrary<std::uint16_t>();
  hello.cluster = any_name(64);
  hello.role = *rc::gen::element(wire::Role::node, wire::Role::client, wire::Role::worker);
  if (hello.role == wire::Role::node) {
    hello.node = any_node();
  } else {
    hello.node.name = any_name(64);
  }
  hello.sender = *any_uint();
  hello.types = any_types();
  hello.max_batch = std::max<std::uint32_t>(1, *rc::gen::arbitrary<std::uint32_t>());
  hello.wants_table = *rc::gen::arbitrary<bool>();
  hello.credit = any_credit();
  survives(hello);
}

RC_GTEST_PROP(RoundTrip, SessionAnswers, ()) {
  const auto limit = [] { return std::max<std::uint32_t>(1, small<std::uint32_t>(UINT32_MAX)); };
  survives(wire::Welcome{*any_uint(),
                         any_node(),
                         any_name(64),
                         *any_uint(),
                         any_credit(),
                         {limit(), limit(), limit(), limit()},
                         small<std::uint32_t>(UINT32_MAX)});
  const auto code = std::max<std::uint16_t>(1, *rc::gen::arbitrary<std::uint16_t>());
  const std::string text = any_name(1000);
  survives(wire::Reject{code, text, small<std::uint32_t>(UINT32_MAX)});
  survives(wire::Here{any_name(64), *any_uint(), any_node()});
  survives(any_credit());
  recodes([&](std::string& out) { wire::encode_no_session(out, code, text); });
  const wire::Link link{*any_uint(), *any_uint()};
  recodes([&](std::string& out) { wire::encode(out, link); });
}

RC_GTEST_PROP(RoundTrip, Routing, ()) {
  survives(wire::Moved{any_shard(), {any_key(), any_generation()}, any_name(256), *any_uint()});
  survives(wire::ClientTable{list_of(4, any_node), any_table()});
  survives(wire::FenceOk{any_shard(), *any_uint(), *any_uint(), any_generation(), any_key(),
                         *rc::gen::arbitrary<bool>()});
  std::string opaque;
  const wire::Fence fence{any_shard(),      *any_uint(), *any_uint(),
                          any_generation(), any_key(),   any_correlation(opaque)};
  recodes([&](std::string& out) { wire::encode(out, fence); });
  const wire::StreamFence streamed{any_shard(), any_generation(), *any_uint(), any_key(),
                                   fence,       any_generation()};
  recodes([&](std::string& out) { wire::encode(out, streamed); });
}

RC_GTEST_PROP(RoundTrip, Stream, ()) {
  const std::uint32_t shard_count = any_shard_count();
  const ShardName shard = any_shard(shard_count);
  const Generation generation = any_generation();
  const std::uint64_t index = *any_uint();
  survives(wire::StreamStart{shard, shard_count, generation, list_of(5, [] {
                               return wire::StreamMark{*any_uint(), any_generation()};
                             })});
  const std::string id = any_bytes(256), bytes = any_bytes(500);
  recodes([&](std::string& out) {
    wire::encode(out, wire::StreamState{shard, generation, index, id, bytes});
  });
  recodes([&](std::string& out) {
    wire::encode(out, wire::StreamMessage{shard, generation, index, 5, bytes, any_generation()});
  });
  const wire::StreamEnd end{shard, generation, index, any_key()};
  recodes([&](std::string& out) { wire::encode(out, end, Kind::stream_end); });
  recodes([&](std::string& out) { wire::encode(out, end, Kind::stream_ack); });
}

wire::EntityState any_state() {
  return {any_bytes(256), any_bytes(300)};
}

RC_GTEST_PROP(RoundTrip, Workers, ()) {
  const std::uint32_t shard_count = any_shard_count();
  survives(wire::Restore{any_name(64), any_state()});
  survives(wire::Release{any_shard(shard_count), shard_count});
  survives(wire::Released{any_shard(), list_of(5, any_state), *rc::gen::arbitrary<bool>()});
  const std::vector<HostedType> types = any_types();
  recodes([&](std::string& out) { wire::encode_offer(out, types); });
}

RC_GTEST_PROP(RoundTrip, Commands, ()) {
  const std::uint32_t shard_count = any_shard_count();
  control_survives(BeginHandoff{any_shard(), any_generation(), any_key()});
  control_survives(PrepareHandoff{any_shard(), any_generation(), any_key()});
  control_survives(FreezeShard{any_shard(), any_generation(), any_key()});
  control_survives(
      RehomeShard{any_shard(shard_count), shard_count, any_generation(), any_generation()});
  const auto kind = static_cast<RegionAnswerKind>(*rc::gen::inRange(1, 3));
  control_survives(RegionAnswer{kind, any_shard(), any_generation(), any_key()});
}

RC_GTEST_PROP(RoundTrip, Reports, ()) {
  control_survives(ReportRequest{Term{*any_uint()}, any_key()});
  control_survives(RegionReport{
      Term{*any_uint()}, any_key(), any_key(), list_of(12, [] {
        const std::uint32_t count = any_shard_count();
        const auto state = static_cast<RegionState>(*rc::gen::inRange(0, 6));
        return ReportedShard{any_shard(count), count, state, any_generation(), any_key()};
      })});
}

RC_GTEST_PROP(RoundTrip, Tables, ()) {
  control_survives(JoinRequest{any_name(64), any_node(), any_types(), list_of(5, [] {
                                 return Setting{any_name(64), any_name(64)};
                               })});
  control_survives(JoinRefused{16, any_name(1000)});
  control_survives(TablePull{any_version()});
  AllocationTable table = any_table();
  table.orders = any_orders();
  control_survives(TablePart{table});
  control_survives(DownRequest{any_key()});
  TableDelta delta{
      any_version(), any_version(), list_of(6, [] {
        const std::uint32_t count = any_shard_count();
        const auto cause = static_cast<Cause>(*rc::gen::inRange(0, 10));
        return TableChange{
            any_shard(count), count, {any_key(), any_generation()}, cause, any_name(64)};
      })};
  delta.new_orders = *rc::gen::arbitrary<bool>();
  if (delta.new_orders) delta.orders = any_orders();
  control_survives(delta);
}

RC_GTEST_PROP(RoundTrip, Digest, ()) {
  Digest digest;
  digest.cluster = any_name(64);
  digest.cluster_id = *any_uint();
  digest.from = any_node();
  digest.number = *any_uint();
  digest.vote = {Term{*any_uint()}, any_key(), *any_uint()};
  digest.resigned = Term{*any_uint()};
  digest.set.stamp = {Term{*any_uint()}, any_key(), *any_uint()};
  digest.set.members = list_of(4, [] {
    return Member{any_node(), static_cast<MemberState>(*rc::gen::inRange(0, 6)), *any_uint()};
  });
  digest.set.previous = list_of(4, some_key);
  digest.set.counted = *rc::gen::arbitrary<bool>();
  digest.set.evidence = *rc::gen::arbitrary<bool>();
  digest.unreachable = list_of(4, some_key);
  digest.dead = list_of(4, some_key);
  digest.hosts = any_types();
  digest.table = any_version();
  digest.table_hash = *any_uint();
  digest.load = *any_uint();
  digest.leaving = *rc::gen::arbitrary<bool>();
  digest.traits = any_traits();
  control_survives(digest);
}

}  // namespace
}  // namespace shardbus::test
