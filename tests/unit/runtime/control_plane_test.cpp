// The edges of the control plane: who is let in, who is refused and with what words, and what a
// caller sees. The lives of whole clusters are in tests/golden/control and tests/sim.
#include "runtime/control/control_plane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace shardbus::control {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

NodeInfo info(const std::string& name, std::uint64_t incarnation, const std::string& host) {
  const std::string url = "tcp://" + host + ":740";
  return NodeInfo{name,      incarnation, NodeKey{incarnation * 100 + name.size()},
                  url + "0", url + "1",   url + "2"};
}

ControlConfig config(const NodeInfo& self, bool bootstrap) {
  ControlConfig config;
  config.cluster = "orders";
  config.self = self;
  config.bootstrap = bootstrap;
  config.hosts = {HostedType{"cart", 4}};
  return config;
}

// A cluster of one whose region owns everything at once.
class AloneTest : public testing::Test {
 protected:
  AloneTest() { settle(); }

  std::vector<ControlOutput> settle() {
    std::vector<ControlOutput> all;
    for (auto outputs = plane_.take_outputs(); !outputs.empty(); outputs = plane_.take_outputs()) {
      for (const ControlOutput& output : outputs) {
        if (const auto* told = std::get_if<TellRegion>(&output)) answer(told->message);
        all.push_back(output);
      }
    }
    return all;
  }

  void answer(const ControlMessage& message) {
    if (const auto* request = std::get_if<ReportRequest>(&message)) {
      plane_.on_message(now_, self_.key,
                        RegionReport{request->term, request->claimant, self_.key, {}});
    } else if (const auto* rehome = std::get_if<RehomeShard>(&message)) {
      plane_.on_message(
          now_, self_.key,
          RegionAnswer{RegionAnswerKind::owned, rehome->shard, rehome->generation, self_.key});
    }
  }

  // The refusal that a request gets; code 0 if none.
  JoinRefused ask(const JoinRequest& request) {
    plane_.on_message(now_, request.node.key, request);
    for (const ControlOutput& output : settle()) {
      const auto* sent = std::get_if<SendControl>(&output);
      if (sent == nullptr) continue;
      if (const auto* refused = std::get_if<JoinRefused>(&sent->message)) return *refused;
    }
    return {};
  }

  Time now_ = Time{} + 1s;
  NodeInfo self_ = info("a", 5, "a");
  ControlPlane plane_{now_, config(self_, true)};
};

TEST_F(AloneTest, ABootstrappedNodeDecidesAndOwnsEverything) {
  const ControlStatus status = plane_.status();
  EXPECT_TRUE(status.in_cluster);
  EXPECT_NE(status.cluster_id, 0U);
  EXPECT_EQ(status.coordinator, self_.key);
  EXPECT_EQ(status.authority, Authority::full);
  ASSERT_EQ(status.members.size(), 1U);
  EXPECT_EQ(status.members[0].load, 4U);
}

TEST_F(AloneTest, AJoinerWithTheSameSettingsIsLetIn) {
  EXPECT_EQ(ask({"orders", info("bb", 1, "b"), {HostedType{"cart", 4}}}).code, 0);
  EXPECT_EQ(plane_.members().members.size(), 2U);
}

// Otherwise it asked for ever where the later one was needed for a majority.
TEST_F(AloneTest, WhoComesBackWithItsClockBehindHearsItFromWhoCannotDecide) {
  EXPECT_EQ(ask({"orders", info("bb", 3, "b"), {HostedType{"cart", 4}}}).code, 0);
  ASSERT_EQ(plane_.status().authority, Authority::none);
  const JoinRefused behind = ask({"orders", info("bb", 2, "b"), {HostedType{"cart", 4}}});
  EXPECT_EQ(static_cast<Errc>(behind.code), Errc::stale_incarnation);
}

TEST_F(AloneTest, RefusalsNameBothValues) {
  const JoinRefused cluster = ask({"carts", info("bb", 1, "b"), {}});
  EXPECT_EQ(static_cast<Errc>(cluster.code), Errc::cluster_mismatch);
  EXPECT_THAT(cluster.text, HasSubstr("node 'a' is of cluster 'orders', node 'bb' of 'carts'"));

  const JoinRefused shards = ask({"orders", info("bb", 1, "b"), {HostedType{"cart", 8}}});
  EXPECT_EQ(static_cast<Errc>(shards.code), Errc::config_mismatch);
  EXPECT_THAT(shards.text,
              HasSubstr("shard count of type 'cart': the cluster has 4, node 'bb' has 8"));

  const JoinRefused placed =
      ask({"orders", info("bb", 1, "b"), {HostedType{"cart", 4, {"ring", "web", false}}}});
  EXPECT_EQ(static_cast<Errc>(placed.code), Errc::config_mismatch);
  EXPECT_EQ(placed.text,
            "placement of type 'cart': the cluster has least-shards, node 'bb' has ring; set "
            "TypeOptions::placement (of the built-in types: builtin_placement) to the same on all "
            "nodes");
  const JoinRefused strict = ask(
      {"orders", info("bb", 1, "b"), {HostedType{"cart", 4, {"least-shards", "", false, true}}}});
  EXPECT_THAT(strict.text, HasSubstr("consistency of type 'cart': the cluster has available, node "
                                     "'bb' has strict; set TypeOptions::consistency"));

  const JoinRefused stale = ask({"orders", info("a", 4, "a"), {}});
  EXPECT_EQ(static_cast<Errc>(stale.code), Errc::stale_incarnation);
  EXPECT_THAT(stale.text, HasSubstr("incarnation 5 of 'a' is known, 4 asked"));
  EXPECT_EQ(plane_.members().members.size(), 1U);
}

TEST_F(AloneTest, AnotherDowningPolicyIsRefusedAndShowsBothValues) {
  const std::vector<Setting> oldest{{"downing", "keep-oldest down_if_alone=true"}};
  const JoinRefused refused = ask({"orders", info("bb", 1, "b"), {}, oldest});
  EXPECT_EQ(static_cast<Errc>(refused.code), Errc::config_mismatch);
  EXPECT_EQ(refused.text,
            "downing policy: the cluster has keep-majority, node 'bb' has keep-oldest "
            "down_if_alone=true; set downing, with quorum_size and down_if_alone, to the same on "
            "all nodes");
  // A node that tells no settings has the policy that was the only one.
  EXPECT_EQ(ask({"orders", info("bb", 1, "b"), {}}).code, 0);
}

TEST_F(AloneTest, OtherSettingsThatDifferAreLoggedOnce) {
  const std::vector<Setting> other{
      {"downing", "keep-majority"}, {"min_members", "3"}, {"unknown", "x"}};
  for (int times = 0; times < 2; ++times) {
    plane_.on_message(now_, NodeKey{901}, JoinRequest{"orders", info("bb", 1, "b"), {}, other});
  }
  std::vector<std::string> texts;
  for (const ControlOutput& output : settle()) {
    const auto* event = std::get_if<Event>(&output);
    if (event != nullptr && event->name == "join.differs") texts.push_back(event->text);
  }
  EXPECT_THAT(texts, testing::ElementsAre("bb: min_members is 1 on 'a', 3 on 'bb'"));
}

TEST(Policies, AreToldToTheClusterThatIsAsked) {
  const Time now = Time{} + 1s;
  ControlConfig made = config(info("bb", 1, "b"), false);
  made.downing = {DowningPolicy::static_quorum, 2};
  ControlPlane plane(now, made);
  plane.on_seed(now, info("a", 5, "a"), "orders", 7);
  std::vector<std::string> told;
  for (const ControlOutput& output : plane.take_outputs()) {
    const auto* sent = std::get_if<SendControl>(&output);
    if (sent == nullptr || !std::holds_alternative<JoinRequest>(sent->message)) continue;
    for (const Setting& setting : std::get<JoinRequest>(sent->message).settings) {
      if (setting.name == "downing") told.push_back(setting.value);
    }
  }
  EXPECT_THAT(told, testing::ElementsAre("static-quorum quorum_size=2"));
}

TEST(Policies, MoreMembersThanAStaticQuorumCanSplitAreWarnedOf) {
  const Time now = Time{} + 1s;
  ControlConfig made = config(info("a", 5, "a"), true);
  made.downing = {DowningPolicy::static_quorum, 1};
  ControlPlane plane(now, made);
  plane.take_outputs();
  plane.on_message(
      now, NodeKey{901},
      JoinRequest{"orders", info("bb", 1, "b"), {}, {{"downing", "static-quorum quorum_size=1"}}});
  std::vector<std::string> texts;
  for (const ControlOutput& output : plane.take_outputs()) {
    const auto* event = std::get_if<Event>(&output);
    if (event != nullptr && event->name == "downing.too_many_members") {
      texts.push_back(event->text);
    }
  }
  EXPECT_THAT(texts,
              testing::ElementsAre("2 members, quorum_size is 1: any split downs all of them"));
}

// Whatever a strategy does, shards get homes, and somebody is told.
TEST(PlannerFailures, AreContainedAndReported) {
  const std::vector<std::pair<Planner, std::string>> planners = {
      {[](const auto&) -> std::vector<PlacementMove> { throw std::runtime_error("no idea"); },
       "cart: no idea"},
      {[](const auto&) -> std::vector<PlacementMove> { throw 7; }, "cart: it threw no std"},
      {[](const auto&) { return std::vector<PlacementMove>{}; }, "cart: no home for 4 shards"},
      {[](const PlacementSnapshot& in) {
         return std::vector<PlacementMove>{{ShardId{99}, kNoNode, in.nodes.front().key},
                                           {ShardId{0}, NodeKey{5}, in.nodes.front().key},
                                           {ShardId{1}, kNoNode, NodeKey{12345}},
                                           {ShardId{2}, kNoNode, in.nodes.front().key},
                                           {ShardId{2}, kNoNode, in.nodes.front().key}};
       },
       "cart: no home for 3 shards"},
  };
  const NodeInfo self = info("a", 5, "a");
  for (const auto& [planner, expected] : planners) {
    ControlConfig made = config(self, true);
    made.planner = planner;
    const Time now = Time{} + 1s;
    ControlPlane plane(now, made);
    std::set<std::uint32_t> homes;
    std::string told;
    for (auto outputs = plane.take_outputs(); !outputs.empty(); outputs = plane.take_outputs()) {
      for (const ControlOutput& output : outputs) {
        if (const auto* event = std::get_if<Event>(&output)) {
          if (event->name == "coordinator.planner_failed") told += event->text + "\n";
        }
        const auto* command = std::get_if<TellRegion>(&output);
        if (command == nullptr) continue;
        if (const auto* request = std::get_if<ReportRequest>(&command->message)) {
          plane.on_message(now, self.key,
                           RegionReport{request->term, request->claimant, self.key, {}});
        } else if (const auto* home = std::get_if<RehomeShard>(&command->message)) {
          EXPECT_TRUE(homes.insert(home->shard.shard.value).second);
        }
      }
    }
    EXPECT_EQ(homes.size(), 4U) << expected;
    EXPECT_THAT(told, HasSubstr(expected));
  }
}

TEST_F(AloneTest, ASecondMachineOfOneNameIsRefusedWhileTheFirstIsHeard) {
  ASSERT_EQ(ask({"orders", info("bb", 1, "b"), {}}).code, 0);
  const JoinRefused other = ask({"orders", info("bb", 2, "elsewhere"), {}});
  // Until the first one counts as a member nobody can decide, so there may be no answer at all;
  // in no case is it taken for a proof of death.
  EXPECT_TRUE(other.code == 0 || static_cast<Errc>(other.code) == Errc::duplicate_node);
  EXPECT_EQ(plane_.status().members.at(1).reach, failure::Reach::reachable);
  EXPECT_EQ(plane_.ignored().duplicate_name, 1U);
}

TEST_F(AloneTest, ANewIncarnationAtTheSamePlaceProvesTheEndOfTheOldOne) {
  ASSERT_EQ(ask({"orders", info("bb", 1, "b"), {}}).code, 0);
  ASSERT_EQ(ask({"orders", info("bb", 2, "b"), {}}).code, 0);
  // The death lets this node decide again; the next request is heard.
  ASSERT_EQ(ask({"orders", info("bb", 2, "b"), {}}).code, 0);
  const MemberSet& set = plane_.members();
  ASSERT_EQ(set.members.size(), 2U);
  EXPECT_EQ(set.members[1].node.incarnation, 2U);
}

TEST_F(AloneTest, ANewerIncarnationOfItsOwnNameEndsIt) {
  plane_.on_message(now_, NodeKey{901}, JoinRequest{"orders", info("a", 9, "a"), {}});
  const auto outputs = settle();
  ASSERT_FALSE(outputs.empty());
  EXPECT_TRUE(std::holds_alternative<DownSelf>(outputs.back()));
  EXPECT_EQ(plane_.next_deadline(), kNever);
  EXPECT_FALSE(plane_.status().in_cluster);
}

TEST_F(AloneTest, ACopyOfItsNameElsewhereIsRefusedAndEndsNothing) {
  ControlPlane copy(now_, config(info("a", 9, "elsewhere"), false));
  copy.on_seed(now_, self_, "orders", plane_.cluster_id());
  int refusals = 0;
  // Everything that the copy says for three seconds reaches this node, and the other way round.
  for (const Time end = now_ + 3s; now_ < end; now_ += 50ms) {
    plane_.on_tick(now_);
    copy.on_tick(now_);
    for (const ControlOutput& output : copy.take_outputs()) {
      ASSERT_FALSE(std::holds_alternative<DownSelf>(output)) << to_text(output);
      if (const auto* sent = std::get_if<SendControl>(&output)) {
        plane_.on_message(now_, NodeKey{901}, sent->message);
      } else if (const auto* digest = std::get_if<PublishDigest>(&output)) {
        plane_.on_digest(now_, digest->digest);
      }
    }
    for (const ControlOutput& output : settle()) {
      ASSERT_FALSE(std::holds_alternative<DownSelf>(output)) << to_text(output);
      if (const auto* sent = std::get_if<SendControl>(&output)) {
        const auto* refused = std::get_if<JoinRefused>(&sent->message);
        ASSERT_NE(refused, nullptr);
        EXPECT_EQ(static_cast<Errc>(refused->code), Errc::duplicate_node);
        EXPECT_THAT(refused->text, HasSubstr("'a' is at tcp://a:7401"));
        ++refusals;
        copy.on_message(now_, self_.key, sent->message);
      } else if (const auto* digest = std::get_if<PublishDigest>(&output)) {
        copy.on_digest(now_, digest->digest);
      }
    }
  }
  EXPECT_GE(refusals, 5);  // it tries on: the other one may be an own life that nobody missed yet
  EXPECT_GE(plane_.ignored().duplicate_name, 5U);
  EXPECT_EQ(plane_.status().authority, Authority::full);
  EXPECT_FALSE(copy.status().in_cluster);
}

TEST_F(AloneTest, ACopyOfItsNameThatTheOthersTookForItEndsIt) {
  Digest digest;
  digest.cluster = "orders";
  digest.cluster_id = plane_.cluster_id();
  digest.from = info("a", 9, "elsewhere");
  digest.number = 1;
  digest.set = plane_.members();
  digest.set.members[0].node = digest.from;
  plane_.on_digest(now_, digest);
  EXPECT_FALSE(plane_.status().in_cluster);
}

TEST_F(AloneTest, WhileStrictTypesWaitItNamesWhomEvidenceRemoved) {
  plane_.on_hosted_types(now_, {HostedType{"cart", 4, {"least-shards", "", false, true}}});
  settle();
  Digest digest;
  digest.cluster = "orders";
  digest.cluster_id = plane_.cluster_id();
  digest.from = info("bb", 1, "b");
  const auto tell = [&](std::vector<NodeInfo> nodes, bool evidence) {
    ++digest.number;
    digest.set = {Stamp{Term{9}, digest.from.key, digest.number}, {}, {}, true, evidence};
    for (NodeInfo& node : nodes)
      digest.set.members.push_back({std::move(node), MemberState::up, 1});
    plane_.on_digest(now_, digest);
    std::vector<std::string> warnings;
    for (const ControlOutput& output : settle()) {
      const auto* event = std::get_if<Event>(&output);
      if (event != nullptr && event->name.starts_with("strict.")) warnings.push_back(event->text);
    }
    return warnings;
  };
  const NodeInfo c = info("ccc", 1, "c");
  EXPECT_THAT(tell({self_, digest.from, c}, false), testing::IsEmpty());
  EXPECT_EQ(plane_.status().strict_waits, "");
  const std::string why =
      "strict types wait: ccc was removed by evidence alone; `shardbusctl confirm` if it is gone "
      "for good";
  EXPECT_THAT(tell({self_, digest.from}, true), testing::ElementsAre(why));
  EXPECT_EQ(plane_.status().strict_waits, why);
  EXPECT_EQ(plane_.status().strangers.at(c.key), "ccc");
  EXPECT_THAT(tell({self_, digest.from, info("ccc", 2, "c")}, true),
              testing::ElementsAre(HasSubstr("ccc (before it started again) was removed")));
  EXPECT_EQ(tell({self_, digest.from}, false).size(), 1U);
  EXPECT_EQ(plane_.status().strict_waits, "");
}

TEST_F(AloneTest, DigestsOfOtherClustersAreCountedAndNamedOnce) {
  Digest digest;
  digest.cluster = "carts";
  digest.cluster_id = 7;
  digest.from = info("zz", 1, "z");
  digest.number = 1;
  plane_.on_digest(now_, digest);
  digest.number = 2;
  plane_.on_digest(now_, digest);
  int events = 0;
  for (const ControlOutput& output : settle()) events += std::holds_alternative<Event>(output);
  EXPECT_EQ(events, 1);
  EXPECT_EQ(plane_.ignored().other_cluster, 2U);
}

TEST_F(AloneTest, TheOnlyMemberLeavesAtOnce) {
  plane_.leave(now_);
  const auto outputs = settle();
  ASSERT_FALSE(outputs.empty());
  EXPECT_TRUE(std::holds_alternative<LeaveDone>(outputs.back()));
}

TEST_F(AloneTest, RepublishesEveryInterval) {
  const Time due = plane_.next_deadline();
  EXPECT_LE(due, now_ + 200ms);
  now_ = now_ + 200ms;
  plane_.on_tick(now_);
  const auto outputs = settle();
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<PublishDigest>(outputs[0]));
}

// Two planes on a perfect network; no types, so that nothing has to be moved.
class PairTest : public testing::Test {
 protected:
  struct Side {
    NodeInfo info;
    ControlPlane plane;
    bool left = false;
  };

  void run(Duration time) {
    for (const Time until = now_ + time; now_ < until; now_ += 1ms) {
      for (Side* side : {&first_, &second_}) side->plane.on_tick(now_);
      for (bool busy = true; busy;) {
        busy = false;
        for (Side* side : {&first_, &second_}) {
          for (const ControlOutput& output : side->plane.take_outputs()) {
            busy = true;
            carry(*side, side == &first_ ? second_ : first_, output);
          }
        }
      }
    }
  }

  void carry(Side& from, Side& to, const ControlOutput& output) {
    from.left = from.left || std::holds_alternative<LeaveDone>(output);
    if (const auto* digest = std::get_if<PublishDigest>(&output)) {
      to.plane.on_digest(now_, digest->digest);
    } else if (const auto* sent = std::get_if<SendControl>(&output)) {
      to.plane.on_message(now_, from.info.key, sent->message);
    } else if (const auto* told = std::get_if<TellRegion>(&output)) {
      const auto* request = std::get_if<ReportRequest>(&told->message);
      if (request == nullptr) return;
      const RegionReport nothing{request->term, request->claimant, from.info.key, {}};
      from.plane.on_message(now_, from.info.key, nothing);
    }
  }

  static ControlConfig without_types(const NodeInfo& self, bool bootstrap) {
    ControlConfig made = config(self, bootstrap);
    made.hosts.clear();
    return made;
  }

  Time now_ = Time{} + 1s;
  Side first_{info("a", 5, "a"), {now_, without_types(info("a", 5, "a"), true)}};
  Side second_{info("bb", 1, "b"), {now_, without_types(info("bb", 1, "b"), false)}};
};

// The one that is left alone has to say that the version without the other counts before it goes.
TEST_F(PairTest, WhoLeaveTogetherBothLeaveInOrder) {
  run(5ms);
  second_.plane.on_seed(now_, first_.info, "orders", first_.plane.cluster_id());
  run(500ms);
  ASSERT_EQ(second_.plane.members().members.size(), 2U);
  first_.plane.leave(now_);
  second_.plane.leave(now_);
  run(1s);
  EXPECT_TRUE(first_.left);
  EXPECT_TRUE(second_.left);
}

// The workers of such types have to go elsewhere before the node can.
TEST_F(PairTest, ALeaverKnowsWhatNobodyElseHosts) {
  run(5ms);
  second_.plane.on_seed(now_, first_.info, "orders", first_.plane.cluster_id());
  first_.plane.on_hosted_types(now_, {HostedType{"cart", 4}, HostedType{"user", 4}});
  second_.plane.on_hosted_types(now_, {HostedType{"cart", 4}});
  run(500ms);
  ASSERT_EQ(first_.plane.members().members.size(), 2U);
  EXPECT_TRUE(first_.plane.only_here().empty()) << "it does not leave";
  first_.plane.leave(now_);
  EXPECT_THAT(first_.plane.only_here(), testing::ElementsAre("user"));
  first_.plane.on_hosted_types(now_, {HostedType{"cart", 4}});
  EXPECT_TRUE(first_.plane.only_here().empty());
  second_.plane.leave(now_);
  EXPECT_TRUE(second_.plane.only_here().empty()) << "the first hosts it, as far as it knows";
}

TEST_F(AloneTest, ALeaverThatIsAloneSendsNobodyAnywhere) {
  plane_.leave(now_);
  EXPECT_TRUE(plane_.only_here().empty());
}

// Others keep an incarnation that left for gone: as a member they would not speak with it.
TEST_F(PairTest, AnIncarnationThatWasAMemberIsNotLetInAgain) {
  run(5ms);
  second_.plane.on_seed(now_, first_.info, "orders", first_.plane.cluster_id());
  run(2s);
  ASSERT_EQ(first_.plane.members().members.size(), 2U);
  second_.plane.leave(now_);
  run(5s);
  ASSERT_TRUE(second_.left);
  ASSERT_EQ(first_.plane.members().members.size(), 1U);
  first_.plane.on_message(now_, second_.info.key, JoinRequest{"orders", second_.info, {}});
  Errc refused = Errc::ok;
  for (const ControlOutput& output : first_.plane.take_outputs()) {
    const auto* sent = std::get_if<SendControl>(&output);
    if (sent == nullptr || !std::holds_alternative<JoinRefused>(sent->message)) continue;
    refused = static_cast<Errc>(std::get<JoinRefused>(sent->message).code);
  }
  EXPECT_EQ(refused, Errc::stale_incarnation);
}

// A member that only hears: what each version of the set does to its connection with a joiner.
class ListenerTest : public testing::Test {
 protected:
  ListenerTest() { plane_.on_seed(now_, first_, "orders", 7); }

  // `claimant` says that the version `number` of its term has these members; `joining` is the last.
  void hear(const NodeInfo& claimant, std::uint64_t term, std::uint64_t number,
            const std::vector<NodeInfo>& members, bool joins, bool counted,
            const std::vector<NodeInfo>& previous = {}) {
    Digest digest;
    digest.cluster = "orders";
    digest.cluster_id = 7;
    digest.from = claimant;
    digest.number = ++heard_;
    digest.vote = Vote{Term{term}, claimant.key, 0};
    digest.set.stamp = Stamp{Term{term}, claimant.key, number};
    digest.set.counted = counted;
    for (const NodeInfo& node : members) {
      const bool last = joins && &node == &members.back();
      digest.set.members.push_back(Member{node, last ? MemberState::joining : MemberState::up,
                                          digest.set.members.size() + 1});
    }
    for (const NodeInfo& node : previous) insert(digest.set.previous, node.key);
    digest.dead = dead_;
    now_ += 10ms;
    plane_.on_digest(now_, digest);
    if (looks_) look();
  }

  // That its sender has the version `number`, without the list.
  void hear_brief(const NodeInfo& from, std::uint64_t term, std::uint64_t number, bool counted) {
    Digest digest;
    digest.cluster = "orders";
    digest.cluster_id = 7;
    digest.from = from;
    digest.number = ++heard_;
    digest.vote = Vote{Term{term}, from.key, 0};
    digest.set.stamp = Stamp{Term{term}, first_.key, number};
    digest.set.counted = counted;
    now_ += 10ms;
    plane_.on_digest(now_, digest);
    look();
  }

  // The digests that this node published or sent to `to` since the last look.
  static std::vector<Digest> published(const std::vector<ControlOutput>& outputs) {
    std::vector<Digest> result;
    for (const ControlOutput& output : outputs) {
      if (const auto* digest = std::get_if<PublishDigest>(&output)) {
        result.push_back(digest->digest);
      }
    }
    return result;
  }
  [[nodiscard]] std::vector<Digest> sent_to(const NodeInfo& to) const {
    std::vector<Digest> result;
    for (const ControlOutput& output : looked_) {
      const auto* sent = std::get_if<SendControl>(&output);
      if (sent == nullptr || sent->to != to.key) continue;
      if (const auto* digest = std::get_if<Digest>(&sent->message)) result.push_back(*digest);
    }
    return result;
  }

  [[nodiscard]] Errc refused() const {
    for (const ControlOutput& output : looked_) {
      const auto* sent = std::get_if<SendControl>(&output);
      const auto* no = sent == nullptr ? nullptr : std::get_if<JoinRefused>(&sent->message);
      if (no != nullptr && sent->to == joiner_.key) return static_cast<Errc>(no->code);
    }
    return Errc::ok;
  }

  void look() {
    looked_ = plane_.take_outputs();
    for (const ControlOutput& output : looked_) {
      const auto* parted = std::get_if<DisconnectNode>(&output);
      if (parted != nullptr && parted->node == joiner_.key) parted_.push_back(parted->how);
    }
  }

  Time now_ = Time{} + 1s;
  std::uint64_t heard_ = 0;
  NodeInfo first_ = info("a", 5, "a");
  NodeInfo second_ = info("bb", 1, "b");
  NodeInfo self_ = info("ccc", 1, "c");
  NodeInfo joiner_ = info("dddd", 1, "d");
  ControlPlane plane_{now_, config(self_, false)};
  std::vector<NodeInfo> three_{first_, second_, self_};
  std::vector<NodeInfo> four_{first_, second_, self_, joiner_};
  std::vector<Parting> parted_;
  std::vector<ControlOutput> looked_;
  KeySet dead_;        // that the digests name
  bool looks_ = true;  // after each full digest
};

TEST_F(ListenerTest, ANewerSetWithoutItsListIsAskedForAndNotActedOn) {
  hear(first_, 1, 4, three_, false, true);
  EXPECT_EQ(plane_.vote().term, Term{1});
  hear_brief(first_, 2, 5, false);
  EXPECT_EQ(plane_.members().stamp.number, 4U);
  EXPECT_EQ(plane_.vote().term, Term{1});  // it may not be in that set any more
  const std::vector<Digest> asked = sent_to(first_);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].set.stamp.number, 4U);
  EXPECT_TRUE(is_brief(asked[0].set));
  hear_brief(second_, 2, 5, false);
  EXPECT_THAT(sent_to(second_), testing::IsEmpty());  // the answer may be on its way
  now_ += 50ms;
  hear_brief(second_, 2, 5, false);
  EXPECT_EQ(sent_to(second_).size(), 1U);
  hear(first_, 2, 5, four_, true, false, three_);
  EXPECT_EQ(plane_.members().members.size(), 4U);
  EXPECT_EQ(plane_.vote().term, Term{2});
}

TEST_F(ListenerTest, ThatAVersionCountedNeedsNoList) {
  hear(first_, 1, 4, three_, false, true);
  hear(first_, 1, 5, four_, true, false, three_);
  EXPECT_FALSE(plane_.members().counted);
  hear_brief(second_, 1, 5, true);
  EXPECT_TRUE(plane_.members().counted);
  EXPECT_THAT(plane_.members().previous, testing::IsEmpty());
  EXPECT_EQ(plane_.members().members.size(), 4U);
}

TEST_F(ListenerTest, WhoAsksOverTheLinkGetsTheList) {
  hear(first_, 1, 4, three_, false, true);
  Digest behind;
  behind.cluster = "orders";
  behind.cluster_id = 7;
  behind.from = second_;
  behind.number = 1;
  behind.set.stamp = Stamp{Term{1}, first_.key, 3};
  now_ += 100ms;
  plane_.on_message(now_, second_.key, behind);
  look();
  ASSERT_EQ(sent_to(second_).size(), 1U);
  EXPECT_EQ(sent_to(second_)[0].set, plane_.members());
}

// About one list in each interval goes out in the whole cluster, however large it is.
TEST_F(ListenerTest, TheListIsPublishedInTurn) {
  hear(first_, 1, 4, three_, false, true);
  std::size_t lists = 0;
  std::size_t all = 0;
  for (int i = 0; i < 60; ++i) {
    now_ += 90ms;
    hear_brief(i % 2 == 0 ? first_ : second_, 1, 4, true);
    for (const Digest& digest : published(looked_)) {
      lists += is_brief(digest.set) ? 0 : 1;
      ++all;
    }
  }
  EXPECT_GE(all, 29U);
  EXPECT_NEAR(static_cast<double>(lists), static_cast<double>(all) / 3, 1.5);
}

TEST_F(AloneTest, ItsOwnNewVersionGoesOutWithTheList) {
  plane_.on_message(now_, NodeKey{102}, JoinRequest{"orders", info("bb", 1, "b"), {}});
  std::vector<ControlOutput> outputs = settle();
  now_ += 1ms;
  plane_.on_tick(now_);
  for (ControlOutput& output : settle()) outputs.push_back(std::move(output));
  Stamp told;
  for (const ControlOutput& output : outputs) {
    const auto* digest = std::get_if<PublishDigest>(&output);
    if (digest == nullptr || digest->digest.set.stamp == told) continue;
    told = digest->digest.set.stamp;
    EXPECT_FALSE(is_brief(digest->digest.set)) << to_text(output);
  }
  EXPECT_EQ(told, plane_.members().stamp);
}

// It would refuse the joiner for ever, though the others may still let it in.
TEST_F(ListenerTest, AJoinThatNeverCountedDoesNotEndTheIncarnation) {
  hear(first_, 1, 4, three_, false, true);
  hear(first_, 1, 5, four_, true, false, three_);
  plane_.on_tick(now_);
  look();
  hear(second_, 2, 6, three_, false, false, three_);
  EXPECT_THAT(parted_, testing::ElementsAre(Parting::stranger));
}

TEST_F(ListenerTest, WhoJoinedAVersionThatCountedIsDeadWhenItIsMissing) {
  hear(first_, 1, 4, three_, false, true);
  hear(first_, 1, 5, four_, true, true);
  hear(second_, 2, 6, three_, false, true);
  EXPECT_THAT(parted_, testing::ElementsAre(Parting::dead));
}

// The table may still name it: who routes to it has to know that nobody answers there.
TEST_F(ListenerTest, WhoWasNeverConnectedIsDeadToTheDataPlaneToo) {
  insert(dead_, joiner_.key);
  hear(first_, 1, 5, four_, false, true);
  EXPECT_THAT(parted_, testing::ElementsAre(Parting::dead));
  hear(first_, 1, 6, three_, false, true);
  EXPECT_THAT(parted_, testing::ElementsAre(Parting::dead));
}

// That the join counted is learned from the version that removes it.
TEST_F(ListenerTest, ThePreviousListHasCounted) {
  hear(first_, 1, 4, three_, false, true);
  hear(first_, 1, 5, four_, true, false, three_);
  hear(first_, 1, 6, three_, false, false, four_);
  EXPECT_THAT(parted_, testing::IsEmpty());
  hear(first_, 1, 6, three_, false, true);
  EXPECT_THAT(parted_, testing::ElementsAre(Parting::dead));
}

// Found by the simulator: it was made a member without hearing of it, the coordinator died while
// it removed it again, and the last one that was left waited for its repeat for ever.
TEST_F(ListenerTest, AJoinerThatIsBeingRemovedHasToComeAgain) {
  hear(first_, 1, 5, four_, false, true);
  const JoinRequest asks{"orders", joiner_, {}};
  plane_.on_message(now_, joiner_.key, asks);
  look();
  EXPECT_EQ(refused(), Errc::ok) << "it is a member: somebody will tell it";
  hear(first_, 1, 6, three_, false, false, four_);
  plane_.on_message(now_, joiner_.key, asks);
  look();
  EXPECT_EQ(refused(), Errc::stale_incarnation);
}

// Found by the simulator: a control loop that comes late hears of all of it at once, and the table
// may still name the node.
TEST_F(ListenerTest, WhoCameAndDiedBetweenTwoLooksIsGone) {
  hear(first_, 1, 4, three_, false, true);
  looks_ = false;
  hear(first_, 1, 5, four_, false, true);
  dead_ = {joiner_.key};
  hear(first_, 1, 5, four_, false, true);
  dead_ = {};
  hear(first_, 1, 6, three_, false, true);
  look();
  EXPECT_THAT(parted_, testing::ElementsAre(Parting::dead));
}

// Found by the simulator: the next incarnation has to be told, too, or it joins again.
TEST_F(ListenerTest, WhoIsToldToLeaveWhenItWakesUpTooLateLosesItsPlace) {
  hear(first_, 1, 4, three_, false, true);
  now_ += 1min;
  plane_.leave(now_);
  looked_ = plane_.take_outputs();
  const auto has = [this](auto* kind) {
    using Kind = std::remove_pointer_t<decltype(kind)>;
    return std::any_of(looked_.begin(), looked_.end(), [](const ControlOutput& output) {
      return std::holds_alternative<Kind>(output);
    });
  };
  EXPECT_TRUE(has(static_cast<DownSelf*>(nullptr)));
  EXPECT_FALSE(has(static_cast<LeaveDone*>(nullptr)));
}

TEST(Joiner, WithoutASeedItOnlySaysThatItIsThere) {
  const Time now = Time{} + 1s;
  ControlPlane plane(now, config(info("bb", 1, "b"), false));
  const auto outputs = plane.take_outputs();
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<PublishDigest>(outputs[0]));
  EXPECT_FALSE(plane.status().in_cluster);
}

TEST(Joiner, ASeedOfAnotherClusterIsNotAsked) {
  const Time now = Time{} + 1s;
  ControlPlane plane(now, config(info("bb", 1, "b"), false));
  plane.on_seed(now, info("a", 5, "a"), "carts", 7);
  for (const ControlOutput& output : plane.take_outputs()) {
    EXPECT_FALSE(std::holds_alternative<SendControl>(output)) << to_text(output);
  }
}

TEST(Joiner, WhoIsToldToLeaveEndsAtOnce) {
  const Time now = Time{} + 1s;
  ControlPlane plane(now, config(info("bb", 1, "b"), false));
  plane.leave(now);
  const auto outputs = plane.take_outputs();
  ASSERT_FALSE(outputs.empty());
  EXPECT_TRUE(std::holds_alternative<LeaveDone>(outputs.back()));
}

// They come and go, and are judged where they are once the cluster is known there.
TEST(Joiner, TypesOfWorkersAreNoReasonToRefuseIt) {
  const Time now = Time{} + 1s;
  ControlPlane plane(now, config(info("bb", 1, "b"), false));
  plane.on_hosted_types(now, {HostedType{"own", 4}, HostedType{"job", 64, {}, true}});
  plane.on_seed(now, info("a", 5, "a"), "orders", 7);
  std::vector<HostedType> told;
  for (const ControlOutput& output : plane.take_outputs()) {
    const auto* sent = std::get_if<SendControl>(&output);
    const auto* join = sent == nullptr ? nullptr : std::get_if<JoinRequest>(&sent->message);
    if (join != nullptr) told = join->hosts;
  }
  EXPECT_EQ(told, (std::vector<HostedType>{{"own", 4}}));
}

TEST(Joiner, AfterARefusalThatStaysItAsksAgainMuchLater) {
  const Time now = Time{} + 1s;
  ControlPlane plane(now, config(info("bb", 1, "b"), false));
  plane.on_seed(now, info("a", 5, "a"), "orders", 7);
  plane.take_outputs();
  plane.on_message(now, NodeKey{501},
                   JoinRefused{static_cast<std::uint16_t>(Errc::config_mismatch), "4 here"});
  plane.take_outputs();
  plane.on_tick(now + 600ms);
  for (const ControlOutput& output : plane.take_outputs()) {
    EXPECT_FALSE(std::holds_alternative<SendControl>(output)) << to_text(output);
  }
  plane.on_tick(now + 6s);
  const auto later = plane.take_outputs();
  EXPECT_TRUE(std::any_of(later.begin(), later.end(), [](const ControlOutput& output) {
    return std::holds_alternative<SendControl>(output);
  }));
}

}  // namespace
}  // namespace shardbus::control
