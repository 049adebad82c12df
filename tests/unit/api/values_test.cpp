// Public values without a node: Status, Result, and payloads.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include <shardbus/codec.hpp>
#include <shardbus/status.hpp>

namespace shardbus {
namespace {

struct Nothing {};
struct Declared {
  MSGPACK_DEFINE_MAP()
};
struct Amount {
  int amount = 0;
  MSGPACK_DEFINE_MAP(amount)
};

TEST(StatusTest, CheckThrowsWhatFailed) {
  Status().check();
  try {
    Status(Errc::overloaded, "full").check();
    FAIL() << "it did not throw";
  } catch (const ResultError& error) {
    EXPECT_EQ(error.status().code(), Errc::overloaded);
    EXPECT_STREQ(error.what(), "overloaded: full");
  }
}

TEST(ResultTest, CannotBeMadeFromSuccessWithoutAValue) {
  const auto make = [] { return Result<int>(Status()); };
  EXPECT_THROW((void)make(), std::logic_error);
  EXPECT_EQ(Result<int>(Status(Errc::timeout)).error().code(), Errc::timeout);
  EXPECT_TRUE(Result<void>(Status()).has_value());
}

TEST(CodecTest, AStructWithoutFieldsIsAnEmptyMap) {
  EXPECT_EQ(pack(Nothing{}), "\x80");
  EXPECT_EQ(pack(Declared{}), "\x80");
  EXPECT_TRUE(unpack<Declared>("\x80").has_value());
  EXPECT_TRUE(unpack<Nothing>("\x80").has_value());
  EXPECT_TRUE(unpack<Nothing>("\xc0").has_value());
  EXPECT_TRUE(unpack<Nothing>("").has_value());
  EXPECT_TRUE(unpack<Nothing>(pack(Amount{3})).has_value());  // keys that it does not know
  EXPECT_EQ(unpack<Nothing>("\x01").error().code(), Errc::decode_failed);
  EXPECT_EQ(unpack<Amount>(pack(Amount{3}))->amount, 3);
}

TEST(CodecTest, AValueOfAnotherTypeIsSaidInWords) {
  const auto wrong = unpack<Amount>(pack(std::map<std::string, std::string>{{"amount", "three"}}));
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code(), Errc::decode_failed);
  EXPECT_EQ(wrong.error().text(), "a value of the payload is not of its message's type");
}

}  // namespace
}  // namespace shardbus
