// Players of the cores that judge what is heard: failure and downing.
#include "base/model/text.hpp"
#include "core/downing/downing.hpp"
#include "core/failure/failure.hpp"
#include "golden/command.hpp"
#include "golden/players.hpp"

namespace shardbus::golden {
namespace {

// watch N | heard N | traffic N | lost N | proof N | forget N | tick
class FailurePlayer final : public Player {
 public:
  std::string play(const std::string& text) override {
    const Command command(text);
    const NodeKey peer = command.words.empty() ? kNoNode : node(command.words[0]);
    const std::map<std::string, failure::Input> inputs = {{"watch", failure::Watch{peer}},
                                                          {"heard", failure::Heard{peer}},
                                                          {"traffic", failure::Traffic{peer}},
                                                          {"lost", failure::LinkLost{peer}},
                                                          {"proof", failure::ProofOfDeath{peer}},
                                                          {"forget", failure::Forget{peer}},
                                                          {"tick", failure::Tick{}}};
    if (command.verb == "state") return detector_.state_text() + "\n";
    return lines_of(detector_.step(command.now, inputs.at(command.verb)));
  }

 private:
  failure::Detector detector_{failure::Config{}};
};

// rules POLICY quorum_size= down_if_alone= | count members= previous= agreeing= dead= evidence= |
// view members= unreachable= dead= leaving= by2=3,4
class DowningPlayer final : public Player {
 public:
  std::string play(const std::string& text) override {
    const Command command(text);
    if (command.verb == "rules") return set_rules(command);
    if (command.verb == "count") {
      return std::string(to_text(downing::count(rules_, member_set(command),
                                                nodes(command.value("agreeing")),
                                                nodes(command.value("dead"))))) +
             "\n";
    }
    if (command.verb != "view") throw std::invalid_argument(text);
    downing::View view{member_set(command),
                       nodes(command.value("unreachable")),
                       nodes(command.value("dead")),
                       {},
                       nodes(command.value("leaving"))};
    for (const auto& [key, value] : command.values) {
      if (key.rfind("by", 0) == 0) view.unreachable_by[node(key.substr(2))] = nodes(value);
    }
    const std::string out = lines_of(downing_.step(command.now, view));
    return out + downing_.state_text() + "\n";
  }

 private:
  std::string set_rules(const Command& command) {
    rules_ = downing_rules(command);
    downing_ = downing::Downing(downing::Config{NodeKey{1}, rules_});
    return to_text(rules_) + "\n";
  }

  downing::Rules rules_;
  downing::Downing downing_{downing::Config{NodeKey{1}}};
};

}  // namespace

std::unique_ptr<Player> make_failure_player() {
  return std::make_unique<FailurePlayer>();
}
std::unique_ptr<Player> make_downing_player() {
  return std::make_unique<DowningPlayer>();
}

}  // namespace shardbus::golden
