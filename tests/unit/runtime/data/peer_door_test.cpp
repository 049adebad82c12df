// Sessions that other nodes open: who is refused, and how many there may be.
#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

class PeerDoorTest : public PlaneTest {
 protected:
  PeerDoorTest() : node_(1) {}

  // Greets on a connection; gives the kind of the answer.
  wire::Kind greet(std::uint32_t connection, const NodeInfo& info, NodeKey to = kNoNode) {
    wire::Hello hello;
    hello.to = to;
    hello.cluster = "test";
    hello.role = wire::Role::node;
    hello.node = info;
    hello.max_batch = 100;
    std::string frame;
    wire::encode(frame, hello);
    node_.wire.peer.clear();
    pass(node_, [&] { node_.plane->peers().on_frame(connection, frame); });
    EXPECT_EQ(node_.wire.peer.size(), 1U);
    const Envelopes answers({node_.wire.peer.front().second});
    return answers.all.front().kind;
  }
  // The session that the last answer named.
  [[nodiscard]] std::uint64_t session() const {
    const Envelopes answers({node_.wire.peer.front().second});
    wire::Welcome welcome;
    EXPECT_EQ(wire::decode(answers.of(wire::Kind::welcome).front(), welcome), Errc::ok);
    return welcome.session;
  }
  static NodeInfo incarnation(std::uint64_t number) {
    return {"n2", number, node_key("n2", number), "front", "peer", "gossip"};
  }

  TestNode node_;
};

TEST_F(PeerDoorTest, AnOlderIncarnationIsRefused) {
  EXPECT_EQ(greet(1, incarnation(5)), wire::Kind::welcome);
  EXPECT_EQ(greet(2, incarnation(4)), wire::Kind::reject);
  later(20s);
  EXPECT_EQ(greet(2, incarnation(4)), wire::Kind::welcome) << "a silent stranger locks nobody out";
  pass(node_, [&] { node_.plane->connect(incarnation(5)); });
  EXPECT_EQ(greet(2, incarnation(4)), wire::Kind::reject);
  EXPECT_EQ(greet(3, incarnation(5)), wire::Kind::welcome);
  EXPECT_EQ(greet(4, incarnation(6)), wire::Kind::welcome);
}

// A link to a dead incarnation at the same address greeted each second, and ended the good session.
TEST_F(PeerDoorTest, AHelloForAnotherIncarnationEndsNothing) {
  EXPECT_EQ(greet(1, info_of(2), key_of(1)), wire::Kind::welcome);
  EXPECT_EQ(greet(2, info_of(2), node_key("n1", 7)), wire::Kind::reject);
  EXPECT_EQ(node_.plane->peers().size(), 1U);
  wire::Welcome welcome;
  EXPECT_EQ(greet(1, info_of(2), key_of(1)), wire::Kind::welcome);
  const Envelopes answers({node_.wire.peer.front().second});
  ASSERT_EQ(wire::decode(answers.all.front(), welcome), Errc::ok);
  EXPECT_EQ(greet(2, info_of(2), node_key("n1", 7)), wire::Kind::reject);
  std::string frame;
  wire::encode(frame, wire::Link{welcome.session, 1});
  node_.wire.peer.clear();
  pass(node_, [&] { node_.plane->peers().on_frame(1, frame); });
  EXPECT_TRUE(node_.wire.peer.empty());
}

// A node that was refused and went away made every later leave take its full time.
TEST_F(PeerDoorTest, NobodyWaitsForAStrangersGoodbye) {
  EXPECT_EQ(greet(1, incarnation(5)), wire::Kind::welcome);
  pass(node_, [&] { EXPECT_TRUE(node_.plane->peers().parted()); });
  pass(node_, [&] { node_.plane->reach(incarnation(5)); });
  pass(node_, [&] { EXPECT_TRUE(node_.plane->peers().parted()); });
  pass(node_, [&] { node_.plane->connect(incarnation(5)); });
  pass(node_, [&] { EXPECT_FALSE(node_.plane->peers().parted()) << "a member says goodbye"; });
}

TEST_F(PeerDoorTest, ADeadNodeDoesNotComeBack) {
  EXPECT_EQ(greet(1, incarnation(5)), wire::Kind::welcome);
  pass(node_, [&] { node_.plane->bury(incarnation(5).key); });
  EXPECT_EQ(node_.plane->peers().size(), 0U);
  EXPECT_EQ(greet(2, incarnation(5)), wire::Kind::reject);
  EXPECT_EQ(greet(3, incarnation(6)), wire::Kind::welcome);
}

// An order for it that was not taken back yet opened a link to it once more, and while that stood
// the next one, whose clock was behind, was no one to talk to.
TEST_F(PeerDoorTest, ADeadNodeThatIsWrittenToKeepsNobodyOut) {
  pass(node_, [&] { node_.plane->connect(incarnation(5)); });
  pass(node_, [&] { node_.plane->bury(incarnation(5).key); });
  pass(node_, [&] { node_.plane->reach(incarnation(5)); });
  pass(node_, [&] { node_.plane->connect(incarnation(4)); });
  EXPECT_EQ(greet(1, incarnation(4)), wire::Kind::welcome);
  EXPECT_EQ(node_.plane->links().find_by_name("n2"), incarnation(4).key);
}

TEST_F(PeerDoorTest, ARepeatedHelloGivesTheSameSessionUntilItIsUsed) {
  ASSERT_EQ(greet(1, info_of(2)), wire::Kind::welcome);
  const std::uint64_t first = session();
  ASSERT_EQ(greet(1, info_of(2)), wire::Kind::welcome);
  EXPECT_EQ(session(), first);
  std::string frame;
  wire::encode(frame, wire::Link{first, 1});
  wire::encode_empty(frame, wire::Kind::ping);
  pass(node_, [&] { node_.plane->peers().on_frame(1, frame); });
  ASSERT_EQ(greet(1, info_of(2)), wire::Kind::welcome);
  EXPECT_NE(session(), first);
}

TEST_F(PeerDoorTest, ANewNameOnAConnectionEndsTheSessionOfTheOldOne) {
  EXPECT_EQ(greet(1, info_of(2)), wire::Kind::welcome);
  EXPECT_EQ(greet(1, info_of(3)), wire::Kind::welcome);
  EXPECT_EQ(node_.plane->peers().size(), 1U);
}

TEST_F(PeerDoorTest, StrangersMakeRoomAndMembersAreKept) {
  pass(node_, [&] { node_.plane->connect(info_of(2)); });
  EXPECT_EQ(greet(1, info_of(2)), wire::Kind::welcome);
  const Envelopes member({node_.wire.peer.front().second});
  const auto limit = static_cast<int>(PeerDoor::kSessionsMax);
  for (int i = 3; i < limit + 100; ++i) {
    ASSERT_EQ(greet(static_cast<std::uint32_t>(i), info_of(i)), wire::Kind::welcome);
  }
  EXPECT_EQ(node_.plane->peers().size(), PeerDoor::kSessionsMax);
  // A frame without a session is answered, one of a standing session is not.
  wire::Welcome welcome;
  ASSERT_EQ(wire::decode(member.of(wire::Kind::welcome).front(), welcome), Errc::ok);
  std::string frame;
  wire::encode(frame, wire::Link{welcome.session, 1});
  node_.wire.peer.clear();
  pass(node_, [&] { node_.plane->peers().on_frame(1, frame); });
  EXPECT_TRUE(node_.wire.peer.empty());
}

}  // namespace
}  // namespace shardbus::runtime
