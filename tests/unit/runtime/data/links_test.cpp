// Links: who gets one, when they break or are given up, and what becomes of what they had.
#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

using LinksTest = TwoPlanesTest;

TEST_F(LinksTest, AStrangerThatWasLetGoMayComeAgain) {
  connect();
  b_owns();
  pass(a_, [&] { a_.plane->let_go(key_of(2)); });
  pass(a_, [&] { a_.plane->connect(info_of(2)); });
  later(60s);
  pass(a_);
  Outcome outcome;
  ask_a(outcome);
  exchange();
  EXPECT_EQ(outcome.error, Errc::ok);
}

TEST_F(LinksTest, ALinkForOneAnswerGoesByItself) {
  pass(a_, [&] { a_.plane->reach(info_of(3)); });
  EXPECT_TRUE(a_.plane->links().knows(key_of(3)));
  later(20s);
  pass(a_);
  EXPECT_FALSE(a_.plane->links().knows(key_of(3)));
  EXPECT_TRUE(a_.plane->links().knows(key_of(2)));
}

// An owner may be asked by a node that its membership has not told of yet.
TEST_F(LinksTest, WhoeverAsksGetsAWayBack) {
  connect();
  b_owns();
  pass(b_, [&] { (void)b_.plane->links().close(key_of(1)); });
  pass(a_, [&] { a_.plane->peers().close(key_of(2)); });
  Outcome outcome;
  ask_a(outcome);
  move(a_, b_);
  EXPECT_TRUE(b_.plane->links().knows(key_of(1)));
  pass(b_, [&] { b_.plane->links().on_connected(key_of(1)); });
  exchange();
  EXPECT_EQ(outcome.error, Errc::ok);
}

// A node that was removed while it joined greeted in vain for ever, and never heard why.
TEST_F(LinksTest, WhoIsRefusedAsOverHearsThatItsJoinIs) {
  pass(b_, [&] { b_.plane->bury(key_of(1)); });
  pass(a_, [&] { a_.plane->links().on_connected(key_of(2)); });
  exchange();
  ASSERT_EQ(a_.listener.control.size(), 1U);
  const auto* refused = std::get_if<JoinRefused>(a_.listener.control.data());
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(static_cast<Errc>(refused->code), Errc::stale_incarnation);
}

// Its ask came through another node, ahead of the news that it joined.
TEST_F(LinksTest, AReplyWaitsForANodeThatJustJoined) {
  const auto answer = [&] {
    pass(b_, [&] { b_.plane->dispatch().answer(key_of(7), 5, {Errc::ok, {}, "x"}); });
  };
  answer();
  EXPECT_EQ(b_.plane->status().counters["late_answers"], 0U);
  EXPECT_EQ(b_.plane->status().counters["early_replies"], 1U);
  pass(b_, [&] { b_.plane->connect(info_of(7)); });
  EXPECT_EQ(b_.plane->links().waiting_streams(), 1U);
  // Nobody waits for ever, nor for the dead.
  pass(b_, [&] { b_.plane->bury(key_of(7)); });
  answer();
  EXPECT_EQ(b_.plane->status().counters["late_answers"], 1U);
  pass(b_, [&] { b_.plane->dispatch().answer(key_of(8), 5, {Errc::ok, {}, "x"}); });
  later(3s);
  pass(b_);
  EXPECT_EQ(b_.plane->status().counters["late_answers"], 2U);
}

// A table may name an owner before the membership does.
TEST_F(LinksTest, AMessageWaitsForTheLinkToItsOwner) {
  connect();
  b_owns();
  pass(a_, [&] { (void)a_.plane->links().close(key_of(2)); });
  std::vector<Outcome> outcomes(3);
  for (Outcome& outcome : outcomes) ask_a(outcome);
  EXPECT_EQ(a_.plane->dispatch().held(), outcomes.size());
  pass(a_, [&] { a_.plane->connect(info_of(2)); });
  pass(a_, [&] { a_.plane->links().on_connected(key_of(2)); });
  exchange();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, Errc::ok);
}

TEST_F(LinksTest, ALinkThatIsGivenUpEndsWhatItSentAndKeepsTheRest) {
  connect();
  b_owns();
  Outcome sent;
  ask_a(sent, "silence", 60'000ms);
  exchange();
  pass(a_, [&] { a_.plane->links().on_disconnected(key_of(2)); });
  EXPECT_EQ(sent.error, Errc::unknown_outcome);
  Outcome unsent;
  ask_a(unsent, "say", 60'000ms);
  pass(a_, [&] { a_.plane->let_go(key_of(2)); });
  later(11s);
  pass(a_);
  EXPECT_EQ(unsent.times, 0);
  EXPECT_EQ(a_.plane->dispatch().held(), 1U);
  pass(a_, [&] { a_.plane->connect(info_of(2)); });
  pass(b_);  // has heard nothing either, and starts again
  connect();
  EXPECT_EQ(unsent.times, 1);
  EXPECT_EQ(unsent.error, Errc::ok);
}

// What waits for a session has not happened: the next session brings it.
TEST_F(LinksTest, ABrokenLinkEndsNothingThatStillWaits) {
  connect();
  b_owns();
  Outcome outcome;
  pass(a_, [&] { a_.plane->links().on_disconnected(key_of(2)); });
  ask_a(outcome);
  pass(a_, [&] { a_.plane->links().on_connected(key_of(2)); });
  pass(a_, [&] { a_.plane->links().on_connected(key_of(2)); });
  pass(b_, [&] { b_.plane->links().on_connected(key_of(1)); });
  exchange();
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::ok);
}

// What never left for a node that is gone goes to the next owner, in its order and ahead of what
// was asked later.
TEST_F(LinksTest, TellsThatABrokenLinkTakesAlongAreCounted) {
  connect();
  b_owns();
  pass(a_, [&] {
    (void)a_.plane->tell({"echo", "id", "say", "lost"});
    a_.plane->links().on_disconnected(key_of(2));
  });
  EXPECT_EQ(a_.plane->status().counters.at("tells_dropped"), 1U);
  pass(a_, [&] { a_.plane->links().on_connected(key_of(2)); });
  exchange();
  pass(a_, [&] {
    (void)a_.plane->tell({"echo", "id", "say", "lost, too"});
    a_.plane->bury(key_of(2));
  });
  EXPECT_EQ(a_.plane->status().counters.at("tells_dropped"), 2U);
}

TEST_F(LinksTest, WhatADeadNodeWasNotSentGoesToTheNextOwner) {
  connect();
  b_owns();
  pass(a_, [&] { a_.plane->links().on_disconnected(key_of(2)); });
  std::vector<std::string> answers;
  const auto ask = [&](std::string_view payload) {
    pass(a_, [&] {
      a_.plane->ask({"echo", "id", "say", payload}, 60'000ms, [&answers](const ReplyView& reply) {
        answers.push_back(reply.ok() ? std::string(reply.payload)
                                     : std::string(error_info(reply.error).name));
      });
    });
  };
  ask("1");
  pass(a_, [&] { EXPECT_EQ(a_.plane->tell({"echo", "id", "say", "told"}), Errc::ok); });
  ask("2");
  pass(a_, [&] { a_.plane->bury(key_of(2)); });
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(a_.plane->dispatch().held(), 3U);
  ask("3");
  pass(a_, [&] {
    a_.host("echo");
    a_.own("echo", 2);
  });
  EXPECT_EQ(answers, (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(a_.plane->dispatch().held(), 0U);
}

TEST_F(LinksTest, AtTheEndWhatWaitsForASessionWasNotSent) {
  connect();
  b_owns();
  pass(a_, [&] { a_.plane->links().on_disconnected(key_of(2)); });
  Outcome outcome;
  ask_a(outcome);
  pass(a_, [&] { a_.plane->abandon(Errc::stopped, "the node stops"); });
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::stopped);
}

// Tells bring no answer: a link that only sent was taken for dead after four ping intervals.
TEST_F(LinksTest, ALinkThatOnlySendsStaysAlive) {
  connect();
  b_owns();
  for (int i = 0; i < 30; ++i) {
    later(500ms);
    pass(a_, [&] { ASSERT_EQ(a_.plane->tell({"echo", "id", "say", "x"}), Errc::ok); });
    exchange();
  }
  EXPECT_EQ(a_.plane->status().counters["link_resets"], 0U);
}

TEST_F(LinksTest, LostLinkIsUnknownOutcomeAtOnce) {
  connect();
  b_owns();
  Outcome outcome;
  ask_a(outcome, "silence");
  exchange();
  pass(a_, [&] { a_.plane->links().on_disconnected(key_of(2)); });
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::unknown_outcome);
}

// A node that leaves still waits for what its clients asked through it.
TEST_F(LinksTest, WhoeverSaidGoodbyeStillAnswers) {
  connect();
  b_owns();
  Outcome before;
  Outcome after;
  ask_a(before);
  move(a_, b_);
  pass(b_, [&] { b_.plane->links().say_goodbye(key_of(1)); });
  move(b_, a_);
  ask_a(after);
  exchange();
  EXPECT_EQ(before.error, Errc::ok);
  EXPECT_EQ(after.times, 1);
  EXPECT_EQ(after.error, Errc::ok);
  pass(b_, [&] { EXPECT_TRUE(b_.plane->links().parted()); });
  pass(a_, [&] { EXPECT_TRUE(a_.plane->peers().parted()); });
}

TEST_F(LinksTest, WhoeverSaidGoodbyeStillAnswersFences) {
  connect();
  pass(a_, [&] {
    Links& links = a_.plane->links();
    links.say_goodbye(key_of(2));
    EXPECT_FALSE(links.send(key_of(2), wire::Message{}));
    const wire::FenceOk answer{{"echo", ShardId{1}},   1,         2,
                               TestNode::generation(), key_of(1), false};
    EXPECT_TRUE(links.send(key_of(2), answer));
  });
}

// A goodbye that was lost with its session was never said again, and both sides waited for it.
TEST_F(LinksTest, AGoodbyeIsRepeatedInTheNextSession) {
  connect();
  pass(a_, [&] { a_.plane->links().say_goodbye(); });
  a_.wire.link.clear();
  pass(a_, [&] { a_.plane->links().on_disconnected(key_of(2)); });
  pass(a_, [&] { a_.plane->links().on_connected(key_of(2)); });
  exchange();
  pass(b_, [&] { EXPECT_TRUE(b_.plane->peers().parted()); });
  pass(a_, [&] { EXPECT_TRUE(a_.plane->links().parted()); });
}

// An ask that was told to have had no effect must not have one later.
TEST_F(LinksTest, WhatEndedAsNotDeliveredIsNotSentLater) {
  connect();
  b_owns();
  pass(a_, [&] { a_.plane->links().on_disconnected(key_of(2)); });
  Outcome outcome;
  ask_a(outcome);
  pass(a_, [&] { ASSERT_EQ(a_.plane->tell({"echo", "id", "say", "x"}), Errc::ok); });
  pass(a_, [&] { a_.plane->abandon(Errc::stopped, "the end"); });
  EXPECT_EQ(outcome.error, Errc::stopped);
  EXPECT_EQ(a_.plane->status().counters["tells_dropped"], 1U);
  pass(a_, [&] { a_.plane->links().on_connected(key_of(2)); });
  exchange();
  EXPECT_EQ(b_.plane->status().counters["delivered"], 0U);
}

TEST_F(LinksTest, AnAskThatWentOnToADeadNodeEndsAtOnce) {
  connect();
  b_owns();
  Outcome outcome;
  ask_a(outcome, "silence");
  exchange();
  pass(a_, [&] { a_.plane->bury(key_of(3)); });
  const std::uint64_t slot = (std::uint64_t{1} << 24);  // the first of the plane
  pass(b_, [&] {
    (void)b_.plane->links().send(key_of(1),
                                 wire::Moved{{"echo", ShardId{1}}, {key_of(3), {}}, {}, slot});
  });
  exchange();
  EXPECT_EQ(outcome.error, Errc::unknown_outcome);
}

// Without its acknowledgement the old owner of a shard would hold what it sent for ever.
TEST_F(LinksTest, AFullBufferKeepsNoAcknowledgementOut) {
  pass(a_, [&] {
    Links& links = a_.plane->links();
    const wire::FenceOk answer{{"echo", ShardId{1}},   1,         2,
                               TestNode::generation(), key_of(1), false};
    while (links.send(key_of(2), answer)) {
    }
    std::string ack;
    wire::encode(ack, wire::StreamEnd{{"echo", ShardId{1}}, TestNode::generation(), 3, key_of(1)},
                 wire::Kind::stream_ack);
    links.send_ack(key_of(2), ack);
    EXPECT_EQ(links.waiting_streams(), 1U);
  });
  pass(a_, [&] { a_.plane->links().on_connected(key_of(2)); });
  move(a_, b_);
  move(b_, a_);
  std::vector<std::string> frames;
  for (const auto& [node, frame] : a_.wire.link) frames.push_back(frame);
  EXPECT_EQ(Envelopes(std::move(frames)).of(wire::Kind::stream_ack).size(), 1U);
}

}  // namespace
}  // namespace shardbus::runtime
