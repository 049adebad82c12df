#include "wire/codec.hpp"

#include <gtest/gtest.h>

#include "support/wire_recode.hpp"
#include "vectors/sample_values.hpp"

namespace shardbus::wire {
namespace {

using test::sample_ask;
using test::sample_tell;
using test::unhex;

Envelope first(std::string_view bytes) {
  Envelope envelope;
  EXPECT_EQ(next_envelope(bytes, envelope), Errc::ok);
  return envelope;
}

TEST(Codec, ViewsPointIntoTheFrame) {
  std::string bytes;
  encode(bytes, sample_ask());
  const Envelope envelope = first(bytes);
  const auto inside = [&](std::string_view view) {
    return view.data() >= bytes.data() && view.data() + view.size() <= bytes.data() + bytes.size();
  };
  const Message& message = envelope.message;
  EXPECT_TRUE(inside(message.type) && inside(message.id) && inside(message.method));
  EXPECT_TRUE(inside(message.payload) && inside(message.correlation.opaque));
  EXPECT_EQ(envelope.raw, bytes);
  EXPECT_EQ(envelope.body_items, 9U);
}

TEST(Codec, ReadsEveryFieldOfAnAsk) {
  Message sent = sample_ask();
  sent.flags = 3;
  sent.correlation = {{}, NodeKey{99}, 12};
  sent.generation = {Term{1}, NodeKey{2}, 3};
  sent.sender_generation = {Term{4}, NodeKey{5}, 6};
  sent.hops = 2;
  sent.headers = "\x81\xa1k\xa1v";
  std::string bytes;
  encode(bytes, sent);
  const Message got = first(bytes).message;
  EXPECT_EQ(got.kind, Kind::ask);
  EXPECT_EQ(got.flags, 3U);
  EXPECT_TRUE(got.correlation.is_port());
  EXPECT_EQ(got.correlation.node, NodeKey{99});
  EXPECT_EQ(got.correlation.slot, 12U);
  EXPECT_EQ(got.type, "counter");
  EXPECT_EQ(got.id, "cart-42");
  EXPECT_EQ(got.method, "get");
  EXPECT_EQ(got.generation, sent.generation);
  EXPECT_EQ(got.sender_generation, sent.sender_generation);
  EXPECT_EQ(got.time_left_ms, 5000U);
  EXPECT_EQ(got.hops, 2);
  EXPECT_EQ(got.headers, sent.headers);
  EXPECT_EQ(got.payload, "\xc0");
}

TEST(Codec, AppendsBehindWhatIsThere) {
  std::string bytes = "before";
  encode(bytes, sample_tell());
  encode(bytes, Reply{{"\x07", {}, 0}, 0, {}, "\x03"});
  EXPECT_EQ(bytes.substr(0, 6), "before");
  std::string_view rest = std::string_view(bytes).substr(6);
  Envelope envelope;
  EXPECT_EQ(next_envelope(rest, envelope), Errc::ok);
  EXPECT_EQ(envelope.message.payload, sample_tell().payload);
  EXPECT_EQ(next_envelope(rest, envelope), Errc::ok);
  EXPECT_EQ(envelope.reply.payload, "\x03");
  EXPECT_TRUE(rest.empty());
}

TEST(Codec, LeavesNothingOfTheEnvelopeBefore) {
  std::string bytes;
  Message full = sample_ask();
  full.headers = "\x80";
  full.generation = {Term{1}, NodeKey{2}, 3};
  encode(bytes, full);
  bytes += unhex("960100c0a174a16da178");  // ends after method
  encode(bytes, Reply{{"\x07", {}, 0}, 5, "text", {}});
  encode(bytes, Reply{{"\x08", {}, 0}, 0, {}, {}});
  std::string_view rest = bytes;
  Envelope envelope;
  ASSERT_EQ(next_envelope(rest, envelope), Errc::ok);
  ASSERT_EQ(next_envelope(rest, envelope), Errc::ok);
  const Message& message = envelope.message;
  EXPECT_TRUE(message.correlation.none());
  EXPECT_FALSE(message.generation.known());
  EXPECT_EQ(message.time_left_ms, 0U);
  EXPECT_TRUE(message.headers.empty() && message.payload.empty());
  ASSERT_EQ(next_envelope(rest, envelope), Errc::ok);
  EXPECT_EQ(envelope.reply.code, 5);
  ASSERT_EQ(next_envelope(rest, envelope), Errc::ok);
  EXPECT_EQ(envelope.reply.code, 0);
  EXPECT_EQ(envelope.reply.text, "");
}

TEST(Codec, SendsOnlyTextThatCanBeRead) {
  std::string bytes;
  encode(bytes, Reply{{"\x07", {}, 0}, 5, "bad \xff byte", {}});
  EXPECT_EQ(first(bytes).reply.text, "bad ? byte");
  bytes.clear();
  encode(bytes, Reject{20, std::string(5000, 'x'), 0});
  Reject reject;
  EXPECT_EQ(decode(first(bytes), reject), Errc::ok);
  EXPECT_EQ(reject.text.size(), kTextBytesMax);
}

TEST(Codec, NeedsTheKindThatItWasAskedFor) {
  std::string bytes;
  encode_empty(bytes, Kind::ping);
  ControlMessage control;
  EXPECT_EQ(decode(first(bytes), control), Errc::unknown_kind);
  Credit credit;
  EXPECT_EQ(decode(first(bytes), credit), Errc::malformed);
}

TEST(Codec, WelcomeHasTheProtocolsLimitsByDefault) {
  std::string bytes = unhex("940b00c083a773657373696f6e05a4") + "node";
  std::string here;
  encode(here, Here{"c", 1, test::node_a()});
  const std::size_t at = here.find("node") + 4;
  bytes += here.substr(at) + unhex("a6637265646974920102");
  Welcome welcome;
  ASSERT_EQ(decode(first(bytes), welcome), Errc::ok);
  EXPECT_EQ(welcome.session, 5U);
  EXPECT_EQ(welcome.credit, (Credit{1, 2}));
  EXPECT_EQ(welcome.limits.frame_bytes, kFrameBytesMax);
  EXPECT_EQ(welcome.limits.batch, kBatchMax);
}

// A node of an earlier release tells none; its envelope is shorter by one element.
TEST(Codec, AJoinWithoutSettingsIsRead) {
  std::string bytes;
  encode(bytes, ControlMessage(JoinRequest{"shop", test::node_b(), {{"cart", 4}}, {}}));
  ASSERT_EQ(bytes.back(), '\x90');
  bytes.pop_back();
  --bytes.front();
  ControlMessage read = JoinRequest{"", {}, {}, {{"left", "over"}}};
  ASSERT_EQ(decode(first(bytes), read), Errc::ok);
  EXPECT_EQ(std::get<JoinRequest>(read).hosts.size(), 1U);
  EXPECT_TRUE(std::get<JoinRequest>(read).settings.empty());
}

TEST(Codec, ReportsKeepTheirOrder) {
  RegionReport report{Term{1}, NodeKey{2}, NodeKey{3}, {}};
  for (const char* type : {"b", "a", "b"}) {
    report.shards.push_back({{type, ShardId{1}}, 4, RegionState::owner, {}, NodeKey{7}});
    report.shards.push_back({{type, ShardId{0}}, 4, RegionState::owner, {}, NodeKey{8}});
  }
  std::string bytes;
  encode(bytes, ControlMessage(report));
  ControlMessage got;
  ASSERT_EQ(decode(first(bytes), got), Errc::ok);
  EXPECT_EQ(std::get<RegionReport>(got), report);
}

}  // namespace
}  // namespace shardbus::wire
