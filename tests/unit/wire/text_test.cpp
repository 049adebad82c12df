#include "wire/text.hpp"

#include <gtest/gtest.h>

#include "wire/limits.hpp"

namespace shardbus::wire {
namespace {

TEST(Text, KnowsUtf8) {
  for (const char* text : {"", "a", "cart.add item-1 in one line",
                           "gr\xc3\xb6\xc3\x9f"
                           "er",
                           "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf4\x8f\xbf\xbf", "12345678\xc2\x80"}) {
    EXPECT_TRUE(valid_utf8(text)) << text;
  }
  for (const char* text : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80",
                           "\xe2\x82", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80", "\xff", "12345678\xff", "\xffxxxxxxx"}) {
    EXPECT_FALSE(valid_utf8(text)) << text;
  }
}

TEST(Text, CleansWhatCannotBeSent) {
  std::string scratch;
  EXPECT_EQ(clean_text("fine", scratch), "fine");
  EXPECT_EQ(clean_text("a\xff"
                       "b\xc3",
                       scratch),
            "a?b?");
  EXPECT_EQ(clean_text(std::string(2000, 'x'), scratch), std::string(kTextBytesMax, 'x'));
  // No character is cut in two.
  std::string wide(kTextBytesMax - 1, 'x');
  EXPECT_EQ(clean_text(wide + "\xe2\x82\xac", scratch), wide);
}

}  // namespace
}  // namespace shardbus::wire
