// Which types a node announces: roles, proxies, and settings that differ from the cluster's.
#include <gmock/gmock.h>

#include "plane_fixture.hpp"

namespace shardbus::runtime {
namespace {

using testing::HasSubstr;

EntityType echo(const std::string& role, Placement placement = Placement::least_shards) {
  EntityType type;
  type.name = "echo";
  type.options.shard_count = kShards;
  type.options.role = role;
  type.options.placement = placement;
  type.create = [](const Context&) { return std::make_unique<Echo>(); };
  return type;
}

class PlacementTest : public PlaneTest {
 protected:
  static DataConfig with(std::vector<std::string> roles, bool proxy = false) {
    DataConfig made;
    made.traits.roles = std::move(roles);
    made.proxy = proxy;
    return made;
  }
  Errc host(TestNode& node, EntityType type) {
    Errc outcome = Errc::ok;
    pass(node, [&] { outcome = node.plane->host(std::move(type)); });
    return outcome;
  }
  std::string offer(TestNode& node, const HostedType& type) {
    std::string why;
    pass(node, [&] {
      wire::Hello hello;
      hello.role = wire::Role::worker;
      hello.sender = 5;
      hello.types = {type};
      std::string bytes;
      wire::encode(bytes, hello);
      node.plane->front().on_frame(7, false, bytes);
    });
    const Envelopes received(std::exchange(node.wire.front[7], {}));
    for (const wire::Envelope& got : received.of(wire::Kind::reject)) {
      wire::Reject reject;
      EXPECT_EQ(wire::decode(got, reject), Errc::ok);
      why = reject.text;
    }
    return why;
  }
};

TEST_F(PlacementTest, ANodeAnnouncesItsTypesWithTheirSettings) {
  TestNode node(1, with({"web"}));
  EXPECT_EQ(host(node, echo("web", Placement::ring)), Errc::ok);
  EXPECT_EQ(node.listener.hosted,
            (std::vector<HostedType>{{"echo", kShards, {"ring", "web", false}}}));
}

TEST_F(PlacementTest, ANodeWithoutTheRoleIsAProxyForTheType) {
  TestNode node(1, with({"batch"}));
  EXPECT_EQ(host(node, echo("web")), Errc::ok);
  EXPECT_TRUE(node.listener.hosted.empty());
  EXPECT_THAT(offer(node, {"echo", kShards, {"least-shards", "web"}}),
              HasSubstr("lacks the role web"));
}

TEST_F(PlacementTest, AProxyRunsNothing) {
  TestNode node(1, with({"web"}, true));
  EXPECT_EQ(host(node, echo("")), Errc::ok);
  EXPECT_TRUE(node.listener.hosted.empty());
  EXPECT_THAT(offer(node, {"cart", kShards}), HasSubstr("it is a proxy"));
}

TEST_F(PlacementTest, AWorkerCannotHostAStrictType) {
  TestNode node(1, with({}));
  HostedType strict{"cart", kShards};
  strict.placement.strict = true;
  EXPECT_THAT(offer(node, strict), HasSubstr("is strict: a node has to host it"));
}

class ProxyTest : public TwoPlanesTest {
 protected:
  ProxyTest() : TwoPlanesTest(proxy()) {}
  static DataConfig proxy() {
    DataConfig made;
    made.proxy = true;
    return made;
  }
};

TEST_F(ProxyTest, AProxyRoutesToTheOwner) {
  connect();
  Outcome outcome;
  pass(a_, [&] { EXPECT_EQ(a_.plane->host(echo("")), Errc::ok); });
  ask_a(outcome, "say", 10s);
  later(1s);
  pass(a_);
  EXPECT_EQ(outcome.times, 0);  // waits for somebody to own it
  b_owns();
  exchange();
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.error, Errc::ok);
  EXPECT_EQ(outcome.payload, "hello");
  EXPECT_TRUE(a_.listener.hosted.empty());
  EXPECT_EQ(a_.plane->status().entities, 0U);
}

TEST_F(PlacementTest, SettingsThatDifferFromTheClustersAreRefusedWithBoth) {
  TestNode node(1);
  pass(node, [&] { node.plane->set_known_types({{"echo", kShards, {"ring", "web", true}}}); });
  EXPECT_EQ(host(node, echo("")), Errc::config_mismatch);
  EXPECT_EQ(node.plane->differs(hosted_type(echo("")), "node 'a'"),
            "placement of type 'echo': the cluster has ring, node 'a' has least-shards; set "
            "TypeOptions::placement (of the built-in types: builtin_placement) to the same on all "
            "nodes");
  EXPECT_TRUE(node.listener.hosted.empty());
  EXPECT_THAT(offer(node, {"echo", kShards}),
              HasSubstr("the cluster has ring, the worker has least-shards"));
}

TEST_F(PlacementTest, WorkersOfOneNodeAgree) {
  TestNode node(1);
  EXPECT_EQ(offer(node, {"cart", kShards, {"weighted"}}), "");
  EXPECT_EQ(node.listener.hosted, (std::vector<HostedType>{{"cart", kShards, {"weighted"}, true}}));
  EXPECT_THAT(offer(node, {"cart", kShards}), HasSubstr("the cluster has weighted"));
}

}  // namespace
}  // namespace shardbus::runtime
