// The client's plane without sockets: what it sends where, and how every call ends. Time is what
// the test says.
#include "client/client_plane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <stdexcept>

#include "base/hash.hpp"
#include "wire/limits.hpp"

namespace shardbus::client {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

NodeInfo node_at(const std::string& name, const std::string& front) {
  return {name, 1, node_key(name, 1), front, "peer", "gossip"};
}

class FakePort final : public ClientPort {
 public:
  void open(std::uint64_t peer, const std::string& address) override { peers[address] = peer; }
  void close(std::uint64_t peer) override {
    std::erase_if(peers, [peer](const auto& entry) { return entry.second == peer; });
  }
  bool send(std::uint64_t peer, std::string_view frame) override {
    if (full) return false;
    sent[peer].emplace_back(frame);
    return true;
  }
  void log(LogLevel, std::string_view event, std::string text) override {
    lines.push_back(std::string(event) + " " + text);
  }

  bool full = false;
  std::map<std::string, std::uint64_t> peers;
  std::map<std::uint64_t, std::vector<std::string>> sent;
  std::vector<std::string> lines;
};

struct Outcome {
  int times = 0;
  Errc code = Errc::ok;
};

class ClientPlaneTest : public testing::TestWithParam<bool> {
 protected:
  explicit ClientPlaneTest(bool smart = GetParam())
      : smart_(smart), plane_(settings(smart), port_) {
    pass([&] { plane_.sessions().open("a"); });
    pass([&] { plane_.sessions().open("b"); });
  }
  static PlaneSettings settings(bool smart) {
    PlaneSettings made;
    made.addresses = {"a", "b"};
    made.smart = smart;
    return made;
  }

  template <class Work>
  void pass(Work work) {
    plane_.begin(now_);
    work();
    plane_.end();
  }
  void advance(Duration time) {
    for (const Time end = now_ + time; now_ < end;) {
      now_ = std::min(end, now_ + 100ms);
      pass([] {});
    }
  }
  template <class E>
  void receive(const std::string& address, const E& envelope) {
    std::string frame;
    wire::encode(frame, envelope);
    pass([&] { plane_.sessions().on_frame(port_.peers.at(address), frame); });
  }
  void greet(const std::string& address, const NodeInfo& node, std::uint64_t credit = 1000) {
    pass([&] { plane_.sessions().on_connected(port_.peers.at(address)); });
    welcome(address, node, credit);
  }
  // Envelopes that it sets free can be seen in `sent`.
  void welcome(const std::string& address, const NodeInfo& node, std::uint64_t credit = 1000) {
    port_.sent[port_.peers.at(address)].clear();
    wire::Welcome welcome;
    welcome.session = ++session_;
    welcome.node = node;
    welcome.credit = {credit, 1U << 30};
    welcome.limits = {wire::kFrameBytesMax, wire::kBatchMax, wire::kEntityIdBytesMax,
                      wire::kPayloadBytesMax};
    welcome.ping_ms = 60'000;
    receive(address, welcome);
  }
  void table(NodeKey owner, std::uint64_t counter) {
    TypeTable rows{"cart", 1, {TableEntry{owner, Generation{Term{1}, a_.key, counter}}}};
    receive("a", wire::ClientTable{{a_, b_}, {TableVersion{Term{1}, a_.key, counter}, {rows}}});
  }

  Outcome& ask(const std::string& method, milliseconds timeout = 60s) {
    Outcome& outcome = outcomes_[method];
    pass([&] {
      plane_.ask({"cart", "x", method, {}}, timeout, [&outcome](const ReplyView& reply) {
        ++outcome.times;
        outcome.code = reply.error;
      });
    });
    return outcome;
  }
  Errc tell(const std::string& method, const std::string& payload = {}) {
    Errc outcome = Errc::ok;
    pass([&] { outcome = plane_.tell({"cart", "x", method, payload}); });
    return outcome;
  }

  // The first ask that was sent there ends in an error.
  void answer_first(const std::string& address, Errc code) {
    std::string_view rest = port_.sent.at(port_.peers.at(address)).front();
    wire::Envelope envelope;
    while (!rest.empty() && wire::next_envelope(rest, envelope) == Errc::ok) {
      if (envelope.kind != wire::Kind::ask) continue;
      const std::string correlation(envelope.message.correlation.opaque);
      wire::Reply reply;
      reply.correlation.opaque = correlation;
      reply.code = static_cast<std::uint16_t>(code);
      return receive(address, reply);
    }
    FAIL() << "no ask was sent";
  }

  // What was sent to the node at an address since the last look: methods, and "fence <id>".
  std::vector<std::string> sent(const std::string& address) {
    std::vector<std::string> words;
    for (const std::string& frame : std::exchange(port_.sent[port_.peers.at(address)], {})) {
      EXPECT_LE(frame.size(), wire::kFrameBytesMax);
      std::string_view rest = frame;
      wire::Envelope envelope;
      while (!rest.empty() && wire::next_envelope(rest, envelope) == Errc::ok) {
        wire::Fence fence;
        if (envelope.kind == wire::Kind::tell || envelope.kind == wire::Kind::ask) {
          words.emplace_back(envelope.message.method);
        } else if (envelope.kind == wire::Kind::fence &&
                   wire::decode(envelope, fence) == Errc::ok) {
          words.push_back("fence " + std::to_string(fence.id));
        } else if (envelope.kind == wire::Kind::hello) {
          words.emplace_back("hello");
        }
      }
    }
    return words;
  }

  bool smart_;
  FakePort port_;
  Time now_ = Time{} + 1h;
  ClientPlane plane_;
  NodeInfo a_ = node_at("node-a", "a");
  NodeInfo b_ = node_at("node-b", "b");
  std::uint64_t session_ = 0;
  std::map<std::string, Outcome> outcomes_;
};

class SmartClient : public ClientPlaneTest {
 protected:
  SmartClient() : ClientPlaneTest(true) {
    greet("a", a_);
    greet("b", b_);
    table(a_.key, 1);
  }
};

INSTANTIATE_TEST_SUITE_P(SmartAndSimple, ClientPlaneTest, testing::Bool());

TEST_F(SmartClient, AFenceThatIsNotAnsweredIsSentAgain) {
  ask("first");
  EXPECT_THAT(sent("a"), ElementsAre("first"));
  table(b_.key, 2);
  ask("second");
  EXPECT_THAT(sent("a"), ElementsAre("fence 1"));
  EXPECT_LE(plane_.next_deadline(), now_ + 1s);
  advance(900ms);
  EXPECT_THAT(sent("a"), IsEmpty());
  advance(200ms);
  EXPECT_THAT(sent("a"), ElementsAre("fence 1"));
  advance(1s);
  EXPECT_THAT(sent("a"), ElementsAre("fence 1"));
  EXPECT_THAT(sent("b"), IsEmpty());
  receive("a", wire::FenceOk{{"cart", ShardId{0}}, 1, 1, {Term{1}, a_.key, 2}, b_.key, false});
  EXPECT_THAT(sent("b"), ElementsAre("second"));
  advance(3s);
  EXPECT_THAT(sent("a"), IsEmpty());
}

// The owner is a node without a session here: it left, or cannot be reached from this machine.
TEST_F(SmartClient, AnOwnerWithoutASessionIsServedThroughAnotherNode) {
  const NodeKey far = node_key("node-c", 1);
  ask("first");
  EXPECT_THAT(sent("a"), ElementsAre("first"));
  table(far, 2);
  ask("second");
  EXPECT_THAT(sent("a"), ElementsAre("fence 1"));
  receive("a", wire::FenceOk{{"cart", ShardId{0}}, 1, 1, {Term{1}, a_.key, 2}, far, false});
  EXPECT_THAT(sent("a"), ElementsAre("second"));
  // The shard moves on from there: no fence can go through a node that carries nothing of ours.
  table(b_.key, 3);
  ask("third");
  EXPECT_THAT(sent("a"), ElementsAre("fence 2"));
  receive("a", wire::FenceOk{{"cart", ShardId{0}}, 2, 1, {Term{1}, a_.key, 3}, b_.key, false});
  EXPECT_THAT(sent("b"), ElementsAre("third"));
}

TEST_F(SmartClient, AnOwnerThatGetsItsSessionIsServedDirectlyBehindAFence) {
  const NodeInfo c = node_at("node-c", "c");
  table(c.key, 2);
  ask("first");
  EXPECT_THAT(sent("a"), ElementsAre("first"));
  pass([&] { plane_.sessions().open("c"); });
  greet("c", c);
  ask("second");
  EXPECT_THAT(sent("a"), ElementsAre("fence 1"));
  EXPECT_THAT(sent("c"), IsEmpty());
  receive("a", wire::FenceOk{{"cart", ShardId{0}}, 1, 1, {Term{1}, a_.key, 2}, c.key, false});
  EXPECT_THAT(sent("c"), ElementsAre("second"));
}

// A next owner had answered a fence, and died before the shard was its own, the coordinator with
// it. The fence through the old owner was passed on to the dead one for ever.
TEST_F(SmartClient, AnOwnerThatDiedBeforeItOwnedIsForgottenByANewCoordinatorsTable) {
  const NodeInfo c = node_at("node-c", "c");
  const Generation unpublished{Term{1}, a_.key, 2};
  ask("first");
  receive("a", wire::Moved{{"cart", ShardId{0}}, {c.key, unpublished}, "c", 0});
  ask("second");
  EXPECT_THAT(sent("a"), ElementsAre("first", "fence 1"));
  const auto rebuilt = [&](std::uint64_t term, const std::vector<NodeInfo>& nodes) {
    TypeTable rows{"cart", 1, {TableEntry{a_.key, Generation{Term{1}, a_.key, 1}}}};
    receive("a", wire::ClientTable{nodes, {TableVersion{Term{term}, a_.key, 9}, {rows}}});
  };
  rebuilt(1, {a_, b_});
  EXPECT_THAT(sent("a"), IsEmpty()) << "the same coordinator may still publish the move";
  rebuilt(2, {a_, b_, c});
  EXPECT_THAT(sent("a"), IsEmpty()) << "it may own the shard";
  rebuilt(2, {a_, b_});
  EXPECT_THAT(sent("a"), ElementsAre("fence 2"));
  receive("a", wire::FenceOk{{"cart", ShardId{0}}, 2, 1, {Term{1}, a_.key, 1}, a_.key, false});
  EXPECT_THAT(sent("a"), ElementsAre("second"));
}

TEST_F(SmartClient, WhatHasNoOwnerGoesThroughAnyNode) {
  table(kNoNode, 2);
  ask("first");
  EXPECT_THAT(sent("a"), ElementsAre("first"));
}

TEST_P(ClientPlaneTest, AfterANodesGoodbyeNewCallsGoElsewhereAndOldOnesStayOpen) {
  greet("a", a_);
  greet("b", b_);
  if (smart_) receive("a", wire::ClientTable{{a_, b_}, {TableVersion{Term{1}, a_.key, 1}, {}}});
  const Outcome& before = ask("before");
  EXPECT_THAT(sent("a"), ElementsAre("before"));
  std::string goodbye;
  wire::encode_empty(goodbye, wire::Kind::goodbye);
  pass([&] { plane_.sessions().on_frame(port_.peers.at("a"), goodbye); });
  EXPECT_EQ(before.times, 0);
  (void)ask("after");
  EXPECT_THAT(sent("a"), IsEmpty());
  EXPECT_THAT(sent("b"), ElementsAre("after"));
  pass([&] { plane_.sessions().on_disconnected(port_.peers.at("a")); });
  EXPECT_EQ(before.code, Errc::unknown_outcome);
}

TEST_P(ClientPlaneTest, AfterStopEveryCallIsRefused) {
  greet("a", a_);
  if (smart_) table(a_.key, 1);
  Outcome& before = ask("before");
  pass([&] { plane_.stop("the test stops"); });
  EXPECT_EQ(before.code, Errc::unknown_outcome) << "it was sent";
  const Outcome& after = ask("after");
  EXPECT_EQ(after.times, 1);
  EXPECT_EQ(after.code, Errc::stopped);
  EXPECT_EQ(tell("after"), Errc::stopped);
  EXPECT_EQ(before.times, 1);
}

TEST_P(ClientPlaneTest, NoFrameIsLongerThanTheNodeTakes) {
  greet("a", a_);
  if (smart_) table(a_.key, 1);
  port_.sent.clear();
  pass([&] {
    EXPECT_EQ(plane_.tell({"cart", "x", "small", std::string(5000, 'x')}), Errc::ok);
    EXPECT_EQ(plane_.tell({"cart", "x", "large", std::string(wire::kPayloadBytesMax, 'x')}),
              Errc::ok);
  });
  EXPECT_EQ(port_.sent[port_.peers["a"]].size(), 2U);
  EXPECT_THAT(sent("a"), ElementsAre("small", "large"));
}

TEST_P(ClientPlaneTest, WhatNoNodeHasGotStaysAndGoesAfterTheNextGreeting) {
  greet("a", a_, 1);
  if (smart_) table(a_.key, 1);
  const Outcome& sent_one = ask("sent");
  const Outcome& waiting = ask("waits for credit");
  EXPECT_EQ(tell("waits too"), Errc::ok);
  EXPECT_THAT(sent("a"), ElementsAre("sent"));
  std::string no_session;
  wire::encode_no_session(no_session, static_cast<std::uint16_t>(Errc::no_session), "greet");
  pass([&] { plane_.sessions().on_frame(port_.peers.at("a"), no_session); });
  EXPECT_EQ(sent_one.code, Errc::unknown_outcome);
  EXPECT_EQ(waiting.times, 0);
  EXPECT_THAT(sent("a"), ElementsAre("hello"));
  EXPECT_EQ(ask("later").times, 0);
  welcome("a", a_);
  EXPECT_THAT(sent("a"), ElementsAre("waits for credit", "waits too", "later"));
}

TEST_P(ClientPlaneTest, FramesThatTheSocketDidNotTakeStayInOrder) {
  greet("a", a_);
  if (smart_) table(a_.key, 1);
  port_.full = true;
  const Outcome& one = ask("one");
  const Outcome& two = ask("two");
  port_.full = false;
  pass([&] { plane_.sessions().on_disconnected(port_.peers.at("a")); });
  const Outcome& three = ask("three");
  EXPECT_EQ(one.times + two.times + three.times, 0);
  pass([&] { plane_.sessions().on_connected(port_.peers.at("a")); });
  welcome("a", a_);
  EXPECT_THAT(sent("a"), ElementsAre("one", "two", "three"));
}

TEST_P(ClientPlaneTest, ATellThatNobodyTakesIsCountedAndLogged) {
  EXPECT_EQ(tell("nobody"), Errc::ok);
  advance(4s);
  EXPECT_EQ(plane_.tells_dropped(), 0U);
  advance(2s);
  EXPECT_EQ(plane_.tells_dropped(), 1U);
  ASSERT_EQ(port_.lines.size(), 1U);
  EXPECT_THAT(port_.lines[0], HasSubstr("delivery.tell_dropped reason=expired type=cart"));
  EXPECT_EQ(tell("another"), Errc::ok);
  pass([&] { plane_.stop("the test stops"); });
  EXPECT_EQ(plane_.tells_dropped(), 2U);
  EXPECT_THAT(port_.lines.back(), HasSubstr("reason=stopped"));
}

TEST_P(ClientPlaneTest, ACallbackThatThrowsIsLoggedAndHarmless) {
  greet("a", a_);
  pass([&] { plane_.ask({"cart", "x", "get", {}}, 1s, [](const ReplyView&) { throw 42; }); });
  pass([&] {
    plane_.ask({"cart", "x", "get", {}}, 1s,
               [](const ReplyView&) { throw std::runtime_error("as asked"); });
  });
  const Outcome& next = ask("get", 1s);
  advance(1200ms);
  EXPECT_EQ(next.times, 1);
  EXPECT_THAT(port_.lines, UnorderedElementsAre(HasSubstr("api.callback_threw error=as asked"),
                                                HasSubstr("not a std::exception")));
}

// The node tells at the same deadline whether the entity has begun with it.
TEST_P(ClientPlaneTest, AnAskThatWasSentWaitsALittleForTheWordOfItsNode) {
  const Outcome& waits = ask("waits", 1s);
  advance(1010ms);
  EXPECT_EQ(waits.code, Errc::expired) << "no node has had it";
  greet("a", a_);
  if (smart_) table(a_.key, 1);
  const Outcome& told = ask("told", 1s);
  const Outcome& silent = ask("silent", 1s);
  advance(1010ms);
  EXPECT_EQ(told.times + silent.times, 0);
  answer_first("a", Errc::expired);
  EXPECT_EQ(told.code, Errc::expired);
  advance(100ms);
  EXPECT_EQ(silent.code, Errc::timeout);
}

TEST_P(ClientPlaneTest, KnowsWhenEveryNodeHasRefusedIt) {
  const auto reject = [&](const std::string& address, std::uint32_t retry) {
    pass([&] { plane_.sessions().on_connected(port_.peers.at(address)); });
    receive(address,
            wire::Reject{static_cast<std::uint16_t>(Errc::cluster_mismatch), "other", retry});
  };
  reject("a", 0);
  EXPECT_FALSE(plane_.sessions().refused_by_all());
  reject("b", 500);  // it may be better later
  EXPECT_FALSE(plane_.sessions().refused_by_all());
  reject("b", 0);
  EXPECT_TRUE(plane_.sessions().refused_by_all());
  EXPECT_EQ(plane_.sessions().troubles().at("a").code(), Errc::cluster_mismatch);
  welcome("b", b_);
  EXPECT_FALSE(plane_.sessions().refused_by_all());
}

TEST_P(ClientPlaneTest, ASecondAddressOfOneNodeTakesOverOnlyWhenTheFirstIsLost) {
  greet("a", a_);
  greet("b", a_);
  ask("one");
  EXPECT_THAT(sent("a"), ElementsAre("one"));
  pass([&] { plane_.sessions().on_disconnected(port_.peers.at("b")); });
  EXPECT_EQ(outcomes_["one"].times, 0);
  greet("b", a_);
  pass([&] { plane_.sessions().on_disconnected(port_.peers.at("a")); });
  EXPECT_EQ(outcomes_["one"].code, Errc::unknown_outcome);
  ask("two");
  EXPECT_THAT(sent("b"), ElementsAre("two"));
}

}  // namespace
}  // namespace shardbus::client
