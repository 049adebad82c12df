// Players of the cores that hold the right to decide: membership and election. Both are node 1.
#include "base/model/text.hpp"
#include "core/downing/downing.hpp"
#include "core/election/election.hpp"
#include "core/membership/membership.hpp"
#include "golden/command.hpp"
#include "golden/players.hpp"

namespace shardbus::golden {
namespace {

// create | seen N members= stamp= | decide term= dead= unreachable= leaving= drained= joiners=5:2
// A joiner is "name:incarnation"; its key is ten times the incarnation plus the name.
class MembershipPlayer final : public Player {
 public:
  std::string play(const std::string& text) override {
    const Command command(text);
    membership::Input input;
    if (command.verb == "create") {
      NodeInfo node;
      node.key = NodeKey{1};
      node.name = "node1";
      node.incarnation = 1;
      input = membership::Create{node};
    } else if (command.verb == "seen") {
      input = membership::Seen{node(command.words.at(0)), member_set(command)};
    } else if (command.verb == "decide") {
      input = membership::Decide{Term{std::stoull(command.value("term"))}, wishes(command)};
    } else {
      throw std::invalid_argument(text);
    }
    const std::string out = lines_of(membership_.step(command.now, input));
    return out + to_text(membership_.set()) + "\n";
  }

 private:
  static membership::Wishes wishes(const Command& command) {
    membership::Wishes wishes;
    wishes.dead = nodes(command.value("dead"));
    wishes.unreachable = nodes(command.value("unreachable"));
    wishes.reachable = nodes(command.value("reachable", "1,2,3,4,5"));
    wishes.leaving = nodes(command.value("leaving"));
    wishes.drained = nodes(command.value("drained"));
    wishes.presumed = nodes(command.value("presumed"));
    for (const std::string& part : split(command.value("joiners"), ',')) {
      const auto fields = split(part, ':');
      NodeInfo node;
      node.name = "node" + fields.at(0);
      node.incarnation = std::stoull(fields.at(1));
      node.key = NodeKey{node.incarnation == 1 ? std::stoull(fields[0])
                                               : node.incarnation * 10 + std::stoull(fields[0])};
      wishes.joiners.push_back(node);
    }
    return wishes;
  }

  membership::Membership membership_{{NodeKey{1}, downing::quorum_of({})}};
};

// view members= unreachable= dead= leaving= | digest N number= vote=T/N/digest resigned= stamp= |
// sent N | term_seen N | give_up | tick
class ElectionPlayer final : public Player {
 public:
  ElectionPlayer() : election_(config()) {}

  std::string play(const std::string& text) override {
    const Command command(text);
    if (command.verb == "state") return election_.state_text() + "\n";
    return lines_of(election_.step(command.now, input(command)));
  }

 private:
  static election::Config config() {
    election::Config config;
    config.self = NodeKey{1};
    config.quorum = downing::quorum_of({});
    return config;
  }

  static election::Input input(const Command& command) {
    if (command.verb == "view") {
      return election::View{member_set(command), nodes(command.value("unreachable")),
                            nodes(command.value("dead")), nodes(command.value("leaving")),
                            nodes(command.value("presumed"))};
    }
    if (command.verb == "digest") {
      election::DigestSeen digest;
      digest.from = node(command.words.at(0));
      digest.number = std::stoull(command.value("number"));
      const auto vote = triple<Stamp>(command.value("vote", "0/0/0"));
      digest.vote = Vote{vote.term, vote.claimant, vote.number};
      digest.resigned = Term{std::stoull(command.value("resigned", "0"))};
      digest.stamp = triple<Stamp>(command.value("stamp", "1/1/1"));
      return digest;
    }
    if (command.verb == "sent") return election::DigestSent{std::stoull(command.words.at(0))};
    if (command.verb == "term_seen") {
      return election::TermSeen{Term{std::stoull(command.words.at(0))}};
    }
    if (command.verb == "give_up") return election::GiveUp{};
    if (command.verb == "tick") return election::Tick{};
    throw std::invalid_argument(command.verb);
  }

  election::Election election_;
};

}  // namespace

std::unique_ptr<Player> make_membership_player() {
  return std::make_unique<MembershipPlayer>();
}
std::unique_ptr<Player> make_election_player() {
  return std::make_unique<ElectionPlayer>();
}

}  // namespace shardbus::golden
