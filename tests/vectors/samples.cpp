#include "vectors/samples.hpp"

#include "support/wire_recode.hpp"
#include "vectors/sample_values.hpp"
#include "wire/writer.hpp"

namespace shardbus::test {
namespace {

using wire::Kind;
using wire::Writer;

template <class T>
auto encoded(T value) {
  return [value](std::string& out) { wire::encode(out, value); };
}

void add_ask_spellings(Samples& samples) {
  // 9c 02 00 07 a7"counter" c4 07"cart-42" a3"get" c0 c0 cd1388 00 c0 c4 01 c0
  const std::string type = hex("counter"), id = hex("cart-42"), method = hex("get");
  samples.spelled(
      "ask: id as str, type and method as bin",
      unhex("9c020007c407" + type + "a7" + id + "c403" + method + "c0c0cd138800c0c401c0"));
  samples.spelled("ask: integers as int, integral float and over-long uint",
                  unhex("9ccc02d00007a7" + type + "c407" + id + "a3" + method +
                        "c0c0cb40b3880000000000d30000000000000000c0c401c0"));
  samples.spelled("ask: two more elements than this version knows",
                  unhex("9e020007a7" + type + "c407" + id + "a3" + method +
                        "c0c0cd138800c0c401c081a17801a3" + hex("new")));
}

void add_tells(Samples& samples) {
  samples.add("tell", encoded(sample_tell()));
  wire::Message bare = sample_tell();
  bare.payload = {};
  samples.add("tell: no payload", encoded(bare));
  const std::string short_form =
      unhex("960100c0a7" + hex("counter") + "c407" + hex("cart-42") + "a3" + hex("add"));
  samples.spelled("tell: ends after method", short_form);
  wire::Message headers = sample_tell();
  headers.headers = "\x81\xa2op\xa3u-1";
  samples.add("tell: headers", encoded(headers));
}

void add_messages(Samples& samples) {
  samples.file("messages");
  add_tells(samples);
  samples.add("ask", encoded(sample_ask()));
  add_ask_spellings(samples);
  wire::Message routed = sample_ask();
  routed.correlation = {{}, node_a().key, 17};
  routed.generation = sample_generation();
  routed.sender_generation = {Term{2}, node_b().key, 300};
  routed.hops = 1;
  samples.add("ask: between nodes", encoded(routed));
  wire::Message named = sample_ask();
  named.correlation.opaque = "\xa5req-1";
  named.id = "{user-7}/cart";
  samples.add("ask: correlation is a str, id has a tag", encoded(named));
  wire::Message odd = sample_ask();
  const std::string id("\x00\xff\x80", 3);
  odd.correlation.opaque = std::string_view("\xc4\x02\x00\x01", 4);
  odd.id = id;
  odd.method =
      "gr\xc3\xb6\xc3\x9f"
      "er";
  samples.add("ask: correlation and id are any bytes", encoded(odd));
  const std::string long_payload(300, 'x');
  wire::Message large = sample_tell();
  large.payload = long_payload;
  samples.add("tell: payload of 300 bytes", encoded(large));
}

void add_replies(Samples& samples) {
  samples.file("replies");
  wire::Reply reply;
  reply.correlation.opaque = "\x07";
  reply.payload = "\x03";
  samples.add("reply", encoded(reply));
  samples.spelled("reply: payload as str", unhex("94030007a103"));
  reply.payload = {};
  samples.add("reply: no payload", encoded(reply));
  samples.spelled("reply: payload left out", unhex("93030007"));
  samples.spelled("reply: payload nil", unhex("94030007c0"));
  reply.correlation = {{}, node_a().key, 17};
  reply.payload = "\xc0";
  samples.add("reply: to a port", encoded(reply));
  wire::Reply error;
  error.correlation.opaque = "\x07";
  error.code = static_cast<std::uint16_t>(Errc::no_such_method);
  error.text = "gett";
  samples.add("error", encoded(error));
  error.text = {};
  error.code = 999;
  samples.add("error: code of a later version", encoded(error));
  samples.spelled("error: text left out", unhex("94040007cd03e7"));
  error.correlation = {};
  error.code = static_cast<std::uint16_t>(Errc::malformed);
  samples.add("error: nobody to address", encoded(error));
}

void add_hellos(Samples& samples) {
  wire::Hello client;
  client.node.name = "shop";
  client.sender = 4503599627370497;
  samples.add("hello: client", encoded(client));
  std::string bytes;
  Writer by_hand(bytes);
  by_hand.envelope(Kind::hello, 1);
  by_hand.map(5);
  by_hand.str("role");
  by_hand.str("client");
  by_hand.str("version");
  by_hand.array(2);
  by_hand.uint(1);
  by_hand.uint(0);
  by_hand.str("sender");
  by_hand.uint(client.sender);
  by_hand.str("later");
  by_hand.map(1);
  by_hand.str("x");
  by_hand.nil();
  by_hand.str("name");
  by_hand.str("shop");
  samples.spelled("hello: client, by hand, with an unknown key", bytes);
  wire::Hello smart = client;
  smart.wants_table = true;
  smart.max_batch = 1024;
  samples.add("hello: smart client", encoded(smart));
  wire::Hello worker = client;
  worker.role = wire::Role::worker;
  worker.types = {{"cart", 256}, {"user", 64}};
  worker.credit = {256, 1 << 20};
  samples.add("hello: worker", encoded(worker));
  wire::Hello node;
  node.cluster = "shop";
  node.role = wire::Role::node;
  node.node = node_a();
  node.max_batch = 1024;
  node.credit = {16384, 32 << 20};
  samples.add("hello: node", encoded(node));
}

void add_session(Samples& samples) {
  samples.file("session");
  add_hellos(samples);
  wire::Welcome welcome;
  welcome.session = 8446744073709551;
  welcome.node = node_a();
  welcome.cluster = "shop";
  welcome.cluster_id = 1234567890123;
  welcome.credit = {1024, 4 << 20};
  welcome.limits = {wire::kFrameBytesMax, wire::kBatchMax, wire::kEntityIdBytesMax,
                    wire::kPayloadBytesMax};
  welcome.ping_ms = 2000;
  samples.add("welcome", encoded(welcome));
  welcome.worker_lease_ms = 2500;
  samples.add("welcome: worker", encoded(welcome));
  const auto cluster_mismatch = static_cast<std::uint16_t>(Errc::cluster_mismatch);
  samples.add("reject", encoded(wire::Reject{cluster_mismatch, "theirs shop, yours shop2", 0}));
  samples.add("reject: try later",
              encoded(wire::Reject{static_cast<std::uint16_t>(Errc::busy), "", 1500}));
  samples.add("no_session", [](std::string& out) {
    wire::encode_no_session(out, static_cast<std::uint16_t>(Errc::no_session), "greet again");
  });
  for (const auto& [name, kind] : {std::pair{"goodbye", Kind::goodbye},
                                   {"ping", Kind::ping},
                                   {"pong", Kind::pong},
                                   {"who", Kind::who}}) {
    samples.add(name, [k = kind](std::string& out) { wire::encode_empty(out, k); });
  }
  samples.add("credit", encoded(wire::Credit{2048, 8 << 20}));
  samples.add("link", encoded(wire::Link{8446744073709551, 1025}));
  samples.add("here", encoded(wire::Here{"shop", 1234567890123, node_a()}));
}

AllocationTable sample_table() {
  const NodeKey a = node_a().key, b = node_b().key;
  AllocationTable table;
  table.version = {Term{3}, a, 12};
  table.types.push_back(
      {"cart",
       4,
       {{a, sample_generation(1)}, {b, sample_generation(2)}, {}, {kNoNode, {Term{2}, b, 9}}}});
  table.types.push_back({"user", 1, {{b, {Term{1}, b, 1}}}});
  return table;
}

void add_routing(Samples& samples) {
  samples.file("routing");
  const ShardName shard{"cart", ShardId{3}};
  samples.add("moved",
              encoded(wire::Moved{shard, {node_b().key, sample_generation()}, node_b().front, 17}));
  samples.add("moved: to nobody", encoded(wire::Moved{shard, {}, "", 0}));
  samples.add("table", encoded(wire::ClientTable{{node_a(), node_b()}, sample_table()}));
  samples.add("table: empty", encoded(wire::ClientTable{}));
  wire::Fence fence{shard, 21, 4503599627370497, sample_generation(), node_b().key, {}};
  samples.add("fence", encoded(fence));
  fence.reply = {{}, node_a().key, 4};
  samples.add("fence: with the place of its answer", encoded(fence));
  wire::FenceOk answer{shard, 21, 4503599627370497, sample_generation(), node_b().key, false};
  samples.add("fence_ok", encoded(answer));
  answer.lost = true;
  samples.add("path_lost", encoded(answer));
}

void add_workers(Samples& samples) {
  samples.file("workers");
  samples.add("restore", encoded(wire::Restore{"cart", {"cart-42", "\x81\xa1n\x03"}}));
  samples.add("release", encoded(wire::Release{{"cart", ShardId{3}}, 256}));
  samples.add("released",
              encoded(wire::Released{
                  {"cart", ShardId{3}}, {{"cart-42", "\x81\xa1n\x03"}, {"cart-9", ""}}, false}));
  wire::Released nothing{{"cart", ShardId{3}}, {}, false};
  samples.add("released: nothing to save", encoded(nothing));
  samples.spelled("released: more left out", unhex("964800c0a463617274"
                                                   "0390"));
  nothing.more = true;
  samples.add("released: more to come", encoded(nothing));
  std::string tell;
  wire::encode(tell, sample_tell());
  nothing.unbegun = {tell};
  samples.add("released: not begun", encoded(nothing));
  const std::vector<HostedType> types{{"cart", 256}, {"user", 64}};
  samples.add("offer", [&types](std::string& out) { wire::encode_offer(out, types); });
  samples.add("offer: nothing", [](std::string& out) { wire::encode_offer(out, {}); });
  const std::vector<HostedType> placed{{"cart", 256, {"rendezvous", "web", true}}};
  samples.add("offer: placement", [&placed](std::string& out) { wire::encode_offer(out, placed); });
}

}  // namespace

std::vector<ValidSample> valid_samples() {
  std::vector<ValidSample> all;
  Samples samples(all);
  add_messages(samples);
  add_replies(samples);
  add_session(samples);
  add_routing(samples);
  add_handoff_samples(samples);
  add_control_samples(samples, sample_table());
  add_workers(samples);
  return all;
}

}  // namespace shardbus::test
