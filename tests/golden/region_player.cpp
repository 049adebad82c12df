// Plays scripts of one shard on four nodes:
//   begin at=1 g=2 to=2 | prepare at=2 g=2 from=1 | freeze at=2 g=2 | rehome at=1 g=1
//   term at=1 term=2 | table at=1 owner=2 g=2 | send 1 | deliver 1 2 [n] | reset 1 2
//   stop 1 | handle 1 [n] | timer 1 | sweep 1 MILLISECONDS | past 1 | kill 1 | dead at=2 node=1 |
//   show
// g is a counter, or term/counter.
#include <stdexcept>

#include "golden/command.hpp"
#include "golden/players.hpp"
#include "support/handoff_world.hpp"

namespace shardbus::golden {
namespace {

Generation generation(const std::string& text) {
  const auto parts = split(text, '/');
  if (parts.size() == 1) return {Term{1}, NodeKey{99}, std::stoull(parts[0])};
  return {Term{std::stoull(parts[0])}, NodeKey{99}, std::stoull(parts[1])};
}

class RegionPlayer final : public Player {
 public:
  std::string play(const std::string& text) override {
    const Command command("0 " + text);
    if (command.verb == "show") {
      show(node(command.words.at(0)));
    } else if (!command.values.empty()) {
      order(command);
    } else {
      step(command);
    }
    std::string out;
    for (const std::string& line : world_.take_trace()) out += line + "\n";
    return std::exchange(shown_, {}) + out;
  }

 private:
  void order(const Command& c) {
    const NodeKey at = node(c.value("at"));
    const Generation g = generation(c.value("g", "0"));
    if (c.verb == "begin") return world_.begin(at, g, node(c.value("to")));
    if (c.verb == "prepare") return world_.prepare(at, g, node(c.value("from")));
    if (c.verb == "freeze") return world_.freeze(at, g);
    if (c.verb == "rehome") return world_.rehome(at, g, generation(c.value("frozen", "0")));
    if (c.verb == "table") return world_.table(at, {node(c.value("owner")), g});
    if (c.verb == "dead") return world_.note_death(at, node(c.value("node")));
    if (c.verb == "term") {
      return world_.node(at).region.on_term(Term{std::stoull(c.value("term"))});
    }
    throw std::invalid_argument("unknown verb: " + c.verb);
  }

  void step(const Command& c) {
    const NodeKey at = node(c.words.at(0));
    const auto times = [&](std::size_t word) {
      return c.words.size() > word ? std::stoi(c.words[word]) : 1;
    };
    if (c.verb == "deliver") {
      for (int i = 0; i < times(2); ++i) world_.deliver(at, node(c.words.at(1)));
    } else if (c.verb == "handle") {
      for (int i = 0; i < times(1); ++i) world_.handle(at);
    } else if (c.verb == "reset") {
      world_.reset(at, node(c.words.at(1)));
    } else if (c.verb == "send") {
      world_.send(at);
    } else if (c.verb == "stop") {
      world_.finish_stop(at);
    } else if (c.verb == "timer") {
      world_.timer(at);
    } else if (c.verb == "sweep") {
      world_.sweep(at, std::chrono::milliseconds(times(1)));
    } else if (c.verb == "past") {
      world_.go_past(at);
    } else if (c.verb == "kill") {
      world_.kill(at);
    } else {
      throw std::invalid_argument("unknown verb: " + c.verb);
    }
  }

  void show(NodeKey at) { shown_ += world_.node(at).region.state_text() + "\n"; }

  handoff::World world_{4};
  std::string shown_;
};

}  // namespace

std::unique_ptr<Player> make_region_player() {
  return std::make_unique<RegionPlayer>();
}

}  // namespace shardbus::golden
