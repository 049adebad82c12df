// Player of the coordinator (node 1). Every node hosts the types named by the last `view`.
#include <algorithm>

#include "base/model/text.hpp"
#include "core/coordinator/coordinator.hpp"
#include "core/placement/planners.hpp"
#include "golden/command.hpp"
#include "golden/players.hpp"

namespace shardbus::golden {
namespace {

ShardName shard(const std::string& text) {
  const auto parts = split(text, ':');
  return ShardName{parts.at(0), ShardId{static_cast<std::uint32_t>(std::stoul(parts.at(1)))}};
}

// view nodes=1,2:dead,3:unreachable,4:leaving,5:joining,6:idle,7:leaving:idle strict_homes=0|1
//      hosts=cart/4,user/2/strict
// decide term= | stop | tick
// report N cart:0=owner@2/1/3 cart:1=sending@2/1/4>3   (the state of each shard, type size 2)
// answer owned|frozen cart:0 2/1/3 N
// order cordon|drain|uncordon n2 | suspend | resume | move cart:0 n2 | pin cart:0 n2 | unpin cart:0
// order apply PLAN by=NAME
// plan                            (prints it; its id is known only then)
class CoordinatorPlayer final : public Player {
 public:
  CoordinatorPlayer() : coordinator_(config()) {}

  std::string play(const std::string& text) override {
    const Command command(text);
    if (command.verb == "plan") return plan(command.now);
    std::string out = lines_of(coordinator_.step(command.now, input(command)));
    if (command.verb == "tick") return out;
    return out + lines_of(coordinator_.step(command.now, coordinator::Tick{}));
  }

 private:
  static coordinator::Config config() {
    coordinator::Config config;
    config.self = NodeKey{1};
    config.planner = placement::by_settings;
    return config;
  }

  coordinator::Input input(const Command& command) {
    if (command.verb == "view") return view(command);
    if (command.verb == "decide") {
      return coordinator::Decide{Term{std::stoull(command.value("term"))}, coordinator_.table()};
    }
    if (command.verb == "stop") return coordinator::Stop{};
    if (command.verb == "tick") return coordinator::Tick{};
    if (command.verb == "report") return report(command);
    if (command.verb == "order") return order(command);
    if (command.verb == "answer") {
      const std::string& kind = command.words.at(0);
      RegionAnswer answer;
      answer.kind = kind == "owned" ? RegionAnswerKind::owned : RegionAnswerKind::frozen;
      answer.shard = shard(command.words.at(1));
      answer.generation = triple<Generation>(command.words.at(2));
      answer.node = node(command.words.at(3));
      return answer;
    }
    throw std::invalid_argument(command.verb);
  }

  coordinator::View view(const Command& command) {
    std::vector<HostedType> hosts;
    for (const std::string& part : split(command.value("hosts"), ',')) {
      const auto fields = split(part, '/');
      hosts.push_back(HostedType{fields[0], static_cast<std::uint32_t>(std::stoul(fields.at(1)))});
      hosts.back().placement.strict = fields.size() > 2 && fields[2] == "strict";
    }
    coordinator::View view;
    view.strict_homes = command.value("strict_homes", "1") == "1";
    for (const std::string& part : split(command.value("nodes"), ',')) {
      const auto fields = split(part, ':');
      coordinator::Peer peer;
      peer.key = node(fields[0]);
      peer.name = "n" + fields[0];
      const auto is = [&fields](const char* mark) {
        return std::find(fields.begin() + 1, fields.end(), mark) != fields.end();
      };
      peer.dead = is("dead");
      peer.reachable = !is("unreachable");
      peer.leaving = is("leaving");
      if (is("joining")) peer.state = MemberState::joining;
      if (!is("idle")) peer.hosts = hosts;
      view.peers.push_back(peer);
    }
    return view;
  }

  static coordinator::Order order(const Command& command) {
    using coordinator::OrderKind;
    static const std::map<std::string, OrderKind> kKinds = {
        {"cordon", OrderKind::cordon},   {"drain", OrderKind::drain},
        {"move", OrderKind::move},       {"uncordon", OrderKind::uncordon},
        {"pin", OrderKind::pin},         {"unpin", OrderKind::unpin},
        {"suspend", OrderKind::suspend}, {"resume", OrderKind::resume},
        {"apply", OrderKind::apply}};
    coordinator::Order order;
    order.kind = kKinds.at(command.words.at(0));
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const std::string& word = command.words[i];
      if (order.kind == OrderKind::apply) {
        order.plan = word;
      } else if (word.find(':') != std::string::npos) {
        order.shard = shard(word);
      } else {
        order.node = word;
      }
    }
    if (command.values.contains("by")) order.actor = command.values.at("by");
    return order;
  }

  std::string plan(Time now) {
    const coordinator::Plan plan = coordinator_.plan(now);
    std::string out =
        "plan " + plan.id + (plan.frozen.empty() ? "" : " frozen: " + plan.frozen) + "\n";
    for (const coordinator::PlannedMove& move : plan.moves) {
      out += "  " + to_text(move.shard) + " " + to_text(move.from) + " -> " + to_text(move.to) +
             " " + to_text(move.cause) + "\n";
    }
    return out;
  }

  RegionReport report(const Command& command) {
    static const std::map<std::string, RegionState> kStates = {{"owner", RegionState::owner},
                                                               {"sending", RegionState::sending},
                                                               {"forward", RegionState::forward},
                                                               {"incoming", RegionState::incoming},
                                                               {"frozen", RegionState::frozen}};
    RegionReport report;
    report.node = node(command.words.at(0));
    report.claimant = NodeKey{1};
    report.term = Term{std::stoull(command.value("term"))};
    for (const auto& [name, text] : command.values) {
      if (name == "term") continue;
      const auto at = text.find('@');
      const auto other = text.find('>');
      ReportedShard line;
      line.shard = shard(name);
      line.shard_count = 2;
      line.state = kStates.at(text.substr(0, at));
      line.generation = triple<Generation>(text.substr(at + 1, other - at - 1));
      if (other != std::string::npos) line.other = node(text.substr(other + 1));
      report.shards.push_back(line);
    }
    return report;
  }

  coordinator::Coordinator coordinator_;
};

}  // namespace

std::unique_ptr<Player> make_coordinator_player() {
  return std::make_unique<CoordinatorPlayer>();
}

}  // namespace shardbus::golden
