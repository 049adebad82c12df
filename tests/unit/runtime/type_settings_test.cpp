// Members that begin to host a type after they joined, in other settings than the cluster has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/control/control_plane.hpp"

namespace shardbus::control {
namespace {

using namespace std::chrono_literals;

NodeInfo info(const std::string& name, std::uint64_t incarnation) {
  const std::string url = "tcp://" + name + ":740";
  return {name,      incarnation, NodeKey{incarnation * 100 + name.size()},
          url + "0", url + "1",   url + "2"};
}

// A cluster of `a`, which decides and hosts `cart`, and of `bb`, which joined without any types.
class TypeSettingsTest : public testing::Test {
 protected:
  TypeSettingsTest() {
    settle();
    plane_.on_message(now_, b_.key, JoinRequest{"orders", b_, {}, {}});
    for (int round = 0; round < 4; ++round) b_hosts({});
  }

  static ControlConfig config(const NodeInfo& self) {
    ControlConfig config;
    config.cluster = "orders";
    config.self = self;
    config.bootstrap = true;
    config.hosts = {HostedType{"cart", 4}};
    return config;
  }

  void settle() {
    for (auto outputs = plane_.take_outputs(); !outputs.empty(); outputs = plane_.take_outputs()) {
      for (const ControlOutput& output : outputs) {
        if (const auto* told = std::get_if<TellRegion>(&output)) answer(a_.key, told->message);
        if (const auto* sent = std::get_if<SendControl>(&output)) answer(sent->to, sent->message);
        if (const auto* digest = std::get_if<PublishDigest>(&output))
          heard_ = digest->digest.number;
        const auto* event = std::get_if<Event>(&output);
        if (event != nullptr && event->name == "placement.settings_differ") {
          told_.push_back(event->text);
        }
      }
    }
  }

  void answer(NodeKey node, const ControlMessage& message) {
    if (const auto* request = std::get_if<ReportRequest>(&message)) {
      plane_.on_message(now_, node, RegionReport{request->term, request->claimant, node, {}});
    } else if (const auto* rehome = std::get_if<RehomeShard>(&message)) {
      plane_.on_message(
          now_, node,
          RegionAnswer{RegionAnswerKind::owned, rehome->shard, rehome->generation, node});
    }
  }

  // `bb` agrees to everything and hosts these types.
  void b_hosts(std::vector<HostedType> types) {
    Digest digest;
    digest.cluster = "orders";
    digest.cluster_id = plane_.cluster_id();
    digest.from = b_;
    digest.number = ++number_;
    digest.vote = Vote{plane_.status().term, a_.key, heard_};
    digest.set = plane_.members();
    digest.hosts = std::move(types);
    now_ += 10ms;
    plane_.on_digest(now_, digest);
    settle();
  }

  [[nodiscard]] std::size_t moves() const {
    return plane_.status().handoffs.size() + plane_.status().waiting_moves;
  }

  Time now_ = Time{} + 1s;
  NodeInfo a_ = info("a", 5);
  NodeInfo b_ = info("bb", 1);
  std::uint64_t number_ = 0;
  std::uint64_t heard_ = 0;  // the last digest of `a`
  std::vector<std::string> told_;
  ControlPlane plane_{now_, config(a_)};
};

TEST_F(TypeSettingsTest, AHostWithTheSameSettingsGetsItsShare) {
  ASSERT_EQ(plane_.members().members.size(), 2U);
  b_hosts({HostedType{"cart", 4}});
  EXPECT_THAT(told_, testing::IsEmpty());
  EXPECT_GT(moves(), 0U);
}

TEST_F(TypeSettingsTest, AHostWithOthersGetsNothingAndIsNamedOnce) {
  const HostedType strict{"cart", 4, {"least-shards", "", false, true}};
  b_hosts({strict});
  b_hosts({strict});
  b_hosts({strict, HostedType{"echo", 4}});
  EXPECT_THAT(told_, testing::ElementsAre(
                         "consistency of type 'cart': the cluster has available, node 'bb' has "
                         "strict; set TypeOptions::consistency (of the built-in types: "
                         "builtin_consistency) to the same on all nodes"));
  EXPECT_EQ(moves(), 0U);
  b_hosts({HostedType{"cart", 4}});
  EXPECT_GT(moves(), 0U);
  EXPECT_EQ(plane_.status().differs, "");
}

TEST_F(TypeSettingsTest, AYoungerMemberThatDiffersSaysSoInItsStatus) {
  Digest digest;
  digest.cluster = "orders";
  digest.cluster_id = plane_.cluster_id();
  digest.from = b_;
  digest.number = ++number_;
  digest.set = plane_.members();
  digest.set.stamp = Stamp{Term{9}, b_.key, 1};
  digest.set.members = {{b_, MemberState::up, 1}, {a_, MemberState::up, 2}};
  digest.hosts = {HostedType{"cart", 4, {"ring"}}};
  plane_.on_digest(now_, digest);
  settle();
  EXPECT_THAT(plane_.status().differs,
              testing::HasSubstr("the cluster has ring, node 'a' has least-shards"));
}

}  // namespace
}  // namespace shardbus::control
