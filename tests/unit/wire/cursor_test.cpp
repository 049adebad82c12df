#include "wire/cursor.hpp"

#include <gtest/gtest.h>

#include "support/wire_recode.hpp"
#include "wire/limits.hpp"
#include "wire/writer.hpp"

namespace shardbus::wire {
namespace {

using test::hex;
using test::unhex;

// What `read` gives, or the error's name.
template <class Read>
std::string reading(std::string_view text, Read&& read) {
  const std::string bytes = unhex(text);
  Cursor cursor(bytes);
  const std::string value = read(cursor);
  if (cursor.ok()) return value + (cursor.remaining() == 0 ? "" : " and more");
  return std::string(error_info(cursor.error()).name);
}

std::string uint_of(std::string_view text) {
  return reading(text, [](Cursor& in) { return std::to_string(in.uint()); });
}

TEST(Cursor, ReadsIntegersInEveryEncoding) {
  EXPECT_EQ(uint_of("00"), "0");
  EXPECT_EQ(uint_of("7f"), "127");
  EXPECT_EQ(uint_of("ccff"), "255");
  EXPECT_EQ(uint_of("cd0100"), "256");
  EXPECT_EQ(uint_of("ce00010000"), "65536");
  EXPECT_EQ(uint_of("cf001fffffffffffff"), "9007199254740991");
  EXPECT_EQ(uint_of("d07f"), "127");
  EXPECT_EQ(uint_of("d17fff"), "32767");
  EXPECT_EQ(uint_of("d27fffffff"), "2147483647");
  EXPECT_EQ(uint_of("d3001fffffffffffff"), "9007199254740991");
  EXPECT_EQ(uint_of("ca40400000"), "3");
  EXPECT_EQ(uint_of("cb4008000000000000"), "3");
  EXPECT_EQ(uint_of("cb433fffffffffffff"), "9007199254740991");
  EXPECT_EQ(uint_of("cb8000000000000000"), "0");  // -0.0
}

TEST(Cursor, RefusesWhatIsNoWireInteger) {
  for (const char* text : {"ff",
                           "d080",
                           "d1ffff",
                           "d2ffffffff",
                           "d3ffffffffffffffff",
                           "cf0020000000000000",
                           "cfffffffffffffffff",
                           "cb3ff8000000000000",
                           "cbbff0000000000000",
                           "cb7ff8000000000000",
                           "cb7ff0000000000000",
                           "cb4340000000000000",
                           "c0",
                           "c3",
                           "a131",
                           "c40131",
                           "91",
                           "80",
                           "cd01",
                           "cf00",
                           "ca4040",
                           ""}) {
    EXPECT_EQ(uint_of(text), "malformed") << text;
  }
}

std::string bytes_of(std::string_view text, std::size_t limit) {
  return reading(text, [limit](Cursor& in) { return hex(in.bytes(limit)); });
}

TEST(Cursor, ReadsStringsInEveryEncoding) {
  for (const char* text : {"a26162", "c4026162", "c500026162", "c6000000026162", "d9026162",
                           "da00026162", "db000000026162"}) {
    EXPECT_EQ(bytes_of(text, 2), "6162") << text;
    EXPECT_EQ(bytes_of(text, 1), "too_large") << text;
  }
  EXPECT_EQ(bytes_of("a0", 0), "");
  for (const char* text : {"a261", "c40261", "c6ffffffff", "dbffffffff61", "c5", "01", "c0", ""}) {
    EXPECT_EQ(bytes_of(text, 100), "malformed") << text;
  }
}

TEST(Cursor, GoesOnBehindAValueThatIsTooLarge) {
  const std::string bytes = unhex("a2616207");
  Cursor cursor(bytes);
  EXPECT_EQ(cursor.bytes(1), "");
  EXPECT_EQ(cursor.uint(), 7U);
  EXPECT_EQ(cursor.error(), Errc::too_large);
  EXPECT_FALSE(cursor.stopped());
}

TEST(Cursor, StopsForGoodAtABadByte) {
  const std::string bytes = unhex("c10707");
  Cursor cursor(bytes);
  EXPECT_EQ(cursor.uint(), 0U);
  EXPECT_EQ(cursor.uint(), 0U);
  EXPECT_EQ(cursor.array(), 0U);
  EXPECT_EQ(cursor.map(), 0U);
  EXPECT_EQ(cursor.raw(), "");
  EXPECT_FALSE(cursor.boolean());
  EXPECT_FALSE(cursor.take_nil());
  EXPECT_EQ(cursor.error(), Errc::malformed);
}

TEST(Cursor, BelievesNoCountThatTheBytesCannotHold) {
  for (const char* text : {"91", "dc0002c0", "ddffffffffc0", "dc", "dd0000"}) {
    EXPECT_EQ(reading(text, [](Cursor& in) { return std::to_string(in.array()); }), "malformed");
  }
  for (const char* text : {"81c0", "de0001c0", "dfffffffffc0c0", "de", "df0000"}) {
    EXPECT_EQ(reading(text, [](Cursor& in) { return std::to_string(in.map()); }), "malformed");
  }
}

std::string skipped(std::string_view text) {
  return reading(text, [](Cursor& in) { return hex(in.raw()); });
}

TEST(Cursor, SkipsEveryType) {
  for (const char* text : {"00",
                           "ff",
                           "c0",
                           "c2",
                           "c3",
                           "cc01",
                           "cd0102",
                           "ce01020304",
                           "cf0102030405060708",
                           "d001",
                           "d10102",
                           "d201020304",
                           "d30102030405060708",
                           "ca01020304",
                           "cb0102030405060708",
                           "a161",
                           "d90161",
                           "da000161",
                           "db0000000161",
                           "c40161",
                           "c5000161",
                           "c60000000161",
                           "d40100",
                           "d5010000",
                           "d60100000000",
                           "d7010000000000000000",
                           "d80100000000000000000000000000000000",
                           "c7010100",
                           "c800010100",
                           "c90000000101aa",
                           "90",
                           "92019101",
                           "dc0001c0",
                           "dd00000001c0",
                           "80",
                           "8101c0",
                           "de00010102",
                           "df000000010102"}) {
    EXPECT_EQ(skipped(text), text);
    const std::string_view whole = text;
    for (std::size_t cut = 0; cut < whole.size(); cut += 2) {
      EXPECT_EQ(skipped(whole.substr(0, cut)), "malformed") << whole.substr(0, cut);
    }
  }
  EXPECT_EQ(skipped("c1"), "malformed");
}

TEST(Cursor, SkipsToTheDepthThatIsAllowedAndNoFurther) {
  // The envelope's own array counts as the first level.
  const auto nested = [](std::size_t depth) { return std::string(depth, '\x91') + '\x00'; };
  std::string deepest = nested(kDepthMax - 1);
  Cursor fits(deepest);
  fits.skip();
  EXPECT_TRUE(fits.ok());
  std::string deeper = nested(kDepthMax);
  Cursor refused(deeper);
  refused.skip();
  EXPECT_EQ(refused.error(), Errc::malformed);
}

TEST(Writer, UsesTheShortestForm) {
  std::string out;
  Writer writer(out);
  for (const std::uint64_t value : {0ULL, 127ULL, 128ULL, 255ULL, 256ULL, 65535ULL, 65536ULL,
                                    4294967295ULL, 4294967296ULL, 9007199254740991ULL}) {
    out.clear();
    writer.uint(value);
    Cursor in(out);
    EXPECT_EQ(in.uint(), value);
    const std::size_t size = value < 128          ? 1
                             : value < 256        ? 2
                             : value < 65536      ? 3
                             : value < 4294967296 ? 5
                                                  : 9;
    EXPECT_EQ(out.size(), size) << value;
  }
}

TEST(Writer, WritesHeadsOfEverySize) {
  for (const std::size_t size : {0U, 15U, 16U, 31U, 32U, 255U, 256U, 65535U, 65536U}) {
    const std::string text(size, 'x');
    std::string out;
    Writer writer(out);
    writer.str(text);
    writer.bin(text);
    writer.array(size);
    out.append(size, '\xc0');
    writer.map(size);
    out.append(2 * size, '\xc0');
    Cursor in(out);
    EXPECT_EQ(in.text(size), text);
    EXPECT_EQ(in.bytes(size), text);
    EXPECT_EQ(in.array(), size);
    in.skip(size);
    EXPECT_EQ(in.map(), size);
    in.skip(2 * size);
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.remaining(), 0U);
  }
}

}  // namespace
}  // namespace shardbus::wire
