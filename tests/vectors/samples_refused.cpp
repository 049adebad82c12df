// What a receiver has to refuse, and as what.
#include <functional>

#include "support/wire_recode.hpp"
#include "vectors/sample_values.hpp"
#include "vectors/samples.hpp"
#include "wire/writer.hpp"

namespace shardbus::test {
namespace {

using wire::Kind;
using wire::Writer;

class Refused {
 public:
  void file(std::string_view name) { file_ = name; }
  void add(std::string name, std::string bytes, Errc error = Errc::malformed) {
    all_.push_back({file_, std::move(name), std::move(bytes), error});
  }
  void add_hex(std::string name, std::string_view text, Errc error = Errc::malformed) {
    add(std::move(name), unhex(text), error);
  }
  // An envelope of `kind` whose body `write` gives.
  void add_body(std::string name, Kind kind, std::size_t items,
                const std::function<void(Writer&)>& write, Errc error = Errc::malformed) {
    std::string bytes;
    Writer out(bytes);
    out.envelope(kind, items);
    write(out);
    add(std::move(name), std::move(bytes), error);
  }
  std::vector<RefusedSample> take() { return std::move(all_); }

 private:
  std::vector<RefusedSample> all_;
  std::string_view file_;
};

void add_broken_msgpack(Refused& to) {
  to.file("msgpack");
  to.add_hex("c1 is no msgpack", "c1");
  to.add_hex("nil", "c0");
  to.add_hex("an integer", "07");
  to.add_hex("a map", "810100");
  to.add_hex("an empty array", "90");
  to.add_hex("only a kind", "910f");
  to.add_hex("no correlation", "920f00");
  to.add_hex("array of 4 Gi elements", "ddffffffff0f00c0");
  to.add_hex("map of 4 Gi pairs in the headers", "9c0100c0a174a16da178c0c00000dfffffffff");
  to.add_hex("str of 4 GiB", "9c0100c0dbffffffff");
  to.add_hex("bin of 4 GiB", "9c0100c0a174c6ffffffff");
  to.add_hex("ext of 4 GiB", "940f00c0c9ffffffff01");
  std::string cut;
  wire::encode(cut, sample_ask());
  for (const std::size_t size : {1, 3, 5, 12, 20, 30}) {
    to.add("ask cut after " + std::to_string(size) + " bytes", cut.substr(0, size));
  }
  to.add("depth of 100", std::string(100, '\x91'));
  to.add("depth of 33 in an element that nobody reads",
         unhex("940f00c0") + std::string(32, '\x91') + '\x00');
}

void add_prefix(Refused& to) {
  to.file("prefix");
  to.add_hex("kind is negative", "93ff00c0");
  to.add_hex("kind is a string", "93a17400c0");
  to.add_hex("kind has a fraction", "93cb3ff800000000000000c0");
  to.add_hex("kind is not a number", "93cb7ff800000000000000c0");
  to.add_hex("kind is 2^53", "93cf002000000000000000c0");
  to.add_hex("flags over 32 bits", "930fcf0000000100000000c0");
  to.add_hex("correlation is a bool", "930f00c3");
  to.add_hex("correlation is a float", "930f00cb3ff0000000000000");
  to.add_hex("correlation is a map", "930f0080");
  to.add_hex("port of one element", "930f009107");
  to.add_hex("port of nobody",
             "930f009200"
             "07");
  to.add("correlation of 41 bytes", unhex("930f00c427") + std::string(39, 'x'), Errc::too_large);
  to.add_hex("kind 0", "930000c0", Errc::unknown_kind);
  to.add_hex("kind 5", "930500c0", Errc::unknown_kind);
  to.add_hex("kind 255 with a body",
             "95ccff00"
             "07a17881a17801",
             Errc::unknown_kind);
  to.add_hex("kind 257, whose last byte is tell's", "93cd010100c0", Errc::unknown_kind);
  to.add_hex("kind 2^53-1", "93cf001fffffffffffff00c0", Errc::unknown_kind);
}

// A tell with one thing changed.
void add_tell(Refused& to, std::string name, const std::function<void(wire::Message&)>& change,
              Errc error) {
  wire::Message message = sample_tell();
  change(message);
  std::string bytes;
  wire::encode(bytes, message);
  to.add(std::move(name), std::move(bytes), error);
}

void add_message_limits(Refused& to) {
  static const std::string text(10000, 'x');
  static const std::string headers = "\x81\xa1h\xda\x20\x00" + text.substr(0, 8192);
  const auto xs = [](std::size_t size) { return std::string_view(text).substr(0, size); };
  add_tell(
      to, "type of 65 bytes", [&](auto& m) { m.type = xs(65); }, Errc::too_large);
  add_tell(
      to, "id of 257 bytes", [&](auto& m) { m.id = xs(257); }, Errc::too_large);
  add_tell(
      to, "method of 129 bytes", [&](auto& m) { m.method = xs(129); }, Errc::too_large);
  add_tell(
      to, "more than a day left", [](auto& m) { m.time_left_ms = 86'400'001; }, Errc::too_large);
  add_tell(
      to, "type is empty", [](auto& m) { m.type = {}; }, Errc::malformed);
  add_tell(
      to, "type is not UTF-8", [](auto& m) { m.type = "\xc3("; }, Errc::malformed);
  add_tell(
      to, "method is a surrogate", [](auto& m) { m.method = "\xed\xa0\x80"; }, Errc::malformed);
}

void add_messages(Refused& to) {
  to.file("messages");
  add_message_limits(to);
  // 9c 01 00 c0 a1"t" a1"m" a1"x", then generation ...
  to.add_hex("no method", "950100c0a174a16d");
  to.add_hex("type is an integer", "960100c001a16da178");
  to.add_hex("id is nil", "960100c0a174c0a178");
  to.add_hex("generation of two elements", "970100c0a174a16da178920102");
  to.add_hex("generation of term 0", "970100c0a174a16da17893000102");
  to.add_hex("generation is an integer", "970100c0a174a16da17801");
  to.add_hex("time left is negative", "990100c0a174a16da178c0c0d0ff");
  to.add_hex("time left is nil", "990100c0a174a16da178c0c0c0");
  to.add_hex("256 hops", "9a0100c0a174a16da178c0c000cd0100");
  to.add_hex("headers are an array", "9b0100c0a174a16da178c0c0000090");
  to.add_hex("payload is an array", "9c0100c0a174a16da178c0c00000c090");
  to.add_hex("payload is an integer", "9c0100c0a174a16da178c0c00000c001");
  to.add("headers of 8198 bytes",
         unhex("9c0100c0a174a16da178c0c0000081a168da2000") + std::string(8192, 'x') + '\xc0',
         Errc::too_large);
  to.add_hex("reply is a map", "9403000780");
  to.add_hex("error without a code", "93040007");
  to.add_hex("error of code 0", "9404000700");
  to.add_hex("error code over 16 bits", "94040007ce00010000");
  to.add_hex("error text is not UTF-8", "9504000701a1ff");
}

void add_hello(Refused& to, std::string name, const std::function<void(Writer&)>& fields,
               std::size_t count, Errc error = Errc::malformed) {
  to.add_body(
      std::move(name), Kind::hello, 1,
      [&](Writer& out) {
        out.map(count);
        fields(out);
      },
      error);
}

void role_and_version(Writer& out, std::string_view role) {
  out.str("role");
  out.str(role);
  out.str("version");
  out.array(2);
  out.uint(1);
  out.uint(0);
}

void add_types(Writer& out, std::uint64_t shard_count) {
  role_and_version(out, "worker");
  out.str("types");
  out.array(1);
  out.array(2);
  out.str("cart");
  out.uint(shard_count);
}

void add_node(Writer& out, const NodeInfo& node) {
  role_and_version(out, "node");
  out.str("node");
  out.array(6);
  out.str(node.name);
  out.uint(node.incarnation);
  out.uint(node.key.value);
  out.str(node.front);
  out.str(node.peer);
  out.str(node.gossip);
}

void add_session(Refused& to) {
  to.file("session");
  to.add_hex("hello: no body", "930a00c0");
  to.add_hex("hello: body is an array", "940a00c090");
  add_hello(
      to, "hello: empty", [](Writer&) {}, 0);
  add_hello(
      to, "hello: role of nobody", [](Writer& o) { role_and_version(o, "king"); }, 2);
  add_hello(
      to, "hello: node without its description", [](Writer& o) { role_and_version(o, "node"); }, 2);
  add_hello(
      to, "hello: shard_count 0", [](Writer& o) { add_types(o, 0); }, 3);
  add_hello(
      to, "hello: shard_count 65537", [](Writer& o) { add_types(o, 65537); }, 3, Errc::too_large);
  NodeInfo node = node_a();
  node.key.value ^= 1;
  add_hello(
      to, "hello: key of another node", [&](Writer& o) { add_node(o, node); }, 3);
  node = sample_node("node a", 1, 7400);
  add_hello(
      to, "hello: node name with a space", [&](Writer& o) { add_node(o, node); }, 3);
  node = sample_node(std::string(65, 'n'), 1, 7400);
  add_hello(
      to, "hello: node name of 65 bytes", [&](Writer& o) { add_node(o, node); }, 3,
      Errc::too_large);
  add_hello(
      to, "hello: max_batch 0",
      [](Writer& o) {
        role_and_version(o, "client");
        o.str("max_batch");
        o.uint(0);
      },
      3);
  to.add_body("welcome: empty", Kind::welcome, 1, [](Writer& o) { o.map(0); });
  to.add_body("reject: no code", Kind::reject, 1, [](Writer& o) { o.map(0); });
  to.add_body("here: no node", Kind::here, 1, [](Writer& o) { o.map(0); });
  to.add_hex("credit: one element", "941100c001");
  to.add_hex("link: sequence is a string", "951200c001a131");
}

void add_table(Refused& to, std::string name, std::uint64_t shard_count, std::uint64_t owner) {
  to.add_body(std::move(name), Kind::table, 4, [&](Writer& out) {
    out.array(0);
    out.raw("\x93\x01\x01\x01");
    out.raw("\x91\x09");
    out.array(1);
    out.array(3);
    out.str("cart");
    out.uint(shard_count);
    out.raw("\x91\x94");
    out.uint(owner);
    out.raw(std::string_view("\x01\x00\x01", 3));
  });
}

void add_shard(Writer& out, std::uint64_t shard) {
  out.str("cart");
  out.uint(shard);
}

void add_rest(Refused& to) {
  to.file("others");
  add_table(to, "table: index behind the keys", 1, 1);
  add_table(to, "table: fewer entries than shards", 2, 0);
  to.add_body("release: shard 256 of 256", Kind::release, 3, [](Writer& out) {
    add_shard(out, 256);
    out.uint(256);
  });
  to.add_body("moved: shard 65536", Kind::moved, 6, [](Writer& out) {
    add_shard(out, 65536);
    out.raw(std::string_view("\xc0\xc0\xa0\x00", 4));
  });
  to.add_body("stream_start: shard 9 of 9", Kind::stream_start, 5, [](Writer& out) {
    add_shard(out, 9);
    out.raw("\xc0\x09\x90");
  });
  to.add_body("answer: kind 0", Kind::answer, 5, [](Writer& out) {
    add_shard(out, 1);
    out.raw(std::string_view("\xc0\x00\xc0", 3));
  });
  to.add_body("answer: kind 3, reserved", Kind::answer, 5, [](Writer& out) {
    add_shard(out, 1);
    out.raw("\xc0\x03\xc0");
  });
  to.add_body("answer: kind 4", Kind::answer, 5, [](Writer& out) {
    add_shard(out, 1);
    out.raw("\xc0\x04\xc0");
  });
  to.add_body("begin: no target", Kind::begin, 3, [](Writer& out) {
    add_shard(out, 1);
    out.nil();
  });
  to.add_body("digest: too short", Kind::digest, 1, [](Writer& out) { out.str("shop"); });
  to.add_body(
      "restore: id of 257 bytes", Kind::restore, 3,
      [](Writer& out) {
        out.str("cart");
        out.bin(std::string(257, 'x'));
        out.bin("");
      },
      Errc::too_large);
  to.add_body(
      "offer: 257 types", Kind::offer, 1,
      [](Writer& out) {
        out.array(257);
        for (int i = 0; i < 257; ++i) out.raw("\x92\xa1t\x01");
      },
      Errc::too_large);
}

}  // namespace

std::vector<RefusedSample> refused_samples() {
  Refused all;
  add_broken_msgpack(all);
  add_prefix(all);
  add_messages(all);
  add_session(all);
  add_rest(all);
  return all.take();
}

}  // namespace shardbus::test
