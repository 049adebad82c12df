// Nodes that leave in good order: what still comes for them through others is not lost.
#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

// Answers, and notes the payloads of what it handles.
class Noter final : public Entity {
 public:
  explicit Noter(std::vector<std::string>& notes) : notes_(notes) {}
  void handle(Delivery& delivery) override {
    notes_.emplace_back(delivery.payload);
    if (delivery.port.valid())
      (void)delivery.port.state()->answer({Errc::ok, {}, std::string(delivery.payload)});
  }

 private:
  std::vector<std::string>& notes_;
};

// Four nodes, all linked. The shards of "echo" move from the first one over the leaver to the next
// one; the sender has not heard of that, and what it sends is on its way for as long as it takes.
class LeaverTest : public PlaneTest {
 protected:
  enum Role { first, leaver, next, sender };
  static NodeKey key(Role role) { return key_of(role); }

  LeaverTest() {
    for (int i = first; i <= sender; ++i) nodes_.push_back(std::make_unique<TestNode>(i));
    for (const auto& from : nodes_) {
      pass(*from, [&] {
        for (int to = first; to <= sender; ++to) from->plane->connect(info_of(to));
        for (int to = first; to <= sender; ++to) from->plane->links().on_connected(key_of(to));
        from->host_type("echo",
                        [this](const Context&) { return std::make_unique<Noter>(handled_); });
      });
    }
    exchange();
    pass(node(first), [&] { node(first).own("echo"); });
    for (const auto& node : nodes_) {
      pass(*node, [&] { node->owner("echo", key(first)); });
    }
    exchange();
  }
  TestNode& node(Role role) { return *nodes_[role]; }

  // Everything that is on its way, except what the sender sends while its link is slow.
  void exchange() {
    for (int i = 0; i < 100; ++i) {
      bool any = false;
      for (int from = first; from <= sender; ++from) any = carry(from) || any;
      if (!any) return;
    }
    FAIL() << "the nodes never fall silent";
  }
  bool carry(int from) {
    FakeWire& wire = nodes_[from]->wire;
    if (from == sender && slow_) {
      std::move(wire.link.begin(), wire.link.end(), std::back_inserter(late_));
      wire.link.clear();
    }
    const auto link = std::exchange(wire.link, {});
    const auto peer = std::exchange(wire.peer, {});
    // The number of a connection is that of the node which opened it.
    for (const auto& [to, frame] : link) {
      for (const auto& node : nodes_) {
        if (node->plane->config().self.key != to) continue;
        pass(*node, [&, &f = frame] { node->plane->peers().on_frame(from, f); });
      }
    }
    for (const auto& [to, frame] : peer) {
      pass(*nodes_[to],
           [&, &t = to, &f = frame] { nodes_[t]->plane->links().on_frame(key_of(from), f); });
    }
    return !link.empty() || !peer.empty();
  }
  void arrive_late() {
    slow_ = false;
    std::move(late_.begin(), late_.end(), std::back_inserter(node(sender).wire.link));
    late_.clear();
    exchange();
  }

  template <class Command>
  void command(Role role, std::uint64_t number, Role other) {
    for (std::uint32_t i = 0; i < kShards; ++i) {
      const Command each{{"echo", ShardId{i}}, TestNode::generation(number), key(other)};
      pass(node(role), [&] { node(role).plane->dispatch().on_region_command(key(first), each); });
    }
    exchange();
  }
  void move(Role from, Role to, std::uint64_t number) {
    command<PrepareHandoff>(to, number, from);
    command<BeginHandoff>(from, number, to);
    for (const Role role : {first, leaver, next}) hear(role, to, number);
    exchange();
  }
  void hear(Role role, Role owner, std::uint64_t number) {
    pass(node(role), [&] { node(role).owner("echo", key(owner), number); });
  }
  // Some passes after that node is no member any more.
  void part(Role from = leaver) {
    pass(node(first), [&] { node(first).plane->part_from(key(from)); });
    for (int i = 0; i < 10; ++i) {
      later(5ms);
      for (const auto& node : nodes_) pass(*node);
      exchange();
    }
  }
  bool parted(Role from = leaver) { return !node(first).plane->links().takes(key(from)); }
  void ask(Outcome& outcome, std::string_view id) {
    pass(node(sender), [&] { node(sender).ask({"echo", id, "say", "hello"}, 10s, outcome); });
    exchange();
  }

  std::vector<std::string> handled_;  // by all nodes together
  std::vector<std::unique_ptr<TestNode>> nodes_;
  bool slow_ = false;
  std::deque<std::pair<NodeKey, std::string>> late_;
};

TEST_F(LeaverTest, WhatAForwarderStillGetsGoesPastTheLeaver) {
  slow_ = true;
  std::vector<Outcome> outcomes(20);
  for (std::size_t i = 0; i < outcomes.size(); ++i) ask(outcomes[i], "e" + std::to_string(i));
  move(first, leaver, 2);
  move(leaver, next, 3);
  part();
  ASSERT_TRUE(parted());
  pass(node(first), [&] { node(first).plane->dispatch().on_goodbye(key(leaver)); });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.times, 0);
  arrive_late();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, Errc::ok);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.payload, "hello");
  // Its fence goes the same way.
  hear(sender, next, 3);
  Outcome direct;
  ask(direct, "e1");
  EXPECT_EQ(direct.error, Errc::ok);
}

// A forwarder whose way on stands still keeps so much and no more.
TEST_F(LeaverTest, WhatAForwarderKeepsIsBounded) {
  constexpr std::uint32_t kClient = 1;
  move(first, next, 2);
  pass(node(first), [&] { node(first).plane->links().on_disconnected(key(next)); });
  wire::Hello hello;
  hello.sender = 77;
  hello.wants_table = true;
  std::string bytes;
  wire::encode(bytes, hello);
  pass(node(first), [&] { node(first).plane->front().on_frame(kClient, false, bytes); });
  const std::string big(1'000'000, 'x');
  wire::Message tell;
  tell.kind = wire::Kind::tell;
  tell.flags = wire::kFlagGreeted;
  tell.type = "echo";
  tell.id = "e1";
  tell.method = "say";
  tell.payload = big;
  tell.generation = TestNode::generation(1);  // it has not heard of the move
  bytes.clear();
  wire::encode(bytes, tell);
  for (int i = 0; i < 80; ++i) {
    pass(node(first), [&] { node(first).plane->front().on_frame(kClient, false, bytes); });
  }
  auto counters = node(first).plane->status().counters;
  EXPECT_LE(counters["link_stream_bytes"], counters["link_stream_bytes_limit"]);
  EXPECT_GT(counters["link_stream_bytes"], 60'000'000U);
  EXPECT_GT(counters["tells_dropped"], 10U);
}

// A smart client in short: greeted at every node, and sends what the test says.
class ClientTest : public LeaverTest {
 protected:
  static constexpr std::uint32_t kClient = 1;

  ClientTest() {
    wire::Hello hello;
    hello.sender = 77;
    hello.wants_table = true;
    for (int i = first; i <= sender; ++i) frame(Role(i), hello);
  }
  template <class E>
  void frame(Role at, const E& envelope) {
    std::string bytes;
    wire::encode(bytes, envelope);
    pass(node(at), [&] { node(at).plane->front().on_frame(kClient, false, bytes); });
    exchange();
  }
  void tell(Role at, std::string_view payload, Generation stamp = {}) {
    wire::Message message;
    message.kind = wire::Kind::tell;
    message.flags = wire::kFlagGreeted;
    message.type = "echo";
    message.id = "e1";
    message.method = "say";
    message.payload = payload;
    message.generation = stamp;
    frame(at, message);
  }
  // It has heard that `owner` has the shard, and what it has sent went through `via`.
  void fence(Role via, Role owner, std::uint64_t number) {
    wire::Fence fence;
    fence.shard = {"echo", shard_of("e1", kShards)};
    fence.id = 5;
    fence.generation = TestNode::generation(number);
    fence.target = key(owner);
    frame(via, fence);
    later(5ms);
    pass(node(via));
  }
  std::vector<wire::FenceOk> answers(Role via) {
    const Envelopes got(std::exchange(node(via).wire.front[kClient], {}));
    std::vector<wire::FenceOk> all;
    for (const wire::Envelope& envelope : got.of(wire::Kind::fence_ok))
      EXPECT_EQ(wire::decode(envelope, all.emplace_back()), Errc::ok);
    return all;
  }
  // Messages of the node's own, so that its route leads where it leads by now.
  void own(Role role, std::string_view payload) {
    pass(node(role), [&] {
      EXPECT_EQ(node(role).plane->tell({"echo", "e1", "say", payload}), Errc::ok);
    });
    exchange();
  }
};

// A client's messages that this node passes on wait here for the node's own fence; so must the
// client's fence, although the shard is here by now.
TEST_F(ClientTest, AFenceGoesBehindWhatThisNodePassesOnInItsOwnName) {
  slow_ = true;
  tell(sender, "1");
  move(first, sender, 2);
  hear(sender, sender, 2);
  fence(sender, sender, 2);
  EXPECT_TRUE(answers(sender).empty())
      << "the tell is still under way to the node that had the shard";
  arrive_late();
  EXPECT_EQ(answers(sender).size(), 1U);
}

// The shard comes back to a former owner, which holds what the client still sends there. The fence
// must not pass that by, along the way of the node's own messages to whoever has the shard as yet:
// the client went on there, and what was held here came behind it and was refused.
TEST_F(ClientTest, AFenceGoesBehindWhatIsHeldForAShardThatComesBack) {
  tell(first, "1", TestNode::generation(1));
  own(first, "own 1");
  move(first, next, 2);
  own(first, "own 2");
  command<PrepareHandoff>(first, 3, next);
  tell(first, "2", TestNode::generation(1));  // it has not heard of the first move yet
  fence(first, next, 2);
  const std::vector<wire::FenceOk> got = answers(first);
  ASSERT_EQ(got.size(), 1U);
  tell(got[0].node == key(next) ? next : first, "3", got[0].generation);
  command<BeginHandoff>(next, 3, first);
  EXPECT_EQ(handled_, (std::vector<std::string>{"1", "own 1", "own 2", "2", "3"}));
}

// What went in this node's own name goes on so, up to the fence: the shard's coming here must not
// let later messages overtake it.
TEST_F(ClientTest, OneWayForAllThatGoesBeforeAFence) {
  slow_ = true;
  tell(sender, "1", TestNode::generation(1));  // meant for an owner that this node never was
  command<PrepareHandoff>(sender, 2, first);
  command<BeginHandoff>(first, 2, sender);
  tell(sender, "2", TestNode::generation(1));
  EXPECT_TRUE(handled_.empty());
  fence(sender, sender, 2);
  EXPECT_TRUE(answers(sender).empty());
  arrive_late();
  ASSERT_EQ(answers(sender).size(), 1U);
  tell(sender, "3", TestNode::generation(2));
  EXPECT_EQ(handled_, (std::vector<std::string>{"1", "2", "3"}));
}

// The same where the type was not known here when the first message came.
TEST_F(ClientTest, OneWayForWhatCameBeforeItsType) {
  constexpr Generation kNone{};
  const auto of_new_type = [](std::string_view payload, Generation stamp) {
    wire::Message message;
    message.kind = wire::Kind::tell;
    message.flags = wire::kFlagGreeted;
    message.type = "new";
    message.id = "e1";
    message.method = "say";
    message.payload = payload;
    message.generation = stamp;
    return message;
  };
  frame(sender, of_new_type("1", kNone));
  pass(node(sender), [&] {
    TestNode& here = node(sender);
    here.host_type("new", [this](const Context&) { return std::make_unique<Noter>(handled_); });
    for (std::uint32_t i = 0; i < kShards; ++i) {
      here.plane->dispatch().on_region_command(
          key(first), RehomeShard{{"new", ShardId{i}}, kShards, TestNode::generation(1), {}});
    }
  });
  // The client has a table already, and this node has not.
  frame(sender, of_new_type("2", TestNode::generation(1)));
  EXPECT_TRUE(handled_.empty());
  pass(node(sender), [&] { node(sender).owner("new", key(sender)); });
  EXPECT_EQ(handled_, (std::vector<std::string>{"1", "2"}));
}

// The table itself may be as it was; clients need to know whom not to wait for.
TEST_F(ClientTest, ATableComesWhenANodeIsGone) {
  (void)std::exchange(node(first).wire.front[kClient], {});
  pass(node(first), [&] { node(first).plane->dispatch().on_gone(key(leaver), "it died"); });
  later(20ms);
  pass(node(first));
  const Envelopes got(std::exchange(node(first).wire.front[kClient], {}));
  const auto tables = got.of(wire::Kind::table);
  ASSERT_EQ(tables.size(), 1U);
  wire::ClientTable table;
  ASSERT_EQ(wire::decode(tables[0], table), Errc::ok);
  EXPECT_EQ(table.nodes.size(), 3U);
}

// Before its goodbye the forwarder needs to know whom it passes things on to from then on.
TEST_F(LeaverTest, AForwarderPartsOnceItKnowsTheNextOwner) {
  move(first, leaver, 2);
  part();
  EXPECT_FALSE(parted());
  move(leaver, next, 3);
  part();
  EXPECT_TRUE(parted());
}

TEST_F(LeaverTest, AForwarderDoesNotWaitForAnOwnerWhereThereIsNone) {
  move(first, leaver, 2);
  pass(node(first), [&] { node(first).owner("echo", kNoNode, 3); });
  part();
  EXPECT_TRUE(parted());
}

// What waits for the fence goes on in the order in which it came.
TEST_F(LeaverTest, WhatComesWhileTheWayChangesWaits) {
  move(first, leaver, 2);
  move(leaver, next, 3);
  slow_ = true;
  std::vector<Outcome> outcomes(3);
  for (Outcome& outcome : outcomes) ask(outcome, "e1");
  pass(node(first), [&] { node(first).plane->part_from(key(leaver)); });
  later(5ms);
  pass(node(first));
  const auto fences = std::exchange(node(first).wire.link, {});
  ASSERT_FALSE(fences.empty());
  arrive_late();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.times, 0);
  node(first).wire.link = fences;
  exchange();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, Errc::ok);
}

TEST_F(LeaverTest, TheNodeBehindTheLeaverMayLeaveToo) {
  move(first, leaver, 2);
  move(leaver, next, 3);
  pass(node(first), [&] { node(first).plane->part_from(key(leaver)); });
  later(5ms);
  pass(node(first));
  const auto fences = std::exchange(node(first).wire.link, {});
  ASSERT_FALSE(fences.empty());
  part(next);
  EXPECT_FALSE(parted(next)) << "what waits for the fence goes there";
  node(first).wire.link.insert(node(first).wire.link.end(), fences.begin(), fences.end());
  exchange();
  move(next, sender, 4);
  part(next);
  EXPECT_TRUE(parted(leaver));
  EXPECT_TRUE(parted(next));
}

}  // namespace
}  // namespace shardbus::runtime
