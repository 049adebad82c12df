// echo, counter and kv as the runtime calls them, and the form of log lines.
#include "daemon/builtin_types.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/log.hpp"

namespace shardbusd {
namespace {

using shardbus::AnyReplyPort;
using shardbus::Context;
using shardbus::Delivery;
using shardbus::Errc;
using shardbus::ReplyView;
using shardbus::Status;

// Keeps the last answer.
class Recorder final : public shardbus::Messenger {
 public:
  Status tell(const shardbus::Outgoing&) override { return {}; }
  void ask(const shardbus::Outgoing&, shardbus::milliseconds, shardbus::ReplyCallback) override {}
  shardbus::Result<std::string> ask_and_wait(const shardbus::Outgoing&,
                                             shardbus::milliseconds) override {
    return Status(Errc::stopped);
  }
  Status answer(const shardbus::ReplyAddress&, const ReplyView& reply) override {
    error = reply.error;
    payload = std::string(reply.payload);
    text = std::string(reply.text);
    return {};
  }

  std::optional<Errc> error;
  std::string payload;
  std::string text;
};

class BuiltinTypesTest : public testing::Test {
 protected:
  std::unique_ptr<shardbus::Entity> make(const shardbus::EntityType& type) {
    return type.create(context_);
  }
  // The payload of the reply, or the name of the error.
  std::string ask(shardbus::Entity& entity, std::string_view method, std::string_view payload) {
    recorder_->error.reset();
    Delivery delivery{method, payload, AnyReplyPort(recorder_, {1, 2}), &context_};
    entity.handle(delivery);
    if (!recorder_->error) return "no answer";
    if (*recorder_->error == Errc::ok) return recorder_->payload;
    return std::string(error_info(*recorder_->error).name);
  }
  void tell(shardbus::Entity& entity, std::string_view method, std::string_view payload) {
    Delivery delivery{method, payload, AnyReplyPort(), &context_};
    entity.handle(delivery);
  }
  static std::string number(std::uint64_t value) { return std::string(shardbus::pack(value)); }

  std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
  Context context_{recorder_, "type", "id", "node"};
};

const std::string kNil = "\xc0";
const std::string kAddThree =
    "\x81\xa6"
    "amount\x03";

TEST_F(BuiltinTypesTest, EchoAnswersAnyMethodByteForByte) {
  const auto echo = make(echo_type());
  EXPECT_EQ(ask(*echo, "anything", "not even msgpack \xc1"), "not even msgpack \xc1");
  EXPECT_EQ(ask(*echo, "x", ""), "");
  tell(*echo, "x", "nobody waits");
}

TEST_F(BuiltinTypesTest, CounterAddsGetsAndResets) {
  const auto counter = make(counter_type());
  EXPECT_EQ(ask(*counter, "get", kNil), number(0));
  EXPECT_EQ(ask(*counter, "add", kAddThree), number(3));
  tell(*counter, "add", kAddThree);
  EXPECT_EQ(ask(*counter, "get", ""), number(6));
  EXPECT_EQ(ask(*counter, "reset", kNil), kNil);
  EXPECT_EQ(ask(*counter, "get", kNil), number(0));
  EXPECT_EQ(ask(*counter, "explode", kNil), "no_such_method");
  EXPECT_EQ(ask(*counter, "add",
                "\xa3"
                "abc"),
            "decode_failed");
}

TEST_F(BuiltinTypesTest, CounterRefusesWhatIsNoAmount) {
  const auto counter = make(counter_type());
  using Map = std::map<std::string, int>;
  EXPECT_EQ(ask(*counter, "add", std::string(shardbus::pack(Map{{"amont", 3}}))), "decode_failed");
  EXPECT_EQ(recorder_->text,
            "the key \"amount\" is missing; add takes {\"amount\": n} with an "
            "integer n from 0 to 2^64-1");
  EXPECT_EQ(ask(*counter, "add", std::string(shardbus::pack(Map{{"amount", -3}}))),
            "decode_failed");
  EXPECT_THAT(recorder_->text, testing::StartsWith("\"amount\" is negative"));
  EXPECT_EQ(ask(*counter, "add", std::string(shardbus::pack(std::string("3")))), "decode_failed");
  EXPECT_THAT(recorder_->text, testing::StartsWith("the payload is a string"));
  EXPECT_EQ(ask(*counter, "add", std::string(shardbus::pack(Map{{"amount", 3}, {"more", 1}}))),
            number(3));
}

TEST_F(BuiltinTypesTest, ACounterTakesItsTotalAlong) {
  const auto before = make(counter_type()), after = make(counter_type());
  ask(*before, "add", kAddThree);
  std::string state;
  ASSERT_TRUE(before->save(state));
  ASSERT_TRUE(after->load(state).ok());
  EXPECT_EQ(ask(*after, "get", kNil), number(3));
}

TEST_F(BuiltinTypesTest, KvKeepsOneValueOfAnyKind) {
  const auto kv = make(kv_type());
  EXPECT_EQ(ask(*kv, "get", kNil), kNil);
  EXPECT_EQ(ask(*kv, "set", kAddThree), kNil);
  EXPECT_EQ(ask(*kv, "get", kNil), kAddThree);
  EXPECT_EQ(ask(*kv, "delete", kNil), "\xc3");
  EXPECT_EQ(ask(*kv, "delete", kNil), "\xc2");
  EXPECT_EQ(ask(*kv, "get", kNil), kNil);
  EXPECT_EQ(ask(*kv, "explode", kNil), "no_such_method");
}

TEST_F(BuiltinTypesTest, KvTakesItsValueAlongIfThereIsOne) {
  const auto before = make(kv_type()), after = make(kv_type());
  std::string state;
  EXPECT_FALSE(before->save(state));
  ask(*before, "set", kNil);
  ASSERT_TRUE(before->save(state));
  ASSERT_TRUE(after->load(state).ok());
  EXPECT_EQ(ask(*after, "delete", kNil), "\xc3");
}

TEST(LogTest, OneLinePerEvent) {
  using shardbus::LogLevel;
  const std::int64_t time = 1'700'000'000'042;
  EXPECT_EQ(format_log_line(LogFormat::text, time, LogLevel::info, "membership.up", "node=b\nx"),
            "2023-11-14T22:13:20.042Z info  membership.up node=b x");
  EXPECT_EQ(format_log_line(LogFormat::text, time, LogLevel::error, "a.b", ""),
            "2023-11-14T22:13:20.042Z error a.b");
  EXPECT_EQ(format_log_line(LogFormat::json, time, LogLevel::warn, "a.b", "say \"x\"\n\xff"),
            "{\"time\":\"2023-11-14T22:13:20.042Z\",\"level\":\"warn\",\"event\":\"a.b\","
            "\"text\":\"say \\\"x\\\"\\n\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace shardbusd
