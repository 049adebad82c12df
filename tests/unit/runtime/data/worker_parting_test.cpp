// A worker gives shards back: because it goes, or because they move. What becomes of their states.
#include <algorithm>

#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

constexpr std::uint32_t kFirst = 3;
constexpr std::uint32_t kSecond = 4;
constexpr std::uint32_t kThird = 5;

// Node A has the workers; node B is where shards go.
class WorkerPartingTest : public TwoPlanesTest {
 protected:
  explicit WorkerPartingTest(DataConfig config = small_releases())
      : TwoPlanesTest(std::move(config)) {
    connect();
    attach(kFirst);
    pass(a_, [&] { a_.own("job"); });
    pass(b_, [&] { b_.owner("job", key_of(1)); });
  }
  static DataConfig small_releases() {
    DataConfig config;
    config.release_entities = 3;
    config.release_bytes = 100;
    config.buffered_bytes = 5000;
    return config;
  }
  template <class Body>
  void frame(std::uint32_t connection, Body&& write) {
    std::string bytes;
    write(bytes);
    pass(a_, [&] { a_.plane->front().on_frame(connection, false, bytes); });
  }
  void attach(std::uint32_t connection, std::uint64_t credit = 100) {
    wire::Hello hello;
    hello.role = wire::Role::worker;
    hello.node.name = "w" + std::to_string(connection);
    hello.sender = 70 + connection;
    hello.types = {{"job", kShards}};
    hello.credit = {credit, 1U << 20};
    frame(connection, [&](std::string& out) { wire::encode(out, hello); });
    (void)received(connection);
  }
  void give_back(std::uint32_t connection) {
    frame(connection, [](std::string& out) { wire::encode_offer(out, {}); });
  }
  void released(std::uint32_t connection, std::vector<wire::EntityState> states,
                bool more = false) {
    frame(connection, [&](std::string& out) {
      wire::encode(out, wire::Released{shard_, std::move(states), more});
    });
  }
  void credit(std::uint32_t connection, std::uint64_t envelopes) {
    frame(connection, [&](std::string& out) {
      wire::encode(out, wire::Credit{envelopes, 1U << 20});
    });
  }
  void goodbye(std::uint32_t connection) {
    frame(connection, [](std::string& out) { wire::encode_empty(out, wire::Kind::goodbye); });
  }
  void tell(std::string_view payload) {
    pass(a_, [&] { (void)a_.plane->tell({"job", "id", "do", payload}); });
  }
  void move_to_b() {
    pass(a_, [&] {
      a_.plane->dispatch().on_region_command(
          key_of(9), BeginHandoff{shard_, TestNode::generation(2), key_of(2)});
    });
  }
  Envelopes received(std::uint32_t connection) {
    return Envelopes(std::exchange(a_.wire.front[connection], {}));
  }
  Envelopes sent_to_b() {
    std::vector<std::string> frames;
    for (auto& [node, bytes] : std::exchange(a_.wire.link, {})) frames.push_back(bytes);
    return Envelopes(std::move(frames));
  }
  void expect_refused(Errc code, std::uint64_t states_lost) {
    const Envelopes got = received(kFirst);
    ASSERT_EQ(got.of(wire::Kind::error).size(), 1U);
    EXPECT_EQ(got.of(wire::Kind::error)[0].reply.code, static_cast<std::uint16_t>(code));
    EXPECT_EQ(counted("states_lost"), states_lost);
    EXPECT_GE(counted("refused_releases"), 1U);
  }
  void begin_leave(std::vector<std::string> types) {
    pass(a_, [&] {
      a_.plane->begin_leave();
      a_.plane->send_workers_away(types);
    });
  }
  std::vector<std::string> lost_lines() {
    std::vector<std::string> found;
    for (const std::string& line : a_.listener.lines) {
      if (line.find("states_lost") != std::string::npos) found.push_back(line);
    }
    return found;
  }
  std::uint64_t counted(const std::string& name) { return a_.plane->status().counters[name]; }

  const ShardName shard_{"job", shard_of("id", kShards)};
};

class LargeStatesTest : public WorkerPartingTest {
 protected:
  LargeStatesTest() : WorkerPartingTest(DataConfig{}) {}
};

std::string state_of(const wire::Envelope& restore) {
  wire::Restore value;
  EXPECT_EQ(wire::decode(restore, value), Errc::ok);
  return value.entity.id + "=" + value.entity.state;
}

std::vector<std::string> payloads(const std::vector<wire::Envelope>& messages) {
  std::vector<std::string> found;
  for (const wire::Envelope& envelope : messages) found.emplace_back(envelope.message.payload);
  return found;
}

std::vector<std::string> streamed(const Envelopes& envelopes) {
  std::vector<std::string> found;
  for (const wire::Envelope& envelope : envelopes.all) {
    wire::StreamState state;
    wire::StreamMessage message;
    if (envelope.kind == wire::Kind::stream_state) {
      EXPECT_EQ(wire::decode(envelope, state), Errc::ok);
      found.push_back(std::string(state.id) + "=" + std::string(state.state));
    } else if (envelope.kind == wire::Kind::stream_message) {
      EXPECT_EQ(wire::decode(envelope, message), Errc::ok);
      found.emplace_back(wire::own_envelope(message.envelope).message.payload);
    }
  }
  return found;
}

TEST_F(WorkerPartingTest, ItGetsNothingNewAndHearsWhenAllIsGivenBack) {
  tell("1");
  (void)received(kFirst);
  give_back(kFirst);
  tell("2");
  Envelopes got = received(kFirst);
  EXPECT_EQ(got.of(wire::Kind::release).size(), 1U);
  EXPECT_EQ(got.all.size(), 1U);
  EXPECT_TRUE(a_.listener.hosted.empty());
  released(kFirst, {{"id", "s"}});
  EXPECT_EQ(received(kFirst).of(wire::Kind::goodbye).size(), 1U);
}

TEST_F(WorkerPartingTest, WithoutShardsItMayGoAtOnce) {
  give_back(kFirst);
  const Envelopes got = received(kFirst);
  EXPECT_EQ(got.of(wire::Kind::goodbye).size(), 1U);
  EXPECT_EQ(got.all.size(), 1U);
}

TEST_F(WorkerPartingTest, AnotherWorkerOfTheNodeGetsTheStateAndThenWhatWaited) {
  tell("1");
  attach(kSecond);
  give_back(kFirst);
  EXPECT_EQ(a_.listener.hosted.size(), 1U);
  tell("2");
  tell("3");
  EXPECT_TRUE(received(kSecond).all.empty()) << "the older life is not over yet";
  released(kFirst, {{"id", "s"}});
  const Envelopes got = received(kSecond);
  ASSERT_EQ(got.all.size(), 3U);
  EXPECT_EQ(state_of(got.all[0]), "id=s");
  EXPECT_EQ(payloads(got.of(wire::Kind::tell)), (std::vector<std::string>{"2", "3"}));
}

TEST_F(WorkerPartingTest, ALaterWorkerGetsTheState) {
  tell("1");
  give_back(kFirst);
  released(kFirst, {{"id", "s"}});
  goodbye(kFirst);
  tell("2");
  wire::Hello hello;
  hello.role = wire::Role::worker;
  hello.sender = 99;
  hello.types = {{"job", kShards}};
  hello.credit = {100, 1U << 20};
  frame(kSecond, [&](std::string& out) { wire::encode(out, hello); });
  const Envelopes got = received(kSecond);
  ASSERT_EQ(got.of(wire::Kind::restore).size(), 1U);
  EXPECT_EQ(state_of(got.of(wire::Kind::restore)[0]), "id=s");
  EXPECT_EQ(payloads(got.of(wire::Kind::tell)), (std::vector<std::string>{"2"}));
}

// Found with large shards: they filled the socket of the next worker, which was taken for one that
// does not read, and the states were lost without a word.
TEST_F(LargeStatesTest, StatesThatNoSocketTakesNeitherEndASessionNorGoWithIt) {
  const std::string large(900'000, 's');
  std::vector<std::string> ids;
  for (int i = 0; ids.size() < 12; ++i) {
    const std::string id = "id" + std::to_string(i);
    if (shard_of(id, kShards) == shard_.shard) ids.push_back(id);
  }
  tell("1");
  give_back(kFirst);
  for (const std::string& id : ids) released(kFirst, {{id, large}}, id != ids.back());
  goodbye(kFirst);
  a_.wire.full = true;
  attach(kSecond);
  tell("2");
  later(1s);
  pass(a_);
  EXPECT_EQ(counted("kicked"), 0U);
  goodbye(kSecond);
  EXPECT_EQ(counted("tells_dropped"), 1U) << "the message is of no state";
  a_.wire.full = false;
  wire::Hello hello;
  hello.role = wire::Role::worker;
  hello.sender = 99;
  hello.types = {{"job", kShards}};
  hello.credit = {100, 1U << 20};
  frame(kThird, [&](std::string& out) { wire::encode(out, hello); });
  EXPECT_EQ(received(kThird).of(wire::Kind::restore).size(), ids.size());
  EXPECT_EQ(counted("states_lost"), 0U);
}

TEST_F(WorkerPartingTest, AForcedMoveTakesAlongWhatNoSocketTook) {
  tell("1");
  give_back(kFirst);
  released(kFirst, {{"id", "s"}});
  goodbye(kFirst);
  a_.wire.full = true;
  attach(kSecond);
  tell("2");
  move_to_b();
  EXPECT_TRUE(streamed(sent_to_b()).empty()) << "it may have the state already";
  later(6s);
  pass(a_);
  EXPECT_EQ(streamed(sent_to_b()), (std::vector<std::string>{"id=s"}));
  goodbye(kSecond);
  a_.wire.full = false;
  EXPECT_EQ(counted("states_lost"), 0U) << "and not once more when the worker goes";
}

TEST_F(WorkerPartingTest, WhatItGivesBackMovesOnToAnotherNode) {
  tell("1");
  give_back(kFirst);
  released(kFirst, {{"id", "s"}});
  tell("2");
  move_to_b();
  EXPECT_EQ(streamed(sent_to_b()), (std::vector<std::string>{"id=s", "2"}));
}

TEST_F(WorkerPartingTest, AMoveThatBeginsMeanwhileWaitsForTheState) {
  tell("1");
  give_back(kFirst);
  tell("2");
  move_to_b();
  EXPECT_TRUE(streamed(sent_to_b()).empty());
  released(kFirst, {{"id", "s"}});
  EXPECT_EQ(streamed(sent_to_b()), (std::vector<std::string>{"id=s", "2"}));
  EXPECT_EQ(received(kFirst).of(wire::Kind::goodbye).size(), 1U);
}

TEST_F(WorkerPartingTest, ItMayGoInTheMiddleOfAMove) {
  tell("1");
  move_to_b();
  give_back(kFirst);
  const Envelopes got = received(kFirst);
  EXPECT_EQ(got.of(wire::Kind::release).size(), 1U) << "asked for once";
  EXPECT_TRUE(got.of(wire::Kind::goodbye).empty());
  released(kFirst, {{"id", "s"}});
  EXPECT_EQ(streamed(sent_to_b()), (std::vector<std::string>{"id=s"}));
  EXPECT_EQ(received(kFirst).of(wire::Kind::goodbye).size(), 1U);
}

TEST_F(WorkerPartingTest, AStateThatNobodyTookIsCounted) {
  tell("1");
  give_back(kFirst);
  released(kFirst, {{"id", "s"}});
  pass(a_, [&] { a_.owner("job", kNoNode, 2); });
  EXPECT_EQ(counted("states_lost"), 1U);
  attach(kSecond);
  pass(a_, [&] { a_.own("job", 3); });
  tell("2");
  EXPECT_TRUE(received(kSecond).of(wire::Kind::restore).empty());
}

TEST_F(WorkerPartingTest, TheStateOfALifeThatIsOverGoesToNobody) {
  tell("1");
  attach(kSecond);
  give_back(kFirst);
  pass(a_, [&] { a_.owner("job", key_of(2), 2); });
  released(kFirst, {{"id", "old"}});
  EXPECT_TRUE(received(kSecond).of(wire::Kind::restore).empty());
  EXPECT_EQ(counted("states_lost"), 1U);
  EXPECT_EQ(received(kFirst).of(wire::Kind::goodbye).size(), 1U);
}

TEST_F(WorkerPartingTest, OneThatOffersAgainIsAHostAgain) {
  give_back(kFirst);
  (void)received(kFirst);
  frame(kFirst, [](std::string& out) { wire::encode_offer(out, {{"job", kShards}}); });
  EXPECT_EQ(a_.listener.hosted.size(), 1U);
  tell("1");
  EXPECT_EQ(payloads(received(kFirst).of(wire::Kind::tell)), (std::vector<std::string>{"1"}));
}

TEST_F(WorkerPartingTest, WhatItHadGivenBackBeforeItDiedCounts) {
  tell("1");
  attach(kSecond);
  give_back(kFirst);
  released(kFirst, {{"id", "s"}}, true);
  goodbye(kFirst);
  const Envelopes got = received(kSecond);
  ASSERT_EQ(got.of(wire::Kind::restore).size(), 1U);
  EXPECT_EQ(state_of(got.of(wire::Kind::restore)[0]), "id=s");
}

TEST_F(WorkerPartingTest, WhatItHadNotBegunGoesAheadOfWhatCameLater) {
  Outcome outcome;
  tell("1");
  pass(a_, [&] { a_.ask({"job", "id", "do", "2"}, 60s, outcome); });
  const Envelopes had = received(kFirst);
  ASSERT_EQ(had.all.size(), 2U);
  attach(kSecond);
  give_back(kFirst);
  tell("3");
  wire::Released part{shard_, {}, true};
  for (const wire::Envelope& envelope : had.all) part.unbegun.emplace_back(envelope.raw);
  part.unbegun.emplace_back("no envelope");
  frame(kFirst, [&](std::string& out) { wire::encode(out, part); });
  EXPECT_EQ(outcome.times, 0);
  EXPECT_EQ(counted("malformed_frames"), 1U);
  released(kFirst, {{"id", "s"}});
  const Envelopes got = received(kSecond);
  ASSERT_EQ(got.all.size(), 4U);
  EXPECT_EQ(state_of(got.all[0]), "id=s");
  EXPECT_EQ(got.all[1].message.payload, "1");
  EXPECT_EQ(got.all[2].message.payload, "2");
  EXPECT_EQ(got.all[3].message.payload, "3");
  goodbye(kFirst);
  EXPECT_EQ(outcome.times, 0) << "the first worker has nothing to do with it any more";
  frame(kSecond, [&](std::string& out) {
    wire::encode(out, wire::Reply{got.all[2].message.correlation, 0, "", "done"});
  });
  EXPECT_EQ(outcome.payload, "done");
}

TEST_F(WorkerPartingTest, WhatItHadNotBegunMovesWithTheShard) {
  Outcome outcome;
  pass(a_, [&] { a_.ask({"job", "id", "do", "1"}, 60s, outcome); });
  const Envelopes had = received(kFirst);
  give_back(kFirst);
  move_to_b();
  wire::Released all{shard_, {{"id", "s"}}, false};
  all.unbegun.emplace_back(had.all.at(0).raw);
  frame(kFirst, [&](std::string& out) { wire::encode(out, all); });
  EXPECT_EQ(streamed(sent_to_b()), (std::vector<std::string>{"id=s", "1"}));
  EXPECT_EQ(outcome.times, 0);
}

// One handler that did not end cost every entity of its shard the state.
TEST_F(WorkerPartingTest, AForcedStopKeepsWhatWasSavedAndNamesTheRest) {
  std::string hanging;
  for (int n = 0; hanging.empty() || shard_of(hanging, kShards) != shard_.shard; ++n) {
    hanging = "hanging-" + std::to_string(n);
  }
  Outcome saved;
  Outcome outcome;
  pass(a_, [&] {
    a_.ask({"job", "id", "do", "it"}, 60s, saved);
    a_.ask({"job", hanging, "hang", ""}, 60s, outcome);
  });
  move_to_b();
  released(kFirst, {{"id", "s"}}, true);
  EXPECT_TRUE(streamed(sent_to_b()).empty());
  later(a_.plane->config().handoff_timeout);
  pass(a_);
  EXPECT_EQ(streamed(sent_to_b()), (std::vector<std::string>{"id=s"}));
  EXPECT_EQ(outcome.error, Errc::unknown_outcome);
  EXPECT_EQ(counted("forced_stops"), 1U);
  const auto& lines = a_.listener.lines;
  const auto line = std::find_if(lines.begin(), lines.end(), [](const std::string& text) {
    return text.starts_with("worker.forced_stop");
  });
  ASSERT_NE(line, lines.end());
  EXPECT_TRUE(line->ends_with("saved=1 running=" + hanging)) << *line;
  (void)received(kFirst);
  wire::Released late{shard_, {{"id", "late"}}, false};
  late.unbegun.emplace_back();
  wire::Message told;
  told.kind = wire::Kind::tell;
  told.type = "job";
  told.id = "id";
  wire::encode(late.unbegun.back(), told);
  frame(kFirst, [&](std::string& out) { wire::encode(out, late); });
  EXPECT_TRUE(streamed(sent_to_b()).empty()) << "nobody waits for that any more";
  expect_refused(Errc::stale_owner, 1);
  EXPECT_EQ(counted("tells_dropped"), 1U);
}

TEST_F(WorkerPartingTest, WhatOneReleaseGathersIsBounded) {
  tell("1");
  move_to_b();
  (void)received(kFirst);
  released(kFirst, {{"a", "1"}, {"b", "2"}}, true);
  released(kFirst, {{"c", "3"}, {"d", "4"}}, true);
  expect_refused(Errc::too_large, 2);
  released(kFirst, {{"e", std::string(100, 'x')}}, true);
  expect_refused(Errc::too_large, 3);
  released(kFirst, {{"f", "6"}});
  EXPECT_EQ(streamed(sent_to_b()), (std::vector<std::string>{"a=1", "b=2", "f=6"}));
  EXPECT_EQ(counted("refused_releases"), 2U);
}

TEST_F(WorkerPartingTest, WhatComesForAMovingShardIsBoundedInBytes) {
  move_to_b();
  for (int i = 0; i < 3; ++i) tell(std::string(2000, 'x'));
  EXPECT_EQ(counted("tells_dropped"), 1U);
  EXPECT_GT(counted("parked_bytes"), 4000U);
  EXPECT_LE(counted("parked_bytes"), counted("parked_bytes_limit"));
  released(kFirst, {});
  pass(a_, [&] { a_.plane->bury(key_of(2)); });
  EXPECT_EQ(counted("parked_bytes"), 0U);
}

TEST_F(WorkerPartingTest, WhatItHadNotBegunIsBounded) {
  const std::string big(2000, 'x');
  Outcome outcome;
  pass(a_, [&] { a_.ask({"job", "id", "do", big}, 60s, outcome); });
  const Envelopes had = received(kFirst);
  move_to_b();
  wire::Released part{shard_, {}, true};
  wire::Message told = had.all.at(0).message;
  told.kind = wire::Kind::tell;
  told.correlation = {};
  for (int i = 0; i < 2; ++i) wire::encode(part.unbegun.emplace_back(), told);
  part.unbegun.emplace_back(had.all.at(0).raw);
  frame(kFirst, [&](std::string& out) { wire::encode(out, part); });
  EXPECT_EQ(outcome.error, Errc::overloaded);
  EXPECT_LE(counted("worker_waiting_bytes"), counted("worker_waiting_bytes_limit"));
}

// Between RELEASE and RELEASED it began another life there, which nobody asked to end.
TEST_F(WorkerPartingTest, WhatWaitsForCreditIsNotSentBehindARelease) {
  goodbye(kFirst);
  attach(kSecond, 1);
  tell("1");
  tell("2");
  move_to_b();
  (void)received(kSecond);
  credit(kSecond, 100);
  EXPECT_TRUE(received(kSecond).of(wire::Kind::tell).empty());
  released(kSecond, {{"id", "s"}});
  EXPECT_EQ(streamed(sent_to_b()), (std::vector<std::string>{"id=s", "2"}));
}

// --- the node leaves, and no other hosts the type ---

TEST_F(WorkerPartingTest, ALeavingNodeTakesEverythingBackAndKeepsItUntilItMoves) {
  tell("1");
  (void)received(kFirst);
  begin_leave({"job"});
  begin_leave({"job"});
  Envelopes got = received(kFirst);
  EXPECT_EQ(got.of(wire::Kind::release).size(), 1U);
  EXPECT_EQ(got.all.size(), 1U);
  EXPECT_TRUE(a_.listener.hosted.empty());
  tell("2");
  released(kFirst, {{"id", "s"}});
  EXPECT_EQ(received(kFirst).of(wire::Kind::goodbye).size(), 1U);
  later(2 * a_.plane->config().unknown_type_wait);
  tell("3");
  move_to_b();
  EXPECT_EQ(streamed(sent_to_b()), (std::vector<std::string>{"id=s", "2", "3"}));
  EXPECT_TRUE(lost_lines().empty());
}

TEST_F(WorkerPartingTest, WorkersOfTypesThatOthersHostStayUntilTheirShardsHaveMoved) {
  tell("1");
  (void)received(kFirst);
  begin_leave({"other"});
  EXPECT_TRUE(received(kFirst).all.empty());
  tell("2");
  EXPECT_EQ(payloads(received(kFirst).of(wire::Kind::tell)), (std::vector<std::string>{"2"}));
}

TEST_F(WorkerPartingTest, ALeavingNodeTakesNoWorkerAnyMore) {
  begin_leave({"job"});
  (void)received(kFirst);
  frame(kFirst, [](std::string& out) { wire::encode_offer(out, {{"job", kShards}}); });
  EXPECT_EQ(received(kFirst).of(wire::Kind::goodbye).size(), 1U);
  EXPECT_TRUE(a_.listener.hosted.empty());
  for (const wire::Role role : {wire::Role::worker, wire::Role::client}) {
    wire::Hello hello;
    hello.role = role;
    hello.sender = 99;
    hello.types = {{"job", kShards}};
    frame(kSecond, [&](std::string& out) { wire::encode(out, hello); });
    const Envelopes got = received(kSecond);
    ASSERT_EQ(got.all.size(), 1U);
    const bool worker = role == wire::Role::worker;
    EXPECT_EQ(got.all[0].kind, worker ? wire::Kind::reject : wire::Kind::welcome);
  }
}

TEST_F(WorkerPartingTest, WhatWaitsWhileTheNodeLeavesEndsAtItsDeadline) {
  begin_leave({"job"});
  Outcome outcome;
  pass(a_, [&] { a_.ask({"job", "id", "do", "1"}, 4s, outcome); });
  later(3s);
  pass(a_);
  EXPECT_EQ(outcome.times, 0);
  later(1s);
  pass(a_);
  EXPECT_EQ(outcome.error, Errc::expired) << "nothing has happened";
  move_to_b();
  EXPECT_TRUE(streamed(sent_to_b()).empty());
}

TEST_F(WorkerPartingTest, WhatIsGivenUpInTheEndIsToldOfInOneLine) {
  std::string other;
  for (int n = 0; other.empty() || shard_of(other, kShards) == shard_.shard; ++n) {
    other = "id-" + std::to_string(n);
  }
  tell("1");
  pass(a_, [&] { (void)a_.plane->tell({"job", other, "do", "1"}); });
  begin_leave({"job"});
  released(kFirst, {{"id", "s"}, {"id-", "s"}});
  frame(kFirst, [&](std::string& out) {
    const ShardName shard{"job", shard_of(other, kShards)};
    wire::encode(out, wire::Released{shard, {{other, "s"}}, true});
  });
  pass(a_, [&] { a_.plane->give_up_states(); });
  pass(a_, [&] { a_.plane->give_up_states(); });
  EXPECT_EQ(counted("states_lost"), 3U);
  ASSERT_EQ(lost_lines().size(), 1U);
  EXPECT_TRUE(lost_lines()[0].starts_with("worker.states_lost type=job shards=2 entities=3"));
}

TEST_F(WorkerPartingTest, StatesOfAShardThatIsTakenFromItsWorkerForNobodyAreLostWithAWord) {
  tell("1");
  pass(a_, [&] { a_.owner("job", kNoNode, 2); });
  EXPECT_EQ(received(kFirst).of(wire::Kind::release).size(), 1U);
  released(kFirst, {{"id", "s"}});
  later(100ms);
  pass(a_);
  EXPECT_EQ(counted("states_lost"), 1U);
  ASSERT_EQ(lost_lines().size(), 1U);
  EXPECT_TRUE(lost_lines()[0].starts_with("worker.states_lost type=job shards=1 entities=1"));
}

// An entity of this process with a state.
class Keeper final : public Entity {
 public:
  void handle(Delivery&) override {}
  bool save(std::string& state) override {
    state = "s";
    return true;
  }
};

TEST_F(WorkerPartingTest, SoAreThoseOfThisProcess) {
  pass(a_, [&] {
    a_.host_type("kept", [](const Context&) { return std::make_unique<Keeper>(); });
    a_.own("kept", 2);
    (void)a_.plane->tell({"kept", "x", "do", ""});
    (void)a_.plane->tell({"kept", "y", "do", ""});
  });
  pass(a_, [&] { a_.owner("kept", kNoNode, 3); });
  later(100ms);
  pass(a_);
  EXPECT_EQ(counted("states_lost"), 2U);
  ASSERT_EQ(lost_lines().size(), 1U);
  EXPECT_TRUE(lost_lines()[0].starts_with("entity.states_lost type=kept ")) << lost_lines()[0];
}

TEST_F(WorkerPartingTest, WelcomeTellsAWorkerItsLease) {
  DataConfig config;
  config.worker_lease = 2500ms;
  TestNode node(1, config);
  std::string bytes;
  wire::Hello hello;
  hello.role = wire::Role::worker;
  hello.sender = 7;
  wire::encode(bytes, hello);
  pass(node, [&] { node.plane->front().on_frame(kFirst, false, bytes); });
  const Envelopes got(node.wire.front[kFirst]);
  wire::Welcome welcome;
  ASSERT_EQ(wire::decode(got.all.at(0), welcome), Errc::ok);
  EXPECT_EQ(welcome.worker_lease_ms, 2500U);
}

}  // namespace
}  // namespace shardbus::runtime
