// The coordinator's side of handoff as the rules have it (rules 3, 13, 20 to 24), without
// membership: it knows who is alive because the test tells it.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <variant>

#include "support/handoff_world.hpp"

namespace shardbus::handoff {

struct BeginCommand {
  Generation generation;
  NodeKey next;
};
struct PrepareCommand {
  Generation generation;
  NodeKey from;
};
struct FreezeCommand {
  Generation generation;
  NodeKey from;
};
struct RehomeCommand {
  Generation generation;
  Generation frozen;
};
using Command =
    std::variant<BeginCommand, PrepareCommand, FreezeCommand, RehomeCommand, TableEntry>;

class ScriptedCoordinator {
 public:
  explicit ScriptedCoordinator(World& world) : world_(world) {}

  void move(NodeKey to);  // nothing if a move is open
  void give_up();         // the open handoff took too long
  void take_over();       // a successor, in a new term, from the reports of the living
  void tick();            // reads answers, repairs, sends what is open
  void publish();         // the table again
  void deliver(NodeKey to);
  void drop(NodeKey to);  // what is on its way to that node is lost
  void note_death(NodeKey dead) { dead_.insert(dead); }

  [[nodiscard]] bool idle() const;
  [[nodiscard]] NodeKey owner() const { return entry_.owner; }
  [[nodiscard]] bool undid() const { return undid_; }

 private:
  enum class Kind : std::uint8_t { none, handoff, freeze, rehome };
  struct Op {
    Kind kind = Kind::none;
    NodeKey from;
    NodeKey to;
    NodeKey prefer;
    Generation generation;
    Generation frozen;
  };
  struct Sent {
    Term term;
    Command command;
  };
  struct Claim {
    NodeKey node;
    RegionState state = RegionState::none;
    Generation generation;
    NodeKey other;
  };
  [[nodiscard]] bool alive(NodeKey node) const { return node != kNoNode && !dead_.contains(node); }
  Generation next_generation() { return {term_, NodeKey{99}, ++counter_}; }
  void start(Kind kind, NodeKey from, NodeKey to, NodeKey prefer);
  void start_freeze(NodeKey to, Generation generation, NodeKey prefer);
  void note_answer(const Answer& answer);
  void repair();
  void resolve(const Claim& top, NodeKey keeper);
  void send(NodeKey to, Command command) { queues_[to].push_back({term_, std::move(command)}); }

  World& world_;
  Term term_{1};
  std::uint64_t counter_ = 0;
  TableEntry entry_;
  Op op_;
  std::set<NodeKey> dead_;
  std::map<NodeKey, std::deque<Sent>> queues_;
  std::map<NodeKey, Term> seen_;  // highest term per node
  bool undid_ = false;
};

}  // namespace shardbus::handoff
