// A cluster on virtual time: machines, network and the faults that can be done to them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/checker.hpp"
#include "sim/network.hpp"
#include "sim/node.hpp"

namespace shardbus::sim {

struct WorldConfig {
  std::uint64_t seed = 1;
  int machines = 3;
  std::vector<HostedType> types;
  bool overlap_allowed = false;
  bool break_repeat_lower_term = false;
  bool break_generation_unchecked = false;
  bool break_answer_unchecked = false;
  bool hash_trace = false;                             // costs a text per output
  std::function<void(const std::string& line)> trace;  // empty: no trace
};

class World {
 public:
  explicit World(WorldConfig config);

  // --- faults and commands ---
  void start(int machine, bool bootstrap);  // a new incarnation; joins through the others
  void crash(int machine);
  void pause(int machine);
  void resume(int machine);
  void leave(int machine);
  void down(int at, int machine);    // an operator at `at` declares the member of `machine` dead
  void refuse(int at, int machine);  // `at` finds the port of the last life of `machine` closed
  void host(int machine, std::vector<HostedType> types);
  void block(int from, int to);
  void unblock(int from, int to);
  void clog(int from, int to);
  void release(int from, int to);
  void heal();  // all blocks and clogs
  void reset_link(int a, int b) { network_.reset(a, b); }

  void after(Duration delay, std::function<void()> what) { events_.after(delay, std::move(what)); }
  // Returns false once an invariant broke.
  bool run_until(Time when);
  bool run_for(Duration time) { return run_until(now() + time); }

  [[nodiscard]] Time now() const { return events_.now(); }
  [[nodiscard]] Node& node(int machine) { return nodes_[static_cast<std::size_t>(machine)]; }
  [[nodiscard]] int machines() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] bool anybody_in_cluster() const;
  // Why the cluster is not in a settled state; empty if it is: all machines run and are up in one
  // counted set, all tables are equal, and every shard of every type has its owner.
  [[nodiscard]] std::string unsettled() const;
  [[nodiscard]] const std::optional<std::string>& broken() const { return broken_; }
  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] Checker& checker() { return checker_; }
  [[nodiscard]] std::uint64_t events() const { return events_.count(); }
  [[nodiscard]] std::uint64_t trace_hash() const { return trace_hash_; }
  [[nodiscard]] std::string state_text() const;
  [[nodiscard]] std::string readable(const std::string& text) const;

 private:
  void act(Node& node, const std::function<void()>& what);
  void pump(Node& node);
  bool carry_out(Node& node, control::ControlOutput& output);
  void region_outputs(Node& node);
  void publish(const Node& node, const ControlMessage& message);
  void send(const Node& node, NodeKey to, Channel channel, std::string bytes);
  void deliver(int from, int to, Channel channel, const std::string& bytes);
  void deliver_gossip(Node& node, NodeKey from, const std::string& bytes);
  void connect(Node& node, const NodeInfo& to);
  void prove_death(Node& at, NodeKey dead, int machine);
  void stop(Node& node, const char* why);
  void schedule_wake(Node& node);
  void look_for_seeds(int machine, std::uint64_t life);
  void fail(const std::string& what);
  void trace(const Node& node, const std::string& line);
  [[nodiscard]] int machine_of(NodeKey key) const { return lives_.at(key).machine; }

  struct Life {
    int machine = 0;
    std::string label;
  };

  WorldConfig config_;
  std::map<NodeKey, Life> lives_;
  Random random_;
  Events events_;
  Network network_;
  Checker checker_;
  std::vector<Node> nodes_;
  std::optional<std::string> broken_;
  std::uint64_t trace_hash_;
};

}  // namespace shardbus::sim
