// Sessions of clients: greeting, credit, and what strangers get.
#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

constexpr std::uint32_t kClient = 7;

class FrontDoorTest : public PlaneTest {
 protected:
  explicit FrontDoorTest() : node_(1, config()) {
    pass(node_, [&] {
      node_.host("echo");
      node_.own("echo");
    });
  }
  static DataConfig config() {
    DataConfig made;
    made.client_credit = 8;
    return made;
  }
  void frame(const std::string& bytes) {
    pass(node_, [&] { node_.plane->front().on_frame(kClient, false, bytes); });
  }
  Envelopes received() { return Envelopes(std::exchange(node_.wire.front[kClient], {})); }
  static std::string ask(int number, std::string_view method = "say", std::uint32_t flags = 0,
                         std::string_view payload = "hi") {
    wire::Message message;
    message.kind = wire::Kind::ask;
    message.flags = flags;
    const std::string correlation(1, static_cast<char>(number));  // a small msgpack integer
    message.correlation.opaque = correlation;
    message.type = "echo";
    message.id = "id";
    message.method = method;
    message.payload = payload;
    message.time_left_ms = 1000;
    std::string bytes;
    wire::encode(bytes, message);
    return bytes;
  }
  wire::Welcome greet() {
    wire::Hello hello;
    hello.sender = 5;
    std::string bytes;
    wire::encode(bytes, hello);
    frame(bytes);
    wire::Welcome welcome;
    const Envelopes got = received();
    EXPECT_EQ(got.all.size(), 1U);
    EXPECT_TRUE(!got.all.empty() && wire::decode(got.all[0], welcome) == Errc::ok);
    return welcome;
  }
  TestNode node_;
};

TEST_F(FrontDoorTest, HelloIsWelcomed) {
  const wire::Welcome welcome = greet();
  EXPECT_NE(welcome.session, 0U);
  EXPECT_EQ(welcome.node.key, key_of(1));
  EXPECT_EQ(welcome.credit.envelopes, 8U);
}

TEST_F(FrontDoorTest, OtherClusterIsRejected) {
  wire::Hello hello;
  hello.cluster = "elsewhere";
  std::string bytes;
  wire::encode(bytes, hello);
  frame(bytes);
  EXPECT_EQ(received().of(wire::Kind::reject).size(), 1U);
}

// A sender's number says whose order and fences a message belongs to.
TEST_F(FrontDoorTest, AClientCannotSpeakInANodesName) {
  pass(node_, [&] { node_.plane->connect(info_of(2)); });
  for (const NodeKey node : {key_of(1), key_of(2)}) {
    wire::Hello hello;
    hello.sender = node.value;
    std::string bytes;
    wire::encode(bytes, hello);
    frame(bytes);
    EXPECT_EQ(received().of(wire::Kind::reject).size(), 1U);
  }
}

TEST_F(FrontDoorTest, FencesThatWaitForAnOwnerAreBounded) {
  wire::Hello hello;
  hello.sender = 5;
  hello.wants_table = true;
  std::string bytes;
  wire::encode(bytes, hello);
  wire::Message tell;  // a fence waits behind what its sender has sent
  tell.kind = wire::Kind::tell;
  tell.flags = wire::kFlagGreeted;
  tell.type = "other";
  tell.id = "id";
  tell.method = "say";
  wire::encode(bytes, tell);
  pass(node_, [&] { node_.owner("other", kNoNode); });
  frame(bytes);
  bytes.clear();
  wire::Fence fence;
  fence.shard = {"other", shard_of("id", kShards)};
  fence.id = 1;
  wire::encode(bytes, fence);
  for (std::uint32_t i = 0; i < node_.plane->config().buffered_messages + 10; ++i) frame(bytes);
  const auto counters = node_.plane->status().counters;
  EXPECT_EQ(counters.at("held_messages"), counters.at("held_messages_limit"));
}

// What was asked before the goodbye is still answered; then the node may stop.
TEST_F(FrontDoorTest, AGoodbyeWaitsForOpenAsks) {
  greet();
  frame(ask(1, "silence"));
  pass(node_, [&] { node_.plane->front().say_goodbye(); });
  EXPECT_EQ(received().of(wire::Kind::goodbye).size(), 1U);
  later(500ms);
  pass(node_, [&] { EXPECT_FALSE(node_.plane->front().parted()); });
  frame(ask(2));  // sent before the goodbye arrived
  EXPECT_EQ(received().of(wire::Kind::reply).size(), 1U);
  later(600ms);
  pass(node_);  // the first one's deadline
  pass(node_, [&] { EXPECT_TRUE(node_.plane->front().parted()); });
}

// A client that closed its connection on our goodbye kept the node waiting for four seconds.
TEST_F(FrontDoorTest, NobodyWaitsForAClientThatIsGone) {
  wire::Hello hello;
  hello.sender = 5;
  hello.wants_table = true;
  std::string bytes;
  wire::encode(bytes, hello);
  frame(bytes);
  pass(node_, [&] { node_.plane->front().say_goodbye(); });
  (void)received();
  pass(node_, [&] { node_.owner("other", key_of(2), 2); });
  later(20ms);
  pass(node_);
  EXPECT_TRUE(received().all.empty()) << "no table behind a goodbye";
  frame(ask(1, "silence", wire::kFlagGreeted));
  node_.wire.gone.insert(kClient);
  later(200ms);
  pass(node_, [&] { EXPECT_TRUE(node_.plane->front().parted()); });
}

// What a sender's messages were stamped with is known for as long as any session of its lasts.
TEST_F(FrontDoorTest, AnOlderSessionThatEndsTakesNoMarksAlong) {
  const auto on = [&](std::uint32_t connection, const std::string& bytes) {
    pass(node_, [&] { node_.plane->front().on_frame(connection, false, bytes); });
  };
  wire::Hello hello;
  hello.sender = 5;
  hello.wants_table = true;
  std::string bytes;
  wire::encode(bytes, hello);
  on(1, bytes);
  on(2, bytes);
  wire::Message tell;
  tell.kind = wire::Kind::tell;
  tell.flags = wire::kFlagGreeted;
  tell.type = "echo";
  tell.id = "id";
  tell.method = "say";
  tell.generation = TestNode::generation(2);
  bytes.clear();
  wire::encode(bytes, tell);
  on(2, bytes);
  bytes.clear();
  wire::encode_empty(bytes, wire::Kind::goodbye);
  on(1, bytes);
  tell.generation = TestNode::generation(1);
  bytes.clear();
  wire::encode(bytes, tell);
  on(2, bytes);
  EXPECT_EQ(node_.plane->status().counters["stale_messages"], 1U);
}

TEST_F(FrontDoorTest, TheLastSessionOfASenderTakesItsMarksAlong) {
  const auto on = [&](std::uint32_t connection, const auto& envelope) {
    std::string bytes;
    wire::encode(bytes, envelope);
    pass(node_, [&] { node_.plane->front().on_frame(connection, false, bytes); });
  };
  const auto leave = [&](std::uint32_t connection) {
    std::string bytes;
    wire::encode_empty(bytes, wire::Kind::goodbye);
    pass(node_, [&] { node_.plane->front().on_frame(connection, false, bytes); });
  };
  wire::Hello hello;
  hello.sender = 5;
  hello.wants_table = true;
  on(1, hello);
  on(2, hello);
  leave(2);
  wire::Message tell;
  tell.kind = wire::Kind::tell;
  tell.flags = wire::kFlagGreeted;
  tell.type = "echo";
  tell.id = "id";
  tell.method = "say";
  tell.generation = TestNode::generation(2);
  on(1, tell);
  leave(1);
  on(3, hello);
  tell.generation = TestNode::generation(1);
  on(3, tell);
  EXPECT_EQ(node_.plane->status().counters["stale_messages"], 0U);
}

// Replies of any size: no frame is longer than a client takes.
TEST_F(FrontDoorTest, FramesKeepTheirLimit) {
  greet();
  const std::string big(wire::kPayloadBytesMax, 'x');
  const std::string small(60'000, 'y');
  std::string frames[4] = {ask(1, "say", 0, small), ask(2, "say", 0, big), ask(3, "say", 0, small),
                           ask(4, "say", 0, big)};
  pass(node_, [&] {
    for (const std::string& bytes : frames) {
      node_.plane->front().on_frame(kClient, false, bytes);
    }
  });
  std::size_t replies = 0;
  for (const std::string& bytes : node_.wire.front[kClient]) {
    EXPECT_LE(bytes.size(), wire::kFrameBytesMax);
  }
  replies = received().of(wire::Kind::reply).size();
  EXPECT_EQ(replies, 4U);
}

TEST_F(FrontDoorTest, ABareAskGetsAnImplicitSession) {
  frame(ask(1));
  const Envelopes got = received();
  ASSERT_EQ(got.of(wire::Kind::reply).size(), 1U);
  EXPECT_EQ(got.all[0].reply.payload, "hi");
  EXPECT_EQ(node_.plane->front().size(), 1U);
}

TEST_F(FrontDoorTest, ImplicitSessionsHaveABoundOnOpenAsks) {
  for (int i = 0; i < 65; ++i) frame(ask(i, "silence"));
  const Envelopes got = received();
  ASSERT_EQ(got.of(wire::Kind::error).size(), 1U);
  EXPECT_EQ(got.all[0].reply.code, static_cast<std::uint16_t>(Errc::overloaded));
}

TEST_F(FrontDoorTest, GreetedWithoutSessionIsToldToGreet) {
  frame(ask(1, "say", wire::kFlagGreeted));
  EXPECT_EQ(received().of(wire::Kind::no_session).size(), 1U);
  EXPECT_EQ(node_.plane->front().size(), 0U);
}

TEST_F(FrontDoorTest, OverCreditIsRefusedAndCounted) {
  (void)greet();
  for (int i = 0; i < 9; ++i) frame(ask(i, "silence"));
  const Envelopes got = received();
  ASSERT_EQ(got.of(wire::Kind::error).size(), 1U);
  EXPECT_EQ(got.of(wire::Kind::error)[0].reply.code, static_cast<std::uint16_t>(Errc::overloaded));
  EXPECT_EQ(node_.plane->status().counters.at("over_credit"), 1U);
}

TEST_F(FrontDoorTest, ACreditedClientThatWaitsForAnswersIsNeverStuck) {
  wire::Credit credit = greet().credit;
  std::uint64_t used = 0;
  for (int round = 0; round < 100; ++round) {
    int sent = 0;
    for (; used < credit.envelopes; ++used) {
      frame(ask(sent++ % 100));
    }
    ASSERT_GT(sent, 0) << "no credit left in round " << round;
    const Envelopes got = received();
    ASSERT_TRUE(got.of(wire::Kind::error).empty());
    for (const wire::Envelope& envelope : got.of(wire::Kind::credit)) {
      ASSERT_EQ(wire::decode(envelope, credit), Errc::ok);
    }
  }
}

// Asks that end by their deadline give their credit back as well.
TEST_F(FrontDoorTest, TimedOutAsksGiveTheirCreditBack) {
  (void)greet();
  for (int i = 0; i < 8; ++i) frame(ask(i, "silence"));
  EXPECT_TRUE(received().of(wire::Kind::credit).empty());
  later(1100ms);
  pass(node_);
  const Envelopes got = received();
  EXPECT_EQ(got.of(wire::Kind::error).size(), 8U);
  EXPECT_FALSE(got.of(wire::Kind::credit).empty());
}

// A client that went over its bytes once was refused for ever after.
TEST_F(FrontDoorTest, OneExcessDoesNotEndTheSession) {
  (void)greet();
  const std::string large(900'000, 'x');
  std::size_t refused = 0;
  for (int i = 0; i < 60; ++i) {
    frame(ask(i % 100, "silence", 0, large));
    refused += received().of(wire::Kind::error).size();
  }
  later(1100ms);
  pass(node_);
  (void)received();
  frame(ask(1));
  EXPECT_EQ(received().of(wire::Kind::reply).size(), 1U);
  EXPECT_GT(refused, 0U);
}

TEST_F(FrontDoorTest, MalformedFramesAreAnsweredAndHarmless) {
  frame("\xc1 nonsense");
  EXPECT_EQ(received().of(wire::Kind::error).size(), 1U);
  frame(ask(1));
  EXPECT_EQ(received().of(wire::Kind::reply).size(), 1U);
}

TEST_F(FrontDoorTest, SilentClientsAreClosed) {
  (void)greet();
  later(9s);
  pass(node_);
  EXPECT_EQ(node_.plane->front().size(), 0U);
  EXPECT_EQ(node_.wire.kicked.size(), 1U);
}

}  // namespace
}  // namespace shardbus::runtime
