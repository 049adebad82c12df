// Fields at their limit and one above it, and how a receiver goes on behind a bad envelope.
#include <gtest/gtest.h>

#include "support/wire_recode.hpp"
#include "vectors/sample_values.hpp"
#include "wire/codec.hpp"
#include "wire/writer.hpp"

namespace shardbus::wire {
namespace {

using test::sample_ask;
using test::sample_tell;
using test::unhex;

Errc decoded(const Message& message) {
  std::string bytes;
  encode(bytes, message);
  std::string_view rest = bytes;
  Envelope envelope;
  return next_envelope(rest, envelope);
}

TEST(Limits, OfAMessage) {
  const std::string text(kFrameBytesMax, 'x');
  const auto xs = [&](std::size_t size) { return std::string_view(text).substr(0, size); };
  const auto at = [](auto&& set) {
    Message message = sample_ask();
    set(message);
    return decoded(message);
  };
  EXPECT_EQ(at([&](Message& m) { m.type = xs(kTypeBytesMax); }), Errc::ok);
  EXPECT_EQ(at([&](Message& m) { m.type = xs(kTypeBytesMax + 1); }), Errc::too_large);
  EXPECT_EQ(at([&](Message& m) { m.id = xs(kEntityIdBytesMax); }), Errc::ok);
  EXPECT_EQ(at([&](Message& m) { m.id = xs(kEntityIdBytesMax + 1); }), Errc::too_large);
  EXPECT_EQ(at([&](Message& m) { m.id = {}; }), Errc::ok);
  EXPECT_EQ(at([&](Message& m) { m.method = xs(kMethodBytesMax); }), Errc::ok);
  EXPECT_EQ(at([&](Message& m) { m.method = xs(kMethodBytesMax + 1); }), Errc::too_large);
  EXPECT_EQ(at([&](Message& m) { m.payload = xs(kPayloadBytesMax); }), Errc::ok);
  EXPECT_EQ(at([&](Message& m) { m.payload = xs(kPayloadBytesMax + 1); }), Errc::too_large);
  EXPECT_EQ(at([&](Message& m) { m.time_left_ms = kTimeLeftMsMax; }), Errc::ok);
  EXPECT_EQ(at([&](Message& m) { m.time_left_ms = kTimeLeftMsMax + 1; }), Errc::too_large);
  EXPECT_EQ(at([](Message& m) { m.hops = 255; }), Errc::ok);
}

TEST(Limits, OfHeadersAndCorrelation) {
  const auto with_headers = [](std::size_t size) {
    std::string headers;
    Writer out(headers);
    out.map(1);
    out.str("h");
    out.bin(std::string(size - 6, 'x'));  // 1 map, 2 key, 3 head of the bin
    EXPECT_EQ(headers.size(), size);
    Message message = sample_tell();
    message.headers = headers;
    return decoded(message);
  };
  EXPECT_EQ(with_headers(kHeadersBytesMax), Errc::ok);
  EXPECT_EQ(with_headers(kHeadersBytesMax + 1), Errc::too_large);
  const auto with_correlation = [](std::size_t size) {
    std::string opaque;
    Writer(opaque).bin(std::string(size - 2, 'x'));
    Message message = sample_ask();
    message.correlation.opaque = opaque;
    return decoded(message);
  };
  EXPECT_EQ(with_correlation(kCorrelationBytesMax), Errc::ok);
  EXPECT_EQ(with_correlation(kCorrelationBytesMax + 1), Errc::too_large);
}

TEST(Limits, TellWhoSentAnEnvelopeThatIsTooLarge) {
  const std::string id(kEntityIdBytesMax + 1, 'x');
  Message large = sample_ask();
  large.id = id;
  std::string bytes;
  encode(bytes, large);
  encode(bytes, sample_tell());
  std::string_view rest = bytes;
  Envelope envelope;
  ASSERT_EQ(next_envelope(rest, envelope), Errc::too_large);
  EXPECT_EQ(envelope.correlation.opaque, "\x07");
  ASSERT_EQ(next_envelope(rest, envelope), Errc::ok);
  EXPECT_EQ(envelope.message.id, "cart-42");
}

TEST(Limits, GoOnBehindAnUnknownKind) {
  const std::string bytes = unhex("95ccc80007a17801930f00c0");
  std::string_view rest = bytes;
  Envelope envelope;
  ASSERT_EQ(next_envelope(rest, envelope), Errc::unknown_kind);
  EXPECT_EQ(envelope.correlation.opaque, "\x07");
  ASSERT_EQ(next_envelope(rest, envelope), Errc::ok);
  EXPECT_EQ(envelope.kind, Kind::ping);
  EXPECT_TRUE(rest.empty());
}

TEST(Limits, KeepWhatStoodBeforeABadEnvelope) {
  std::string bytes;
  encode(bytes, sample_tell());
  bytes += "\xc1garbage";
  std::string_view rest = bytes;
  Envelope envelope;
  ASSERT_EQ(next_envelope(rest, envelope), Errc::ok);
  EXPECT_EQ(envelope.message.method, "add");
  EXPECT_EQ(next_envelope(rest, envelope), Errc::malformed);
  EXPECT_TRUE(rest.empty());
}

TEST(Limits, RefuseBombsWithoutWork) {
  for (const std::string& bytes :
       {std::string(1 << 20, '\x91'), "\xdd\xff\xff\xff\xff" + std::string(1 << 20, '\xc0'),
        unhex("9402") + std::string(1 << 20, '\x81')}) {
    std::string_view rest = bytes;
    Envelope envelope;
    EXPECT_EQ(next_envelope(rest, envelope), Errc::malformed);
  }
  // A mebibyte of nil behind a ping is a valid, if strange, envelope: extra elements are ignored.
  const std::string nils = unhex("dd000ffffb0f00c0") + std::string(0xffff8, '\xc0');
  std::string_view rest = nils;
  Envelope envelope;
  EXPECT_EQ(next_envelope(rest, envelope), Errc::ok);
}

}  // namespace
}  // namespace shardbus::wire
