// JSON <-> msgpack of shardbusctl: exact numbers, binary, and what JSON cannot say.
#include "ctl/payload_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardbusctl {
namespace {

using testing::HasSubstr;

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (int value : values) text += static_cast<char>(value);
  return text;
}

std::string there_and_back(const std::string& json) {
  const auto packed = json_to_msgpack(json);
  if (!packed) return packed.error().message();
  const auto back = msgpack_to_json(*packed);
  return back ? back->dump() : back.error().message();
}

TEST(PayloadJsonTest, JsonSurvivesTheRoundTrip) {
  for (const std::string json : {"null",
                                 "true",
                                 "0",
                                 "-1",
                                 "9007199254740993",
                                 "18446744073709551615",
                                 "-9223372036854775808",
                                 "1.0",
                                 "-0.0",
                                 "0.1",
                                 "-2.5e-300",
                                 R"("")",
                                 R"("a\"b\\\n")",
                                 "\"\xc3\xbc\"",
                                 "[]",
                                 "{}",
                                 "[1,[2,[3]]]",
                                 R"({"b":1,"a":[true,null],"c":{"d":"e"}})",
                                 R"({"$bin":"00ff10"})",
                                 R"({"$ext":[-3,"0102"]})",
                                 R"({"$str":"ff"})",
                                 R"({"$float":"nan"})",
                                 R"({"$float":"-inf"})",
                                 R"({"$map":[[1,"one"],[null,[]]]})",
                                 R"({"$map":[["$bin","not binary"]]})",
                                 R"({"$other":1})",
                                 R"({"$bin":"","x":1})"})
    EXPECT_EQ(there_and_back(json), json);
}

TEST(PayloadJsonTest, PacksWhatOtherLanguagesExpect) {
  EXPECT_EQ(*json_to_msgpack(R"({"amount": 3})"),
            "\x81\xa6"
            "amount\x03");
  EXPECT_EQ(*json_to_msgpack(R"({"$bin": "01FF"})"), bytes({0xc4, 2, 1, 0xff}));
  EXPECT_EQ(*json_to_msgpack("18446744073709551615"),
            bytes({0xcf, 255, 255, 255, 255, 255, 255, 255, 255}));
  EXPECT_EQ(*json_to_msgpack("1.5"), bytes({0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0}));
}

TEST(PayloadJsonTest, ANumberAbove64BitsIsRefusedInsteadOfRounded) {
  EXPECT_THAT(there_and_back("[18446744073709551616]"), HasSubstr("fits no 64-bit integer"));
  EXPECT_THAT(there_and_back("-9223372036854775809"), HasSubstr("fits no 64-bit integer"));
}

TEST(PayloadJsonTest, BrokenJsonNamesThePlace) {
  EXPECT_THAT(there_and_back("{\"a\": }"), HasSubstr("line 1, column 7"));
  EXPECT_THAT(there_and_back(""), HasSubstr("unexpected end of input"));
  EXPECT_THAT(there_and_back("{} x"), HasSubstr("column 4"));
  EXPECT_THAT(there_and_back(R"({"a":1,"a":2})"), HasSubstr("\"a\" stands twice"));
  EXPECT_THAT(there_and_back(std::string(33, '[')), HasSubstr("32 deep"));
}

TEST(PayloadJsonTest, FormsWithWrongContentAreRefused) {
  for (const std::string json : {R"({"$bin":"0"})", R"({"$bin":"xy"})", R"({"$bin":1})",
                                 R"({"$str":"0"})", R"({"$ext":[1]})", R"({"$ext":[200,"00"]})",
                                 R"({"$float":"1"})", R"({"$map":{}})", R"({"$map":[[1]]})"})
    EXPECT_THAT(there_and_back(json), HasSubstr("takes")) << json;
}

TEST(PayloadJsonTest, MsgpackWithOddMapsIsShownWithoutLoss) {
  EXPECT_EQ(msgpack_to_json(bytes({0x82, 0xa1, 'a', 1, 0xa1, 'a', 2}))->dump(),
            R"({"$map":[["a",1],["a",2]]})");
  EXPECT_EQ(msgpack_to_json(bytes({0xa1, 0xff}))->dump(), R"({"$str":"ff"})");
  EXPECT_EQ(msgpack_to_json("")->dump(), "null");
}

TEST(PayloadJsonTest, BytesThatAreNoMsgpackAreAnErrorNotACrash) {
  EXPECT_FALSE(msgpack_to_json(bytes({0xc1})));
  EXPECT_FALSE(msgpack_to_json(bytes({0xa5, 'a'})));
  EXPECT_FALSE(msgpack_to_json(bytes({1, 1})));
  EXPECT_FALSE(msgpack_to_json(std::string(40, '\x91') + "\x01"));
  EXPECT_FALSE(msgpack_to_json(bytes({0xdd, 0xff, 0xff, 0xff, 0xff})));
}

}  // namespace
}  // namespace shardbusctl
