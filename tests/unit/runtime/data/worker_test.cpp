// Entities in an attached worker: asks are relayed, and its end is told at once.
#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

constexpr std::uint32_t kWorker = 3;

class WorkerTest : public PlaneTest {
 protected:
  WorkerTest() : node_(1) {}
  void frame(const std::string& bytes) {
    pass(node_, [&] { node_.plane->front().on_frame(kWorker, false, bytes); });
  }
  void attach(std::uint64_t credit = 100, std::uint32_t max_batch = 1) {
    wire::Hello hello;
    hello.role = wire::Role::worker;
    hello.node.name = "w";
    hello.sender = 77;
    hello.max_batch = max_batch;
    hello.types = {{"job", kShards}};
    hello.credit = {credit, 1U << 20};
    std::string bytes;
    wire::encode(bytes, hello);
    frame(bytes);
    pass(node_, [&] { node_.own("job"); });
    (void)received();
  }
  void ask(Outcome& outcome, milliseconds timeout = 1000ms) {
    pass(node_, [&] { node_.ask({"job", "id", "do", "it"}, timeout, outcome); });
  }
  Envelopes received() { return Envelopes(std::exchange(node_.wire.front[kWorker], {})); }
  void answer(const wire::Envelope& asked, std::string_view payload) {
    std::string bytes;
    wire::encode(bytes, wire::Reply{asked.message.correlation, 0, "", payload});
    frame(bytes);
  }
  TestNode node_;
};

TEST_F(WorkerTest, AskIsRelayedAndAnswered) {
  attach();
  ASSERT_EQ(node_.listener.hosted.size(), 1U);
  Outcome outcome;
  ask(outcome);
  const Envelopes got = received();
  ASSERT_EQ(got.of(wire::Kind::ask).size(), 1U);
  EXPECT_EQ(got.all[0].message.payload, "it");
  answer(got.all[0], "done");
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.payload, "done");
  EXPECT_EQ(node_.plane->status().pending_asks, 0U);
}

TEST_F(WorkerTest, ItsEndIsUnknownOutcomeAtOnce) {
  attach();
  Outcome outcome;
  ask(outcome);
  std::string bytes;
  wire::encode_empty(bytes, wire::Kind::goodbye);
  frame(bytes);
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::unknown_outcome);
}

TEST_F(WorkerTest, TellsThatItsEndTakesAlongAreCounted) {
  attach(100, 10);
  pass(node_, [&] {
    (void)node_.plane->tell({"job", "id", "do", "it"});
    std::string bytes;
    wire::encode_empty(bytes, wire::Kind::goodbye);
    node_.plane->front().on_frame(kWorker, false, bytes);
  });
  EXPECT_EQ(node_.plane->status().counters.at("tells_dropped"), 1U);
}

TEST_F(WorkerTest, ACutConnectionIsUnknownOutcomeAtTheNextSweep) {
  attach();
  Outcome outcome;
  ask(outcome, 5000ms);
  node_.wire.gone.insert(kWorker);
  later(600ms);  // sweeps are a quarter of the ping interval apart
  pass(node_);
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::unknown_outcome);
}

TEST_F(WorkerTest, WithoutCreditMessagesWait) {
  attach(1);
  Outcome first;
  Outcome second;
  ask(first);
  ask(second);
  EXPECT_EQ(received().of(wire::Kind::ask).size(), 1U);
  std::string bytes;
  wire::encode(bytes, wire::Credit{2, 1U << 20});
  frame(bytes);
  EXPECT_EQ(received().of(wire::Kind::ask).size(), 1U);
}

TEST_F(WorkerTest, WhatWaitsForCreditIsBoundedInBytes) {
  attach(0);
  const std::string big(1000 * 1000, 'x');
  pass(node_, [&] {
    for (int i = 0; i < 100; ++i) (void)node_.plane->tell({"job", "id", "do", big});
  });
  auto counters = node_.plane->status().counters;
  EXPECT_LE(counters["worker_waiting_bytes"], counters["worker_waiting_bytes_limit"]);
  EXPECT_GT(counters["worker_waiting_bytes"], 50'000'000U);
  EXPECT_GT(counters["tells_dropped"], 30U);
  std::string bytes;
  wire::encode(bytes, wire::Credit{1000, std::uint64_t{1} << 40});
  frame(bytes);
  counters = node_.plane->status().counters;
  EXPECT_EQ(counters["worker_waiting_bytes"], 0U);
}

TEST_F(WorkerTest, WhatItNeverGotGoesToTheNextOne) {
  attach(0);
  Outcome outcome;
  ask(outcome);
  std::string bytes;
  wire::encode_empty(bytes, wire::Kind::goodbye);
  frame(bytes);
  EXPECT_EQ(outcome.times, 0);
  attach();
  ask(outcome);  // a second ask, to see both
  EXPECT_EQ(outcome.times, 0);
}

// The shard was lost and came back while the worker still had to give up its older life.
TEST_F(WorkerTest, AnotherLifeWaitsUntilTheOlderOneIsGivenBack) {
  attach();
  Outcome outcome;
  ask(outcome, 10s);
  (void)received();
  pass(node_, [&] { node_.owner("job", key_of(2), 2); });
  const auto releases = received().of(wire::Kind::release).size();
  EXPECT_EQ(releases, 1U);
  pass(node_, [&] {
    node_.own("job", 3);
    node_.plane->bury(key_of(2));
  });
  Outcome again;
  ask(again, 10s);
  EXPECT_TRUE(received().all.empty()) << "nothing comes between RELEASE and RELEASED";
  std::string bytes;
  wire::Released released;
  released.shard = {"job", shard_of("id", kShards)};
  released.states = {{"id", "old"}};
  wire::encode(bytes, released);
  frame(bytes);
  const Envelopes got = received();
  ASSERT_EQ(got.of(wire::Kind::ask).size(), 1U);
  EXPECT_TRUE(got.of(wire::Kind::restore).empty()) << "that state is of a life that is over";
  EXPECT_EQ(again.times, 0);
  answer(got.of(wire::Kind::ask)[0], "done");
  EXPECT_EQ(again.payload, "done");
}

// What waited for a worker that left was handled by a later one, when the shard was another node's.
TEST_F(WorkerTest, WhatWaitsForAWorkerGoesWithTheShard) {
  attach(0);
  Outcome outcome;
  ask(outcome, 10s);
  std::string bytes;
  wire::encode_empty(bytes, wire::Kind::goodbye);
  frame(bytes);
  EXPECT_EQ(outcome.times, 0);
  pass(node_, [&] { node_.owner("job", kNoNode, 2); });
  EXPECT_EQ(outcome.error, Errc::no_such_type);
  wire::Hello hello;
  hello.role = wire::Role::worker;
  hello.sender = 78;
  hello.types = {{"job", kShards}};
  hello.credit = {100, 1U << 20};
  bytes.clear();
  wire::encode(bytes, hello);
  frame(bytes);
  EXPECT_TRUE(received().of(wire::Kind::ask).empty());
}

TEST_F(WorkerTest, WhatItAnswersAfterAForcedStopDoesNotCount) {
  attach();
  Outcome outcome;
  ask(outcome, 60s);
  const Envelopes got = received();
  const ShardName shard{"job", shard_of("id", kShards)};
  pass(node_, [&] {
    node_.plane->dispatch().on_region_command(
        key_of(9), BeginHandoff{shard, TestNode::generation(2), key_of(2)});
  });
  later(node_.plane->config().handoff_timeout);
  pass(node_);
  EXPECT_EQ(outcome.error, Errc::unknown_outcome);
  answer(got.of(wire::Kind::ask)[0], "late");
  EXPECT_EQ(outcome.times, 1);
}

// Nobody else ever heard of its type: it counted as hosted for ever, and the node as not ready.
TEST_F(WorkerTest, ATypeThatCameAndWentAtOnceIsNoType) {
  wire::Hello hello;
  hello.role = wire::Role::worker;
  hello.sender = 78;
  hello.types = {{"job", kShards}};
  std::string bytes;
  wire::encode(bytes, hello);
  wire::encode_empty(bytes, wire::Kind::goodbye);
  frame(bytes);
  EXPECT_EQ(node_.plane->status().unsettled, "");
  Outcome outcome;
  ask(outcome, 60s);
  later(node_.plane->config().unknown_type_wait + 200ms);
  pass(node_);
  EXPECT_EQ(outcome.error, Errc::no_such_type);
}

// The ask and its relay have one deadline; their slots were once freed twice when both expired.
TEST_F(WorkerTest, TimeoutOfARelayedAskEndsBothOnce) {
  attach();
  std::vector<Outcome> outcomes(20);
  for (Outcome& outcome : outcomes) ask(outcome, 100ms);
  later(200ms);
  pass(node_);
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.times, 1);
    EXPECT_EQ(outcome.error, Errc::timeout);
  }
  EXPECT_EQ(node_.plane->status().pending_asks, 0U);
  (void)received();
  // The slots are sound: each ask gets its own answer.
  std::vector<Outcome> again(20);
  for (Outcome& outcome : again) ask(outcome);
  const Envelopes got = received();
  const auto asks = got.of(wire::Kind::ask);
  ASSERT_EQ(asks.size(), 20U);
  for (std::size_t i = 0; i < asks.size(); ++i) answer(asks[i], std::to_string(i));
  for (std::size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].times, 1);
    EXPECT_EQ(again[i].payload, std::to_string(i));
  }
}

// It came before this node knew the cluster. The type is as good as new then.
TEST_F(WorkerTest, WhoHasAnotherNumberOfShardsThanTheClusterIsSentAway) {
  wire::Hello hello;
  hello.role = wire::Role::worker;
  hello.node.name = "w";
  hello.sender = 77;
  hello.types = {{"other", kShards}};
  hello.credit = {100, 1U << 20};
  std::string bytes;
  wire::encode(bytes, hello);
  frame(bytes);
  EXPECT_EQ(received().of(wire::Kind::welcome).size(), 1U);
  Outcome outcome;
  pass(node_, [&] { node_.ask({"other", "id", "do", "it"}, 1000ms, outcome); });

  const NodeKey self = node_.plane->config().self.key;
  TypeTable rows{"other", 2 * kShards, {}};
  rows.entries.assign(rows.shard_count, TableEntry{});
  pass(node_, [&] {
    node_.plane->dispatch().on_table({TableVersion{Term{1}, NodeKey{9}, 1}, {rows}});
  });
  EXPECT_EQ(received().of(wire::Kind::no_session).size(), 1U);
  EXPECT_TRUE(node_.listener.hosted.empty());
  frame(bytes);  // it greets again, and hears why not
  const Envelopes refused = received();
  ASSERT_EQ(refused.of(wire::Kind::reject).size(), 1U);

  EntityType type;
  type.name = "other";
  type.options.shard_count = 2 * kShards;
  type.create = [](const Context&) { return std::make_unique<Echo>(); };
  pass(node_, [&] {
    EXPECT_EQ(node_.plane->host(std::move(type)), Errc::ok);
    for (std::uint32_t i = 0; i < 2 * kShards; ++i) {
      node_.plane->dispatch().on_region_command(
          self, RehomeShard{{"other", ShardId{i}}, 2 * kShards, TestNode::generation(), {}});
    }
  });
  EXPECT_EQ(outcome.times, 0);
  rows.entries.assign(rows.shard_count, TableEntry{self, TestNode::generation()});
  pass(node_, [&] {
    node_.plane->dispatch().on_table({TableVersion{Term{1}, NodeKey{9}, 2}, {rows}});
  });
  EXPECT_EQ(outcome.times, 1) << "what waited goes to the shard that its id is in now";
  EXPECT_EQ(outcome.error, Errc::ok);
  EXPECT_EQ(outcome.payload, "it");
}

TEST_F(WorkerTest, WhoHasOtherSettingsThanTheClusterIsSentAway) {
  attach();
  HostedType known{"job", kShards};
  known.placement.strategy = "weighted";
  pass(node_, [&] { node_.plane->set_known_types({known}); });
  EXPECT_EQ(received().of(wire::Kind::no_session).size(), 1U);
  EXPECT_TRUE(node_.listener.hosted.empty());
}

// Found with real workers: they began what they had got until their next PING.
TEST_F(WorkerTest, ANodeThatLosesItsPlaceTellsItsWorkersAtOnce) {
  attach();
  Outcome outcome;
  ask(outcome);
  (void)received();
  pass(node_, [&] { node_.plane->retire("a link to another member is bad"); });
  EXPECT_EQ(outcome.error, Errc::unknown_outcome);
  EXPECT_EQ(received().of(wire::Kind::no_session).size(), 1U);
}

TEST_F(WorkerTest, NoWorkerLeftIsNoSuchTypeAfterTheWait) {
  attach();
  std::string bytes;
  wire::encode_empty(bytes, wire::Kind::goodbye);
  frame(bytes);
  Outcome outcome;
  ask(outcome, 5000ms);
  later(2100ms);
  pass(node_);
  EXPECT_EQ(outcome.error, Errc::no_such_type);
}

}  // namespace
}  // namespace shardbus::runtime
