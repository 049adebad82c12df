// Samples of what only nodes say to each other.
#include "vectors/sample_values.hpp"
#include "vectors/samples.hpp"

namespace shardbus::test {
namespace {

using wire::Kind;

const ShardName kShard{"cart", ShardId{3}};

template <class T>
auto encoded(T value) {
  return [value](std::string& out) { wire::encode(out, value); };
}

auto control(ControlMessage value) {
  return encoded(std::move(value));
}

Digest sample_digest() {
  const NodeInfo a = node_a(), b = node_b();
  Digest digest;
  digest.cluster = "shop";
  digest.cluster_id = 1234567890123;
  digest.from = a;
  digest.number = 77;
  digest.vote = {Term{3}, a.key, 76};
  digest.resigned = Term{1};
  digest.set = {{Term{3}, a.key, 2},
                {{a, MemberState::up, 1}, {b, MemberState::joining, 2}},
                {a.key},
                false,
                true};
  digest.unreachable = {b.key};
  digest.dead = {node_key("node-c", 5)};
  digest.hosts = {{"cart", 256}, {"counter", 16}};
  digest.table = {Term{3}, a.key, 12};
  digest.table_hash = 987654321;
  digest.load = 128;
  digest.leaving = true;
  return digest;
}

void add_commands(Samples& samples) {
  const NodeKey a = node_a().key, b = node_b().key;
  samples.add("begin", control(BeginHandoff{kShard, sample_generation(6), b}));
  samples.add("prepare", control(PrepareHandoff{kShard, sample_generation(6), a}));
  samples.add("freeze", control(FreezeShard{kShard, sample_generation(6), a}));
  samples.add("rehome",
              control(RehomeShard{kShard, 256, sample_generation(7), sample_generation(6)}));
  for (const auto& [name, kind] : {std::pair{"answer: owned", RegionAnswerKind::owned},
                                   {"answer: frozen", RegionAnswerKind::frozen}}) {
    samples.add(name, control(RegionAnswer{kind, kShard, sample_generation(6), b}));
  }
}

void add_reports(Samples& samples) {
  const NodeKey a = node_a().key, b = node_b().key;
  samples.add("report_request", control(ReportRequest{Term{4}, a}));
  RegionReport report{Term{4}, a, b, {}};
  report.shards = {
      {{"cart", ShardId{0}}, 256, RegionState::owner, sample_generation(1), kNoNode},
      {{"cart", ShardId{3}}, 256, RegionState::sending, sample_generation(6), a},
      {{"cart", ShardId{4}}, 256, RegionState::forward, sample_generation(7), a},
      {{"cart", ShardId{5}}, 256, RegionState::incoming, sample_generation(8), a},
      {{"user", ShardId{1}}, 64, RegionState::frozen, {Term{2}, b, 1}, kNoNode},
  };
  samples.add("report", control(report));
  samples.add("report: nothing to report", control(RegionReport{Term{4}, a, b, {}}));
}

}  // namespace

void add_handoff_samples(Samples& samples) {
  const Generation generation = sample_generation(6);
  samples.file("handoff");
  samples.add("stream_start",
              encoded(wire::StreamStart{
                  kShard, 256, generation, {{node_a().key.value, sample_generation()}, {99, {}}}}));
  samples.add("stream_state",
              encoded(wire::StreamState{kShard, generation, 1, "cart-42", "\x81\xa1n\x03"}));
  std::string inner;
  wire::encode(inner, sample_tell());
  samples.add("stream_message", [&](std::string& out) {
    wire::encode(out, wire::StreamMessage{kShard, generation, 2, 99, inner, {}});
  });
  const wire::Fence fence{kShard, 21, 99, generation, node_b().key, {}};
  samples.add("stream_fence",
              encoded(wire::StreamFence{kShard, generation, 3, node_a().key, fence, generation}));
  const wire::StreamEnd end{kShard, generation, 4, kNoNode};
  samples.add("stream_end", [&](std::string& out) { wire::encode(out, end, Kind::stream_end); });
  const wire::StreamEnd ack{kShard, generation, 4, node_b().key};
  samples.add("stream_ack", [&](std::string& out) { wire::encode(out, ack, Kind::stream_ack); });
}

void add_control_samples(Samples& samples, const AllocationTable& table) {
  const NodeKey a = node_a().key, b = node_b().key;
  samples.file("control");
  add_commands(samples);
  add_reports(samples);
  samples.add("join", control(JoinRequest{
                          "shop", node_b(), {{"cart", 256}}, {{"downing", "keep-majority"}}}));
  samples.add("join_refused", control(JoinRefused{static_cast<std::uint16_t>(Errc::config_mismatch),
                                                  "type cart: 256 shards here, 64 there"}));
  samples.add("table_pull", control(TablePull{{Term{3}, a, 11}}));
  samples.add("table_pull: nothing yet", control(TablePull{}));
  samples.add("table_part", control(TablePart{table}));
  AllocationTable ordered = table;
  ordered.orders = {{"a"}, {"b"}, true, {{kShard, "c"}}};
  samples.add("table_part: orders", control(TablePart{ordered}));
  samples.add("down", control(DownRequest{b}));
  samples.add("digest", control(sample_digest()));
  Digest alone;
  alone.cluster = "shop";
  alone.from = node_a();
  samples.add("digest: alone", control(alone));
  alone.hosts = {{"cart", 256, {"weighted", "", false}}};
  alone.traits = {"north", {"batch", "web"}, 4, "1.2.3"};
  samples.add("digest: traits", control(alone));
  TableDelta delta{{Term{3}, a, 12}, {Term{3}, a, 13}, {}};
  delta.changes = {{kShard, 256, {b, sample_generation(7)}}, {{"user", ShardId{0}}, 64, {}}};
  samples.add("table_delta", control(delta));
  delta.changes.front().cause = Cause::ordered;
  delta.changes.front().actor = "alice";
  delta.new_orders = true;
  delta.orders = ordered.orders;
  samples.add("table_delta: orders", control(delta));
}

}  // namespace shardbus::test
