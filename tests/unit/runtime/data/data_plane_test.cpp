// Asks of this process: answered here, over a link, and ended when their way is gone.
#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

// Throws what is no std::exception wherever it can.
class Thrower final : public Entity {
 public:
  void handle(Delivery& delivery) override {
    if (delivery.method == "throw") throw 7;
    (void)delivery.port.state()->answer({Errc::ok, {}, {}});
  }
  bool save(std::string&) override { throw 7; }
};

using DataPlaneTest = TwoPlanesTest;

TEST_F(DataPlaneTest, LocalEntityAnswers) {
  pass(a_, [&] {
    a_.host("echo");
    a_.own("echo");
  });
  Outcome outcome;
  ask_a(outcome);
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::ok);
  EXPECT_EQ(outcome.payload, "hello");
}

// After a pause nothing is handled before the control loop has judged whether the node is still a
// member: not what was on its way, nor what this process itself sends.
TEST_F(DataPlaneTest, NothingIsHandledBeforeAPauseIsJudged) {
  pass(a_, [&] {
    a_.host("echo");
    a_.own("echo");
  });
  Outcome outcome;
  a_.listener.looks = false;
  ask_a(outcome);
  EXPECT_TRUE(a_.plane->held());
  EXPECT_EQ(outcome.times, 0);
  EXPECT_LE(a_.plane->next_deadline(), now_ + 1ms);
  a_.listener.looks = true;
  pass(a_);
  EXPECT_EQ(outcome.error, Errc::ok);
  EXPECT_EQ(outcome.payload, "hello");
}

TEST_F(DataPlaneTest, WhatComesAfterAPauseInTheMidstOfAPassWaitsForTheJudgement) {
  pass(a_, [&] {
    a_.host("echo");
    a_.own("echo");
  });
  Outcome outcome;
  pass(a_, [&] {
    a_.listener.looks = false;
    a_.plane->look(now_);
    a_.ask({"echo", "e", "say", "hello"}, 1000ms, outcome);
  });
  EXPECT_TRUE(a_.plane->held());
  EXPECT_EQ(outcome.times, 0);
  a_.listener.looks = true;
  pass(a_);
  EXPECT_EQ(outcome.error, Errc::ok);
}

// A smart client's first messages go in the node's name, and its fence is answered before they run.
TEST_F(DataPlaneTest, WhatAClientSendsDirectlyWaitsBehindWhatWentInTheNodesName) {
  pass(a_, [&] {
    a_.host("echo");
    a_.own("echo");
  });
  std::vector<std::string> order;
  const auto noted = [&](const ReplyView& reply) { order.emplace_back(reply.payload); };
  a_.listener.looks = false;  // so that it waits
  pass(a_, [&] { a_.plane->ask({"echo", "e", "say", "1"}, 1000ms, noted); });
  a_.listener.looks = true;
  pass(a_, [&] {
    wire::Message message;
    message.kind = wire::Kind::ask;
    message.type = "echo";
    message.id = "e";
    message.method = "say";
    message.payload = "2";
    AskOrigin origin;
    origin.callback = noted;
    (void)a_.plane->dispatch().submit_direct(77, message, now_ + 1s, origin, nullptr);
  });
  EXPECT_EQ(order, (std::vector<std::string>{"1", "2"}));
}

TEST_F(DataPlaneTest, WhatWaitsForTheJudgementEndsWithTheOldIncarnation) {
  pass(a_, [&] {
    a_.host("echo");
    a_.own("echo");
  });
  Outcome outcome;
  a_.listener.looks = false;
  ask_a(outcome);
  pass(a_, [&] { a_.plane->retire("paused"); });
  a_.listener.looks = true;
  pass(a_);
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::stale_owner) << "it has not begun";
}

TEST_F(DataPlaneTest, WhoLeavesWaitsForWhatHasNotGoneOut) {
  EXPECT_TRUE(a_.plane->parted());
  Outcome outcome;
  ask_a(outcome);
  EXPECT_FALSE(a_.plane->parted());
}

TEST_F(DataPlaneTest, WhatWaitsForAnOwnerMayBeAskedAgainOfTheNextIncarnation) {
  Outcome outcome;
  ask_a(outcome);
  EXPECT_EQ(outcome.times, 0);
  pass(a_, [&] { a_.plane->retire("a newer incarnation is known"); });
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::not_ready);
}

// What a callback sends waits until it has returned; what comes then is behind it.
TEST_F(DataPlaneTest, AMessageDoesNotOvertakeWhatACallbackSent) {
  std::vector<std::string> notes;
  pass(a_, [&] {
    a_.host_type("log", [&](const Context&) { return std::make_unique<Recorder>(notes); });
    a_.own("log");
  });
  pass(a_, [&] {
    a_.plane->ask({"log", "x", "note", "first"}, 1s, [&](const ReplyView&) {
      (void)a_.plane->tell({"log", "y", "note", "from the callback"});
    });
    (void)a_.plane->tell({"log", "y", "note", "after it"});
  });
  EXPECT_EQ(notes, (std::vector<std::string>{"first", "from the callback", "after it"}));
}

// The same where the first message still waited for its owner, with others behind it.
TEST_F(DataPlaneTest, ACallbackDoesNotOvertakeWhatIsStillHeld) {
  LateExecutor executor;
  TestNode node(1, {}, &executor);
  std::vector<std::string> notes;
  EntityType type;
  type.name = "log";
  type.options.shard_count = 1;
  type.options.mailbox_messages = 1;
  type.create = [&](const Context&) { return std::make_unique<Recorder>(notes); };
  int refused = 0;
  pass(node, [&] {
    EXPECT_EQ(node.plane->host(std::move(type)), Errc::ok);
    for (int i = 0; i < 3; ++i) {  // one runs, one waits, one is refused at once
      node.plane->ask({"log", "x", "note", "asked"}, 1s, [&](const ReplyView& reply) {
        if (reply.ok()) return;
        ++refused;
        (void)node.plane->tell({"log", "y", "note", "from the callback"});
      });
    }
    (void)node.plane->tell({"log", "y", "note", "held before"});
  });
  pass(node, [&] {
    node.plane->dispatch().on_region_command(
        key_of(1), RehomeShard{{"log", ShardId{0}}, 1, TestNode::generation(), {}});
    TypeTable rows{"log", 1, {TableEntry{key_of(1), TestNode::generation()}}};
    node.plane->dispatch().on_table({TableVersion{Term{1}, NodeKey{9}, 1}, {rows}});
  });
  pass(node, [&] { executor.run(); });
  EXPECT_EQ(refused, 1);
  std::erase(notes, "asked");
  EXPECT_EQ(notes, (std::vector<std::string>{"held before", "from the callback"}));
}

TEST_F(DataPlaneTest, APlaneThatFollowsAnotherCountsOn) {
  TestNode former(1);
  pass(former, [&] {
    former.host("echo");
    former.own("echo");
  });
  Outcome outcome;
  pass(former, [&] { former.ask({"echo", "x", "say", {}}, 1s, outcome); });
  ASSERT_EQ(outcome.times, 1);
  later(5s);
  pass(former);
  const auto before = former.plane->status().counters;
  EXPECT_EQ(before.at("replies") + before.at("errors_answered"), 1U);
  TestNode next(1);
  pass(next, [&] { next.plane->count_on(*former.plane); });
  const auto after = next.plane->status().counters;
  for (const std::string_view name : kCountNames) {
    EXPECT_EQ(after.at(std::string(name)), before.at(std::string(name))) << name;
  }
  EXPECT_GE(next.plane->uptime(), 5s);
}

TEST_F(DataPlaneTest, SaysInWordsWhyShardsCannotBeReached) {
  TestNode node(1);
  pass(node, [&] {
    node.host("echo");
    node.owner("echo", key_of(2));
    node.plane->bury(key_of(2));
  });
  EXPECT_EQ(node.plane->status().unsettled,
            "shard 0 of echo was owned by a node that is gone, and has no new owner yet, and " +
                std::to_string(kShards - 1) + " more shards wait");
}

// Its handler still runs when the shard has moved on without what it does.
TEST_F(DataPlaneTest, WhatAnEntityThatWasLeftBehindAnswersDoesNotCount) {
  LateExecutor executor;
  TestNode node(1, {}, &executor);
  pass(node, [&] {
    node.host("echo");
    node.own("echo");
  });
  Outcome running;
  Outcome waiting;
  pass(node, [&] {
    node.ask({"echo", "id", "silence", "x"}, 60s, running);
    node.ask({"echo", "id", "say", "x"}, 60s, waiting);
    executor.begin();
    node.plane->dispatch().on_region_command(
        key_of(9),
        BeginHandoff{{"echo", shard_of("id", kShards)}, TestNode::generation(2), key_of(2)});
  });
  later(node.plane->config().handoff_timeout);
  pass(node);
  EXPECT_EQ(running.error, Errc::unknown_outcome);
  pass(node, [&] { executor.run(); });
  EXPECT_EQ(running.times, 1);
  EXPECT_EQ(waiting.error, Errc::stale_owner);
  EXPECT_EQ(waiting.times, 1);
}

// Neither a move nor a loss of the shard waits for what the pool has not begun, and the pool never
// begins it.
TEST_F(DataPlaneTest, WhatThePoolHasNotBegunMovesOn) {
  LateExecutor executor;
  TestNode node(1, {}, &executor);
  std::vector<std::string> notes;
  pass(node, [&] {
    node.host_type("log", [&](const Context&) { return std::make_unique<Recorder>(notes); });
    node.own("log");
  });
  const ShardName shard{"log", shard_of("id", kShards)};
  Outcome moved;
  pass(node, [&] {
    node.ask({"log", "id", "note", "x"}, 60s, moved);
    node.plane->dispatch().on_region_command(
        key_of(9), BeginHandoff{shard, TestNode::generation(2), key_of(2)});
  });
  EXPECT_EQ(node.plane->dispatch().find_type("log")->shards[shard.shard.value].region.state(),
            RegionState::sending);
  pass(node, [&] { executor.run(); });
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(moved.times, 0) << "whoever gets it answers";

  pass(node, [&] { node.own("log", 3); });
  Outcome lost;
  pass(node, [&] {
    node.ask({"log", "id", "note", "y"}, 60s, lost);
    node.owner("log", key_of(2), 4);
  });
  pass(node, [&] { executor.run(); });
  EXPECT_TRUE(notes.empty());
}

TEST_F(DataPlaneTest, AskOverALink) {
  connect();
  b_owns();
  Outcome outcome;
  ask_a(outcome);
  EXPECT_EQ(outcome.times, 0);
  exchange();
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.payload, "hello");
}

TEST_F(DataPlaneTest, TellsThatStillWaitAtTheEndAreCountedAndTold) {
  pass(a_, [&] {
    a_.host("echo");
    EXPECT_EQ(a_.plane->tell({"echo", "x", "say", "for an owner"}), Errc::ok);
    EXPECT_EQ(a_.plane->tell({"other", "x", "say", "for its type"}), Errc::ok);
    a_.plane->abandon(Errc::stopped, "the node stopped");
  });
  EXPECT_EQ(a_.plane->status().counters["tells_dropped"], 2U);
  EXPECT_EQ(a_.plane->status().counters["held_messages"], 0U);
}

TEST_F(DataPlaneTest, AHandlerSeesTheNodeThatSentTheMessage) {
  connect();
  b_owns();
  Outcome outcome;
  ask_a(outcome, "sender");
  exchange();
  EXPECT_EQ(outcome.payload, std::to_string(key_of(1).value));
}

// Of different senders nothing waits for what the other one sent; of one everything does.
TEST_F(DataPlaneTest, WhatAnotherNodeSendsDoesNotWaitForWhatACallbackSent) {
  std::vector<std::string> notes;
  connect();
  pass(b_, [&] {
    b_.host_type("log", [&](const Context&) { return std::make_unique<Recorder>(notes); });
    b_.own("log");
  });
  pass(a_, [&] { a_.owner("log", key_of(2)); });
  pass(a_, [&] { (void)a_.plane->tell({"log", "y", "note", "of the other node"}); });
  pass(b_, [&] {
    b_.plane->ask({"log", "y", "note", "first"}, 1s, [&](const ReplyView&) {
      (void)b_.plane->tell({"log", "y", "note", "from the callback"});
    });
    for (const auto& [node, frame] : a_.wire.link) b_.plane->peers().on_frame(1, frame);
    (void)b_.plane->tell({"log", "y", "note", "after it"});
  });
  EXPECT_EQ(notes, (std::vector<std::string>{"first", "of the other node", "from the callback",
                                             "after it"}));
}

TEST_F(DataPlaneTest, ManyAsksOverALinkRunIntoNoCreditTrap) {
  connect();
  b_owns();
  std::vector<Outcome> outcomes(40'000);  // more than twice the credit of a peer
  std::size_t sent = 0;
  while (sent < outcomes.size()) {
    pass(a_, [&] {
      for (int i = 0; i < 10'000; ++i) {
        a_.ask({"echo", "id", "say", "x"}, 1000ms, outcomes[sent++]);
      }
    });
    exchange();
  }
  for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.error, Errc::ok);
  for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.times, 1);
}

// The sender once counted fences and moves, and the receiver did not: in the end the link stood
// still.
TEST_F(DataPlaneTest, RoutingKindsUseNoCredit) {
  connect();
  b_owns();
  for (int i = 0; i < 20; ++i) {  // more than the credit of a peer
    pass(a_, [&] {
      for (int j = 0; j < 1000; ++j) {
        const wire::FenceOk answer{{"none", ShardId{0}}, 1, 1, {}, key_of(1), false};
        ASSERT_TRUE(a_.plane->links().send(key_of(2), answer));
      }
    });
    exchange();
  }
  Outcome outcome;
  ask_a(outcome);
  exchange();
  EXPECT_EQ(outcome.error, Errc::ok);
  EXPECT_EQ(a_.plane->links().waiting(), 0U);
}

TEST_F(DataPlaneTest, APingDoesNotOvertakeWhatTheSamePassSends) {
  connect();
  b_owns();
  later(2 * a_.plane->config().ping_interval);
  Outcome outcome;
  ask_a(outcome);
  exchange();
  EXPECT_EQ(outcome.error, Errc::ok);
  EXPECT_EQ(outcome.payload, "hello");
  EXPECT_EQ(b_.plane->status().counters["no_session"], 0U);
}

TEST_F(DataPlaneTest, MoreTypesThanTheProtocolAllowsAreNotTaken) {
  for (std::uint32_t i = 0; i < wire::kTypesMax; ++i) a_.host("t" + std::to_string(i));
  EXPECT_EQ(a_.plane->dispatch().add_type("one-more", kShards), nullptr);
  EXPECT_NE(a_.plane->dispatch().add_type("t7", kShards), nullptr);
}

TEST_F(DataPlaneTest, MoreShardsThanATableHoldsAreNotTaken) {
  EXPECT_NE(a_.plane->dispatch().add_type("large", 65536), nullptr);
  EXPECT_EQ(a_.plane->dispatch().add_type("larger", 16384), nullptr);
  EXPECT_NE(a_.plane->dispatch().add_type("small", 8192), nullptr);
}

// Whoever hears of an expired message may send the next one from within the callback.
TEST_F(DataPlaneTest, ExpiredAsksMayBeRepeatedInTheirCallbacks) {
  int left = 50;
  int ended = 0;
  std::function<void()> again = [&] {
    if (left-- <= 0) return;
    a_.plane->ask({"nobody", "id", "say", ""}, 10s, [&](const ReplyView& reply) {
      EXPECT_EQ(reply.error, Errc::no_such_type);
      ++ended;
      again();
    });
  };
  pass(a_, [&] {
    for (int i = 0; i < 10; ++i) again();
  });
  for (int i = 0; i < 20; ++i) {
    later(a_.plane->config().unknown_type_wait);
    pass(a_);
    later(1s);
    pass(a_);
  }
  EXPECT_EQ(ended, 50);
  EXPECT_EQ(a_.plane->status().counters["held_messages"], 0U);
  EXPECT_EQ(a_.plane->status().counters["held_bytes"], 0U);
}

TEST_F(DataPlaneTest, WaitingForTheTypeDoesNotShortenAnAsk) {
  connect();
  Outcome outcome;
  ask_a(outcome, "silence", 10'000ms);
  later(1500ms);
  pass(a_);
  b_owns();
  exchange();
  for (int i = 0; i < 8; ++i) {  // with the pings of the links
    later(1000ms);
    pass(a_);
    pass(b_);
    exchange();
  }
  EXPECT_EQ(outcome.times, 0);
  later(600ms);
  pass(a_);
  EXPECT_EQ(outcome.error, Errc::timeout);
}

// The last host of a type left: the table says that nobody owns its shards.
TEST_F(DataPlaneTest, WithoutAHostAnAskIsNoSuchTypeAfterTheWait) {
  connect();
  b_owns();
  Outcome first;
  ask_a(first);
  exchange();
  EXPECT_EQ(first.error, Errc::ok);
  pass(a_, [&] { a_.owner("echo", kNoNode, 2); });
  Outcome outcome;
  ask_a(outcome, "say", 10'000ms);
  EXPECT_TRUE(a_.wire.link.empty()) << "nothing goes to who gave the shard up";
  later(a_.plane->config().unknown_type_wait);
  pass(a_);
  EXPECT_EQ(outcome.error, Errc::no_such_type);
  ask_a(outcome, "say", 10'000ms);
  pass(a_, [&] { a_.owner("echo", key_of(2), 3); });  // it comes back
  exchange();
  EXPECT_EQ(outcome.error, Errc::ok);
}

// Its owner is gone and nobody takes its place: what waits for one must not wait for ever.
TEST_F(DataPlaneTest, WhatIsHeldForAnOwnerExpires) {
  connect();
  b_owns();
  pass(a_, [&] { a_.plane->bury(key_of(2)); });
  Outcome outcome;
  ask_a(outcome);
  pass(a_, [&] { EXPECT_EQ(a_.plane->tell({"echo", "id", "say", "x"}), Errc::ok); });
  EXPECT_EQ(a_.plane->status().counters["held_messages"], 2U);
  later(2s);
  pass(a_);
  EXPECT_EQ(outcome.error, Errc::expired);
  EXPECT_EQ(a_.plane->status().counters["held_messages"], 1U);
  later(a_.plane->config().held_wait);
  pass(a_);
  EXPECT_EQ(a_.plane->status().counters["held_messages"], 0U);
  EXPECT_EQ(a_.plane->status().counters["tells_dropped"], 1U);
}

TEST_F(DataPlaneTest, HeldMessagesAreBoundedInBytes) {
  const std::string big(1000 * 1000, 'x');
  pass(a_, [&] {
    Errc outcome = Errc::ok;
    for (int i = 0; i < 100 && outcome == Errc::ok; ++i) {
      outcome = a_.plane->tell({"nobody", "id", "say", big});
    }
    EXPECT_EQ(outcome, Errc::overloaded);
  });
  const auto counters = a_.plane->status().counters;
  EXPECT_LE(counters.at("held_bytes"), counters.at("held_bytes_limit"));
}

// More than the way back holds: whoever asked hears at once that there is no reply.
TEST_F(DataPlaneTest, RepliesWithoutRoomOnTheirWayEndTheirAsks) {
  connect();
  b_owns();
  std::vector<Outcome> outcomes(100);
  pass(a_, [&] {
    for (Outcome& outcome : outcomes) a_.ask({"echo", "id", "big", ""}, 1000ms, outcome);
  });
  exchange();
  int without = 0;
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.times, 1);
    without += outcome.error == Errc::unknown_outcome ? 1 : 0;
  }
  EXPECT_GT(without, 0);
  EXPECT_LT(without, 60);
}

TEST_F(DataPlaneTest, AReplyThatIsTooLargeIsAnError) {
  connect();
  b_owns();
  Outcome outcome;
  ask_a(outcome, "large");
  exchange();
  EXPECT_EQ(outcome.error, Errc::too_large);
}

// Messages of any size: no frame is longer than the other side takes.
TEST_F(DataPlaneTest, FramesKeepTheirLimit) {
  connect();
  b_owns();
  const std::string big(wire::kPayloadBytesMax, 'x');
  const std::string small(60'000, 'y');
  std::vector<Outcome> outcomes(8);
  pass(a_, [&] {
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      a_.ask({"echo", "id", "say", i % 2 == 0 ? small : big}, 1000ms, outcomes[i]);
    }
  });
  for (const auto& [node, frame] : a_.wire.link) EXPECT_LE(frame.size(), wire::kPeerFrameBytesMax);
  exchange();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, Errc::ok);
}

// Factories, handlers, save, load and callbacks may throw whatever they like.
TEST_F(DataPlaneTest, UserCodeThatThrowsHarmsNobody) {
  pass(a_, [&] {
    a_.host_type("bad", [](const Context&) { return std::make_unique<Thrower>(); });
    a_.host_type("none", [](const Context&) { return std::unique_ptr<Entity>(); });
    a_.own("bad");
    a_.own("none");
  });
  Outcome outcome;
  pass(a_, [&] { a_.ask({"none", "id", "say", ""}, 1000ms, outcome); });
  EXPECT_EQ(outcome.error, Errc::handler_failed);
  pass(a_, [&] { a_.ask({"bad", "id", "throw", ""}, 1000ms, outcome); });
  EXPECT_EQ(outcome.error, Errc::handler_failed);
  pass(a_, [&] {
    a_.plane->ask({"bad", "id", "say", ""}, 1000ms, [](const ReplyView&) { throw 7; });
  });
  const auto move = [&](std::uint64_t counter) {
    const Generation next{Term{1}, NodeKey{9}, counter};
    for (std::uint32_t i = 0; i < kShards; ++i) {
      a_.plane->dispatch().on_region_command(key_of(1),
                                             BeginHandoff{{"bad", ShardId{i}}, next, key_of(2)});
    }
  };
  pass(a_, [&] { move(5); });
  EXPECT_EQ(a_.plane->status().counters["states_lost"], 1U);
  EXPECT_EQ(a_.plane->status().shards_owned, kShards);  // those of "none"
}

// A joiner that was slow is forgotten and then comes in all the same.
TEST_F(DataPlaneTest, DeadNodeIsUnknownOutcomeAndTheNextAskWaitsForTheNextTable) {
  connect();
  b_owns();
  Outcome first;
  ask_a(first, "silence");
  exchange();
  pass(a_, [&] { a_.plane->bury(key_of(2)); });
  EXPECT_EQ(first.error, Errc::unknown_outcome);
  Outcome second;
  ask_a(second);
  EXPECT_EQ(second.times, 0);
  pass(a_, [&] { a_.owner("echo", key_of(2)); });  // an old table still names it
  EXPECT_EQ(second.times, 0);
  pass(a_, [&] {
    a_.host("echo");
    const Generation next{Term{1}, NodeKey{9}, 2};
    TypeTable rows{"echo", kShards, {}};
    rows.entries.assign(kShards, TableEntry{key_of(1), next});
    for (std::uint32_t i = 0; i < kShards; ++i) {
      a_.plane->dispatch().on_region_command(key_of(1),
                                             RehomeShard{{"echo", ShardId{i}}, kShards, next, {}});
    }
    a_.plane->dispatch().on_table({TableVersion{Term{1}, NodeKey{9}, 2}, {rows}});
  });
  EXPECT_EQ(second.times, 1);
  EXPECT_EQ(second.payload, "hello");
}

TEST_F(DataPlaneTest, DeadlineOfASentAskIsATimeout) {
  connect();
  b_owns();
  Outcome outcome;
  ask_a(outcome, "silence", 100ms);
  exchange();
  later(99ms);
  pass(a_);
  EXPECT_EQ(outcome.times, 0);
  EXPECT_LE(a_.plane->next_deadline(), now_ + 10ms);
  later(10ms);
  pass(a_);
  EXPECT_EQ(outcome.error, Errc::timeout);
  EXPECT_EQ(outcome.times, 1);
}

TEST_F(DataPlaneTest, DeadlineOfAHeldAskIsNotDelivered) {
  pass(a_, [&] { a_.host("echo"); });  // nobody owns its shards yet
  Outcome outcome;
  ask_a(outcome, "say", 100ms);
  later(110ms);
  pass(a_);
  EXPECT_EQ(outcome.error, Errc::expired);
}

TEST_F(DataPlaneTest, AtTheEndWhatWasSentIsOfUnknownOutcome) {
  connect();
  b_owns();
  pass(a_, [&] { a_.host("other"); });  // nobody owns its shards yet
  Outcome sent;
  Outcome held;
  ask_a(sent, "silence");
  pass(a_, [&] { a_.ask({"other", "id", "say", "x"}, 1000ms, held); });
  exchange();
  pass(a_, [&] { a_.plane->abandon(Errc::stopped, "the node stops"); });
  EXPECT_EQ(sent.error, Errc::unknown_outcome);
  EXPECT_EQ(held.error, Errc::stopped);
}

TEST_F(DataPlaneTest, UnknownTypeAfterTheWait) {
  Outcome outcome;
  ask_a(outcome, "say", 5000ms);
  later(1900ms);
  pass(a_);
  EXPECT_EQ(outcome.times, 0);
  later(200ms);
  pass(a_);
  EXPECT_EQ(outcome.error, Errc::no_such_type);
}

TEST_F(DataPlaneTest, ATypeThatAppearsInTimeIsServed) {
  Outcome outcome;
  ask_a(outcome, "say", 5000ms);
  later(1000ms);
  pass(a_, [&] {
    a_.host("echo");
    a_.own("echo");
  });
  EXPECT_EQ(outcome.payload, "hello");
}

// A callback that asks again at once, many times over.
struct Chain {
  TestNode& node;
  int left;
  int deepest = 0;
  int depth = 0;
  void next() {
    if (left-- <= 0) return;
    node.plane->ask({"echo", "id", "say", ""}, 1000ms, [this](const ReplyView&) {
      deepest = std::max(deepest, ++depth);
      next();
      --depth;
    });
  }
};

TEST_F(DataPlaneTest, AfterTheEndEveryCallIsRefused) {
  Outcome outcome;
  pass(a_, [&] { a_.plane->abandon(Errc::stopped, "the test stops"); });
  pass(a_, [&] {
    EXPECT_EQ(a_.plane->tell({"echo", "x", "say", {}}), Errc::stopped);
    a_.plane->ask({"echo", "x", "say", {}}, 1s, [&](const ReplyView& reply) {
      ++outcome.times;
      outcome.error = reply.error;
    });
  });
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::stopped);
  pass(a_, [&] { a_.plane->ask({"echo", "x", "say", {}}, 1s, [](const ReplyView&) { throw 1; }); });
}

TEST_F(DataPlaneTest, CallbacksThatAskAgainDoNotRecurse) {
  pass(a_, [&] {
    a_.host("echo");
    a_.own("echo");
  });
  Chain chain{a_, 100'000};
  pass(a_, [&] { chain.next(); });
  EXPECT_GT(chain.left, 0) << "a chain must not hold up the network";
  while (a_.plane->next_deadline() <= now_) pass(a_);
  EXPECT_LT(chain.left, 0);
  EXPECT_LE(chain.deepest, 8);
}

TEST_F(DataPlaneTest, CallbacksThatAreRefusedAndAskAgainDoNotRecurse) {
  Chain chain{a_, 100'000};
  pass(a_, [&] {
    chain.left = 100'000;
    a_.plane->ask({"$none", "", "x", ""}, 1000ms, [&](const ReplyView&) {});
  });
  DataConfig config;
  config.pending_asks = 0;
  TestNode full(3, config);
  Chain refused{full, 100'000};
  pass(full, [&] { refused.next(); });
  while (full.plane->next_deadline() <= now_) pass(full);
  EXPECT_LT(refused.left, 0);
  EXPECT_LE(refused.deepest, 8);
}

// A coordinator that takes over ends a move of its predecessor's term.
TEST_F(DataPlaneTest, FreezeOfAnOlderTermIsAnswered) {
  pass(a_, [&] {
    a_.host("echo");
    const ShardName shard{"echo", ShardId{0}};
    const Generation old{Term{1}, NodeKey{9}, 5};
    a_.plane->dispatch().on_region_command(key_of(1), PrepareHandoff{shard, old, key_of(2)});
    a_.plane->dispatch().on_region_command(key_of(1), ReportRequest{Term{2}, key_of(1)});
    a_.listener.control.clear();
    a_.plane->dispatch().on_region_command(key_of(1), FreezeShard{shard, old, key_of(2)});
  });
  ASSERT_EQ(a_.listener.control.size(), 1U);
  const auto* answer = std::get_if<RegionAnswer>(&a_.listener.control[0]);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->kind, RegionAnswerKind::frozen);
}

// Found by the simulator: an older owner, whose ACK was lost, would go on with what was handled
// here and beyond.
TEST_F(DataPlaneTest, WhatWasGivenToADeadNodeIsReported) {
  connect();
  const NodeKey self = a_.plane->config().self.key;
  const ShardName shard{"echo", ShardId{1}};
  pass(a_, [&] {
    a_.host("echo");
    a_.own("echo");
  });
  pass(a_, [&] {
    a_.plane->dispatch().on_region_command(self,
                                           BeginHandoff{shard, TestNode::generation(2), key_of(2)});
  });
  pass(a_, [&] { a_.plane->dispatch().on_gone(key_of(2), "its process ended"); });
  pass(a_, [&] {
    a_.plane->dispatch().on_region_command(self, ReportRequest{Term{1}, NodeKey{9}});
  });
  ASSERT_FALSE(a_.listener.control.empty());
  const auto& report = std::get<RegionReport>(a_.listener.control.back());
  const auto line = std::find_if(report.shards.begin(), report.shards.end(),
                                 [&](const auto& one) { return one.shard == shard; });
  ASSERT_NE(line, report.shards.end());
  EXPECT_EQ(line->state, RegionState::forward);
  EXPECT_EQ(line->generation, TestNode::generation(2));
  EXPECT_EQ(line->other, key_of(2));
}

}  // namespace
}  // namespace shardbus::runtime
