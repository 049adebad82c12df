// Shards that leave a node: large ones one after the other, and what waits goes on with its work.
#include <gmock/gmock.h>

#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

// Keeps its id as its state, so that every entity travels.
class Keeper final : public Entity {
 public:
  void handle(Delivery& delivery) override {
    if (delivery.port.valid()) (void)delivery.port.state()->answer({Errc::ok, {}, {}});
  }
  bool save(std::string& state) override {
    state = "kept";
    return true;
  }
};

DataConfig at_once(std::uint32_t entities) {
  DataConfig config;
  config.leaving_entities = entities;
  return config;
}

class MoveQueueTest : public TwoPlanesTest {
 protected:
  explicit MoveQueueTest(DataConfig config = at_once(3)) : TwoPlanesTest(std::move(config)) {
    connect();
    const auto make = [](const Context&) { return std::make_unique<Keeper>(); };
    pass(b_, [&] { b_.host_type("keep", make); });
    pass(a_, [&] {
      a_.host_type("keep", make);
      a_.own("keep");
    });
    for (int i = 0; i < 8; ++i) {
      for (std::uint32_t shard = 0; shard < kShards; ++shard) wake(ShardId{shard}, i);
    }
  }

  // The n-th entity of a shard handles a message.
  Errc wake(ShardId shard, int n) {
    int seen = 0;
    for (int i = 0;; ++i) {
      const std::string id = std::to_string(i);
      if (shard_of(id, kShards) != shard || seen++ < n) continue;
      Outcome outcome;
      pass(a_, [&] { a_.ask({"keep", id, "wake", ""}, 1s, outcome); });
      return outcome.times == 1 ? outcome.error : Errc::timeout;
    }
  }
  void begin(TestNode& node, std::uint32_t shard, std::uint64_t number = 2) {
    node.plane->dispatch().on_region_command(
        key_of(9), BeginHandoff{{"keep", ShardId{shard}}, TestNode::generation(number), key_of(2)});
  }
  void begin_all() {
    pass(a_, [&] {
      for (std::uint32_t i = 0; i < kShards; ++i) begin(a_, i);
    });
  }
  std::vector<RegionState> states(TestNode& node) {
    std::vector<RegionState> all;
    for (const Shard& shard : node.plane->dispatch().find_type("keep")->shards)
      all.push_back(shard.region.state());
    return all;
  }
  std::size_t waiting() { return a_.plane->dispatch().waiting_moves(); }
};

using testing::Each;
using testing::ElementsAre;

TEST_F(MoveQueueTest, LargeShardsLeaveOneAfterTheOther) {
  begin_all();
  EXPECT_THAT(states(a_), ElementsAre(RegionState::sending, RegionState::owner, RegionState::owner,
                                      RegionState::owner));
  EXPECT_EQ(waiting(), 3U);
  move(a_, b_);  // the stream
  EXPECT_EQ(waiting(), 3U) << "it is through when it is acknowledged";
  move(b_, a_);
  EXPECT_THAT(states(a_), ElementsAre(RegionState::forward, RegionState::sending,
                                      RegionState::owner, RegionState::owner));
  exchange();
  EXPECT_EQ(waiting(), 0U);
  EXPECT_THAT(states(a_), Each(RegionState::forward));
  EXPECT_THAT(states(b_), Each(RegionState::owner));
}

TEST_F(MoveQueueTest, WhatWaitsForItsTurnGoesOnWithItsWork) {
  begin_all();
  EXPECT_EQ(wake(ShardId{1}, 0), Errc::ok);
  EXPECT_EQ(wake(ShardId{0}, 0), Errc::timeout) << "it has left";
}

TEST_F(MoveQueueTest, ARepeatedCommandWaitsOnceAndANewerOneTakesItsPlace) {
  begin_all();
  pass(a_, [&] { begin(a_, 1); });
  EXPECT_EQ(waiting(), 3U);
  pass(a_, [&] { begin(a_, 1, 7); });
  EXPECT_EQ(waiting(), 3U);
  exchange();
  EXPECT_EQ(b_.plane->dispatch().find_type("keep")->shards[1].region.generation(),
            TestNode::generation(7));
}

TEST_F(MoveQueueTest, WhatWasOrderedByAnOlderTermDoesNotBegin) {
  begin_all();
  pass(a_, [&] {
    a_.plane->dispatch().on_region_command(key_of(9), ReportRequest{Term{2}, key_of(9)});
  });
  exchange();
  EXPECT_EQ(waiting(), 0U);
  EXPECT_THAT(states(a_), ElementsAre(RegionState::forward, RegionState::owner, RegionState::owner,
                                      RegionState::owner));
}

TEST_F(MoveQueueTest, NothingWaitsForANodeThatIsGone) {
  begin_all();
  pass(a_, [&] { a_.plane->bury(info_of(2).key); });
  pass(a_);
  EXPECT_EQ(waiting(), 0U);
  EXPECT_THAT(states(a_), ElementsAre(RegionState::none, RegionState::owner, RegionState::owner,
                                      RegionState::owner));
}

class SmallShardsTest : public MoveQueueTest {
 protected:
  SmallShardsTest() : MoveQueueTest(at_once(16)) {}
};

TEST_F(SmallShardsTest, SmallOnesLeaveTogether) {
  begin_all();
  EXPECT_THAT(states(a_), ElementsAre(RegionState::sending, RegionState::sending,
                                      RegionState::owner, RegionState::owner));
  exchange();
  EXPECT_THAT(states(b_), Each(RegionState::owner));
}

// A handler that does not end keeps its own shard only.
TEST_F(PlaneTest, AHandlerThatDoesNotEndHoldsUpNoOtherShard) {
  LateExecutor executor;
  TestNode node(1, at_once(0), &executor);
  pass(node, [&] {
    node.host("echo");
    node.own("echo");
  });
  const ShardId busy = shard_of("id", kShards);
  const ShardId other{(busy.value + 1) % kShards};
  const auto begin = [&](ShardId shard) {
    node.plane->dispatch().on_region_command(
        key_of(9), BeginHandoff{{"echo", shard}, TestNode::generation(2), key_of(2)});
  };
  const auto state = [&](ShardId shard) {
    return node.plane->dispatch().find_type("echo")->shards[shard.value].region.state();
  };
  Outcome running;
  pass(node, [&] {
    node.ask({"echo", "id", "silence", "x"}, 60s, running);
    executor.begin();
    begin(busy);
    begin(other);
  });
  EXPECT_EQ(state(other), RegionState::owner);
  EXPECT_LE(node.plane->next_deadline(), now_ + 5ms);
  later(25ms);
  pass(node);
  EXPECT_EQ(state(busy), RegionState::owner) << "its handler runs";
  EXPECT_EQ(state(other), RegionState::sending);
}

}  // namespace
}  // namespace shardbus::runtime
