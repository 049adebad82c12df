// Entities of strict types run only while this node has a majority behind it.
#include <array>

#include "unit/runtime/data/plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

class StrictTest : public PlaneTest {
 protected:
  StrictTest() : StrictTest(nullptr) {}
  explicit StrictTest(Executor* executor) : node_(1, config(), executor) {
    pass(node_, [&] {
      EntityType type;
      type.name = "log";
      type.options.shard_count = kShards;
      type.options.consistency = Consistency::strict;
      type.create = [this](const Context&) { return std::make_unique<Late>(*this); };
      EXPECT_EQ(node_.plane->host(std::move(type)), Errc::ok);
      node_.own("log");
    });
  }

  // Takes its time; "ask" keeps its port for later.
  class Late final : public Entity {
   public:
    explicit Late(StrictTest& test) : test_(test) {}
    void handle(Delivery& delivery) override {
      test_.notes_.emplace_back(delivery.payload);
      if (delivery.method == "answer_first") {
        (void)delivery.port.state()->answer({Errc::ok, {}, "done"});
      }
      test_.now_ += test_.handler_takes_;
      if (delivery.method == "tell_on") {
        test_.told_ = delivery.context->messenger()->tell({"log", "other", "note", "told"});
      }
      if (delivery.method == "keep") {
        *test_.keep_ = std::move(delivery.port);
        return;
      }
      if (delivery.port.valid()) (void)delivery.port.state()->answer({Errc::ok, {}, "done"});
    }

   private:
    StrictTest& test_;
  };

  DataConfig config() {
    DataConfig config;
    config.clock = [this] { return now_; };
    config.buffered_messages = 3;
    return config;
  }
  void right_for(Duration time) {
    pass(node_, [&] { node_.plane->set_strict_until(now_ + time); });
  }
  void note(const std::string& text, Outcome& outcome, milliseconds timeout = 5s,
            std::string_view method = "note") {
    pass(node_, [&] { node_.ask({"log", "id", method, text}, timeout, outcome); });
  }

  std::vector<std::string> notes_;
  Duration handler_takes_{};
  Status told_;
  AnyReplyPort* keep_ = nullptr;
  TestNode node_;
};

TEST_F(StrictTest, WithoutARightMessagesWaitAndKeepTheirOrder) {
  Outcome first, second, third;
  note("1", first);
  note("2", second);
  EXPECT_TRUE(notes_.empty());
  EXPECT_EQ(node_.plane->status().counters.at("strict_waiting"), 2U);
  right_for(1s);
  EXPECT_EQ(notes_, (std::vector<std::string>{"1", "2"}));
  note("3", third);
  EXPECT_EQ(third.payload, "done");
  EXPECT_EQ(node_.plane->status().counters.at("strict_waiting"), 0U);
}

TEST_F(StrictTest, NoHandlerStartsOnceTheRightIsOver) {
  right_for(1s);
  later(1s);
  Outcome late;
  note("late", late, 2s);
  EXPECT_TRUE(notes_.empty());
  later(2s);
  pass(node_);
  EXPECT_EQ(late.times, 1);
  EXPECT_FALSE(error_info(late.error).may_have_happened) << "it has certainly not been handled";
  right_for(1s);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(StrictTest, WhatWaitsIsBounded) {
  std::array<Outcome, 4> outcomes;
  for (Outcome& outcome : outcomes) note("x", outcome);
  EXPECT_EQ(outcomes.back().error, Errc::overloaded);
  EXPECT_EQ(outcomes.front().times, 0);
}

TEST_F(StrictTest, AnAnswerThatComesTooLateIsOfUnknownOutcome) {
  right_for(1s);
  handler_takes_ = 2s;
  Outcome outcome;
  note("long", outcome, 60s, "tell_on");
  EXPECT_EQ(notes_, (std::vector<std::string>{"long"}));
  EXPECT_EQ(outcome.error, Errc::unknown_outcome);
  EXPECT_EQ(told_.code(), Errc::not_ready) << "nothing else gets out either";
}

// A pass may stand still between the answer and the batch: handlers behind it take time as well.
TEST_F(StrictTest, AnAnswerThatWasGivenInTimeButLeavesTooLateIsOfUnknownOutcome) {
  right_for(1s);
  Outcome in_time;
  note("short", in_time, 60s, "answer_first");
  EXPECT_EQ(in_time.payload, "done");
  handler_takes_ = 2s;
  Outcome late;
  note("long", late, 60s, "answer_first");
  EXPECT_EQ(late.times, 1);
  EXPECT_EQ(late.error, Errc::unknown_outcome);
}

TEST_F(StrictTest, APassThatIsHeldHoldsAnswersAndJudgesThemAfterwards) {
  right_for(1s);
  Outcome outcome;
  AnyReplyPort kept;
  keep_ = &kept;
  note("x", outcome, 60s, "keep");
  pass(node_, [&] {
    (void)kept.state()->answer({Errc::ok, {}, "done"});
    node_.listener.looks = false;
    node_.plane->begin(now_);
  });
  EXPECT_EQ(outcome.times, 0);
  later(2s);
  node_.listener.looks = true;
  pass(node_);
  EXPECT_EQ(outcome.error, Errc::unknown_outcome);
}

TEST_F(StrictTest, WhatWaitsMovesOnWithTheShard) {
  Outcome outcome;
  note("x", outcome);
  const ShardName shard{"log", shard_of("id", kShards)};
  pass(node_, [&] {
    node_.plane->dispatch().on_region_command(
        key_of(9), BeginHandoff{shard, TestNode::generation(2), key_of(2)});
  });
  EXPECT_EQ(node_.plane->dispatch().find_type("log")->shards[shard.shard.value].region.state(),
            RegionState::sending);
  right_for(1s);
  EXPECT_TRUE(notes_.empty());
  EXPECT_EQ(node_.plane->status().counters.at("strict_waiting"), 0U);
}

TEST_F(StrictTest, ARetiredPlaneHasNoRight) {
  right_for(60s);
  pass(node_, [&] { node_.plane->retire("the node lost its place"); });
  Outcome outcome;
  note("x", outcome);
  EXPECT_TRUE(notes_.empty());
}

// A strict type on B, which has no majority; A asks.
class StrictForwardTest : public TwoPlanesTest {
 protected:
  StrictForwardTest() {
    connect();
    pass(b_, [&] {
      EntityType type;
      type.name = "echo";
      type.options.shard_count = kShards;
      type.options.consistency = Consistency::strict;
      type.create = [](const Context&) { return std::make_unique<Echo>(); };
      EXPECT_EQ(b_.plane->host(std::move(type)), Errc::ok);
      b_.own("echo");
    });
    pass(a_, [&] { a_.owner("echo", key_of(2)); });
  }
};

TEST_F(StrictForwardTest, TheAskerHearsThatTheOwnerHasNoMajorityBeforeItsOwnDeadline) {
  Outcome outcome;
  ask_a(outcome, "say", 100ms);
  exchange();
  EXPECT_LE(b_.plane->next_deadline(), now_ + 80ms);
  later(80ms);
  pass(b_);
  exchange();
  EXPECT_EQ(outcome.error, Errc::expired);
  EXPECT_EQ(b_.plane->status().counters.at("strict_waiting"), 0U);
}

class StrictPoolTest : public StrictTest {
 protected:
  StrictPoolTest() : StrictTest(&executor_) {}
  LateExecutor executor_;
};

TEST_F(StrictPoolTest, ThePoolAsksAgainWhenItsTurnComes) {
  right_for(1s);
  Outcome outcome;
  note("x", outcome);
  later(1s);
  pass(node_, [&] { executor_.run(); });
  EXPECT_TRUE(notes_.empty());
  right_for(1s);
  pass(node_, [&] { executor_.run(); });
  EXPECT_EQ(notes_, (std::vector<std::string>{"x"}));
  EXPECT_EQ(outcome.payload, "done");
}

TEST_F(StrictPoolTest, WhatWaitsForTheRightEndsByItsDeadlineAndIsCounted) {
  Outcome late, kept;
  note("late", late, 1s);
  note("kept", kept, 60s);
  EXPECT_EQ(node_.plane->status().counters.at("strict_waiting"), 2U);
  later(1s);
  pass(node_);
  EXPECT_EQ(late.times, 1);
  EXPECT_FALSE(error_info(late.error).may_have_happened) << "it has certainly not been handled";
  EXPECT_EQ(node_.plane->status().counters.at("strict_waiting"), 1U);
  right_for(1s);
  pass(node_, [&] { executor_.run(); });
  EXPECT_EQ(notes_, (std::vector<std::string>{"kept"}));
  EXPECT_EQ(kept.payload, "done");
  EXPECT_EQ(node_.plane->status().counters.at("strict_waiting"), 0U);
}

TEST_F(StrictPoolTest, WhatWaitsForTheRightIsBounded) {
  std::array<Outcome, 4> outcomes;
  for (Outcome& outcome : outcomes) note("x", outcome);
  EXPECT_EQ(outcomes.back().error, Errc::overloaded);
  EXPECT_EQ(outcomes.front().times, 0);
}

TEST_F(StrictPoolTest, MailboxesThatLoseTheRightShareTheBound) {
  right_for(1s);
  std::array<Outcome, 6> outcomes;
  for (Outcome& outcome : outcomes) note("x", outcome, 60s);
  executor_.begin();
  later(1s);
  pass(node_, [&] { executor_.run(); });
  EXPECT_EQ(node_.plane->status().counters.at("strict_waiting"), 3U);
  EXPECT_EQ(outcomes.at(3).times, 0);
  EXPECT_EQ(outcomes.at(4).error, Errc::overloaded);
  EXPECT_EQ(outcomes.at(5).error, Errc::overloaded);
}

TEST_F(StrictPoolTest, WhatWaitedBehindAHandlerKeepsItsOrderWithoutARight) {
  right_for(1s);
  std::array<Outcome, 5> outcomes;
  note("1", outcomes[0]);
  note("2", outcomes[1]);
  executor_.begin();
  later(1s);
  note("3", outcomes[2]);
  pass(node_, [&] { executor_.run(); });
  EXPECT_EQ(node_.plane->status().counters.at("strict_waiting"), 2U);
  note("4", outcomes[3]);
  pass(node_, [&] {
    node_.plane->set_strict_until(now_ + 1s);
    node_.ask({"log", "id", "note", "5"}, 5s, outcomes[4]);
  });
  pass(node_, [&] { executor_.run(); });
  EXPECT_EQ(notes_, (std::vector<std::string>{"1", "2", "3", "4", "5"}));
}

TEST_F(StrictPoolTest, WhatWaitsMovesOnWithTheShard) {
  right_for(1s);
  Outcome running, behind, waits;
  note("running", running);
  note("behind", behind);
  executor_.begin();
  later(1s);
  note("waits", waits);
  const ShardName shard{"log", shard_of("id", kShards)};
  pass(node_, [&] {
    node_.plane->dispatch().on_region_command(
        key_of(9), BeginHandoff{shard, TestNode::generation(2), key_of(2)});
    node_.plane->set_strict_until(now_ + 1s);
  });
  pass(node_, [&] { executor_.run(); });
  EXPECT_EQ(notes_, (std::vector<std::string>{"running"}));
  EXPECT_EQ(node_.plane->dispatch().find_type("log")->shards[shard.shard.value].region.state(),
            RegionState::sending);
  EXPECT_EQ(node_.plane->status().counters.at("strict_waiting"), 0U);
}

}  // namespace
}  // namespace shardbus::runtime
