// The vectors in files are what the samples say, and the codec agrees with each of them.
// `--rewrite` writes the files anew; read the diff before you commit it: bytes are the protocol.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "support/wire_recode.hpp"
#include "vectors/sample_values.hpp"
#include "vectors/samples.hpp"
#include "vectors/to_json.hpp"

namespace shardbus::test {
namespace {

using Json = nlohmann::ordered_json;

std::filesystem::path folder() {
  return SHARDBUS_VECTORS_DIR;
}

Json valid_json(const ValidSample& sample) {
  std::string_view rest = sample.bytes;
  Json out = {{"name", sample.name}, {"hex", hex(sample.bytes)}, {"envelope", to_json(rest)}};
  if (sample.bytes != sample.canonical) out["canonical_hex"] = hex(sample.canonical);
  return out;
}

Json shard_json(std::string_view id, std::uint32_t shard_count) {
  std::ostringstream hash;
  hash << std::hex << fnv1a64(hash_tag(id));
  return {{"id", {{"bin", hex(id)}}},
          {"shard_count", shard_count},
          {"hash", std::string(16 - hash.str().size(), '0') + hash.str()},
          {"shard", shard_of(id, shard_count).value}};
}

Json shards_json() {
  Json out = Json::array();
  const std::string bytes("\x00\xff\x80", 3);
  for (const std::string_view id :
       {"", "a", "foobar", "cart-42", "{user-7}/cart", "{user-7}/profile", "user-7", "{}", "a{}b",
        "a{b", "{a}{b}", "{{a}}", "}{a}",
        "gr\xc3\xb6\xc3\x9f"
        "er"}) {
    out.push_back(shard_json(id, 256));
  }
  out.push_back(shard_json(bytes, 256));
  for (const std::uint32_t count : {1U, 2U, 7U, 64U, 1000U, 65536U}) {
    out.push_back(shard_json("cart-42", count));
  }
  return out;
}

Json node_keys_json() {
  Json out = Json::array();
  const std::uint64_t start = 1700000000000000;
  for (const auto& [name, incarnation] : {std::pair{"node-a", start},
                                          {"node-a", start + 1},
                                          {"node-b", start + 1},
                                          {"node-c", 5},
                                          {"n", 0},
                                          {"10.0.0.1:7400", kMaxWireInteger}}) {
    out.push_back(
        {{"name", name}, {"incarnation", incarnation}, {"key", node_key(name, incarnation).value}});
  }
  return out;
}

// Path below tests/vectors -> content.
std::map<std::string, Json> all_files() {
  std::map<std::string, Json> files;
  for (const ValidSample& sample : valid_samples()) {
    files["valid/" + std::string(sample.file) + ".json"].push_back(valid_json(sample));
  }
  for (const RefusedSample& sample : refused_samples()) {
    files["refused/" + std::string(sample.file) + ".json"].push_back(
        {{"name", sample.name},
         {"hex", hex(sample.bytes)},
         {"error", error_info(sample.error).name}});
  }
  files["shards.json"] = shards_json();
  files["node_keys.json"] = node_keys_json();
  return files;
}

// One item a line: a change then shows as the lines of the items that it concerns.
std::string print(const Json& items) {
  std::string out = "[\n";
  for (std::size_t i = 0; i < items.size(); ++i) {
    out += "  " + items[i].dump() + (i + 1 < items.size() ? ",\n" : "\n");
  }
  return out + "]\n";
}

TEST(Vectors, FilesAreWhatTheSamplesSay) {
  std::set<std::string> expected;
  for (const auto& [name, content] : all_files()) {
    std::ifstream file(folder() / name);
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), print(content)) << name << " is stale; run this test with --rewrite";
    expected.insert(name);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder())) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = std::filesystem::relative(entry.path(), folder()).string();
    EXPECT_TRUE(expected.contains(name)) << name << " is no longer written by anything";
  }
}

TEST(Vectors, ValidOnesAreDecodedAndEncodedAgain) {
  for (const ValidSample& sample : valid_samples()) {
    std::string_view rest = sample.bytes;
    std::string again;
    EXPECT_EQ(recode(rest, again), Errc::ok) << sample.name;
    EXPECT_EQ(hex(again), hex(sample.canonical)) << sample.name;
    EXPECT_TRUE(rest.empty()) << sample.name;
  }
}

TEST(Vectors, EveryKindHasOne) {
  std::set<wire::Kind> seen;
  for (const ValidSample& sample : valid_samples()) {
    std::string_view rest = sample.bytes;
    wire::Envelope envelope;
    ASSERT_EQ(wire::next_envelope(rest, envelope), Errc::ok) << sample.name;
    seen.insert(envelope.kind);
  }
  for (unsigned kind = 0; kind < 256; ++kind) {
    const std::string bytes =
        std::string("\x93\xcc", 2) + static_cast<char>(kind) + std::string("\x00\xc0", 2);
    std::string_view rest = bytes;
    wire::Envelope envelope;
    const bool known = wire::next_envelope(rest, envelope) != Errc::unknown_kind;
    EXPECT_EQ(known, seen.contains(static_cast<wire::Kind>(kind))) << "kind " << kind;
  }
}

TEST(Vectors, RefusedOnesAreRefusedAsNamed) {
  for (const RefusedSample& sample : refused_samples()) {
    std::string_view rest = sample.bytes;
    std::string again;
    EXPECT_EQ(error_info(recode(rest, again)).name, error_info(sample.error).name) << sample.name;
  }
}

TEST(Vectors, RefusedOnesLeaveTheNextEnvelopeReadable) {
  std::string next;
  wire::encode_empty(next, wire::Kind::ping);
  for (const RefusedSample& sample : refused_samples()) {
    std::string_view rest;
    const std::string bytes = sample.bytes + next;
    rest = bytes;
    wire::Envelope envelope;
    const Errc error = wire::next_envelope(rest, envelope);
    if (error == Errc::malformed) {
      EXPECT_TRUE(rest.empty()) << sample.name;
    } else if (error == Errc::too_large || error == Errc::unknown_kind) {
      EXPECT_EQ(rest, next) << sample.name;
    }
  }
}

void rewrite() {
  for (const auto& [name, content] : all_files()) {
    std::filesystem::create_directories((folder() / name).parent_path());
    std::ofstream(folder() / name) << print(content);
  }
}

}  // namespace
}  // namespace shardbus::test

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--rewrite") {
    shardbus::test::rewrite();
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
