// Nodes that leave in good order: what still comes for them through others is not lost.
#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

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
        from->host("echo");
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

  void move(Role from, Role to, std::uint64_t number) {
    const Generation generation = TestNode::generation(number);
    for (std::uint32_t i = 0; i < kShards; ++i) {
      const ShardName shard{"echo", ShardId{i}};
      pass(node(to), [&] {
        node(to).plane->dispatch().on_region_command(key(first),
                                                     PrepareHandoff{shard, generation, key(from)});
      });
      pass(node(from), [&] {
        node(from).plane->dispatch().on_region_command(key(first),
                                                       BeginHandoff{shard, generation, key(to)});
      });
    }
    exchange();
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

// A client's messages that this node passes on wait here for the node's own fence; so must the
// client's fence, although the shard is here by now.
TEST_F(LeaverTest, AClientsFenceGoesBehindWhatThisNodePassesOnInItsOwnName) {
  constexpr std::uint32_t kClient = 1;
  const auto frame = [&](const auto& envelope) {
    std::string bytes;
    wire::encode(bytes, envelope);
    pass(node(sender), [&] { node(sender).plane->front().on_frame(kClient, false, bytes); });
  };
  wire::Hello hello;
  hello.sender = 77;
  hello.wants_table = true;
  frame(hello);
  slow_ = true;
  wire::Message tell;
  tell.kind = wire::Kind::tell;
  tell.flags = wire::kFlagGreeted;
  tell.type = "echo";
  tell.id = "e1";
  tell.method = "say";
  frame(tell);
  exchange();
  move(first, sender, 2);
  hear(sender, sender, 2);
  wire::Fence fence;
  fence.shard = {"echo", shard_of("e1", kShards)};
  fence.id = 5;
  fence.generation = TestNode::generation(2);
  fence.target = key(sender);
  frame(fence);
  later(5ms);
  pass(node(sender));
  const auto answers = [&] {
    return Envelopes(std::exchange(node(sender).wire.front[kClient], {}))
        .of(wire::Kind::fence_ok)
        .size();
  };
  EXPECT_EQ(answers(), 0U) << "the tell is still under way to the node that had the shard";
  arrive_late();
  EXPECT_EQ(answers(), 1U);
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
