// A cluster on virtual time: machines, network and the faults that can be done to them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/breaks.hpp"
#include "sim/checker.hpp"
#include "sim/ledger.hpp"
#include "sim/network.hpp"
#include "sim/node.hpp"
#include "sim/wires.hpp"
#include "sim/workload.hpp"

namespace shardbus::sim {

struct WorldConfig {
  std::uint64_t seed = 1;
  int machines = 3;
  std::vector<HostedType> types;
  bool overlap_allowed = false;
  bool lossless = false;  // nothing will be done to it that may lose a message
  WorkloadConfig workload;
  runtime::DataConfig data;  // limits and times
  Breaks breaks;
  downing::Rules downing;
  std::uint32_t min_members = 1;
  bool hash_trace = false;                             // costs a text per output
  std::function<void(const std::string& line)> trace;  // empty: no trace
};

class World : private WireEvents {
 public:
  explicit World(WorldConfig config);

  // --- faults and commands ---
  void start(int machine, bool bootstrap);  // a new incarnation; joins through the others
  void crash(int machine);
  void pause(int machine);
  void resume(int machine);
  void slow(int machine, Duration lag);          // each pass comes late by up to `lag`; 0: no more
  void slow_control(int machine, Duration lag);  // the control loop alone
  void drift(int machine, std::int64_t ppm);
  void jump_clock(int machine, Duration by);
  void leave(int machine);
  void down(int at, int machine);  // an operator at `at` declares the member of `machine` dead
  // The operator says that whoever was removed by evidence is gone for good.
  void confirm();
  void order(const coordinator::Order& order);
  void refuse(int at, int machine);  // `at` finds the port of the last life of `machine` closed
  void host(int machine, std::vector<HostedType> types);  // announces these only
  void block(int from, int to);
  void unblock(int from, int to);
  void clog(int from, int to);
  void release(int from, int to);
  void set_weather(int from, int to, const LinkWeather& weather);
  void heal();  // links and clocks work again, and nobody is slow any more
  void reset_link(int a, int b) { wires_.reset(a, b); }
  void garble(int from, int to, Garble how) { wires_.garble(from, to, how); }
  // Of lives that begin from now on.
  void set_rules(const downing::Rules& rules) { config_.downing = rules; }
  void set_min_members(std::uint32_t members) { config_.min_members = members; }
  void quiet() { workload_.quiet(); }  // callers send nothing more
  void ask_everything();               // from every node
  void go_on_asking();                 // where a buffer was full
  [[nodiscard]] bool waits_to_ask() const { return workload_.waits(); }

  void after(Duration delay, std::function<void()> what) { events_.after(delay, std::move(what)); }
  // Returns false once an invariant broke.
  bool run_until(Time when);
  bool run_for(Duration time) { return run_until(now() + time); }

  [[nodiscard]] Time now() const { return events_.now(); }
  [[nodiscard]] Time here(const Node& node) const { return node.clock.local(now()); }
  [[nodiscard]] Node& node(int machine) { return nodes_[static_cast<std::size_t>(machine)]; }
  [[nodiscard]] const Node& node(int machine) const {
    return nodes_[static_cast<std::size_t>(machine)];
  }
  [[nodiscard]] int machines() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] bool anybody_in_cluster() const;
  [[nodiscard]] std::vector<int> beside_the_largest() const;
  [[nodiscard]] int decider() const;  // a machine that may decide now; -1: none
  // Where nothing may be lost: somebody else stays who can take over all that `machine` has.
  [[nodiscard]] bool can_spare(int machine) const;
  // Why the cluster is not in a settled state; empty if it is: all machines run and are up in one
  // counted set, all tables are equal, every shard of every type has its owner, and every node has
  // an open route to it.
  [[nodiscard]] std::string unsettled() const;
  [[nodiscard]] const std::optional<std::string>& broken() const { return broken_; }
  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] Checker& checker() { return checker_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] std::uint64_t events() const { return events_.count(); }
  [[nodiscard]] std::uint64_t trace_hash() const { return trace_hash_; }
  [[nodiscard]] Marks marks() const;  // of all processes that ever ran
  [[nodiscard]] std::string state_text() const;
  [[nodiscard]] std::string readable(const std::string& text) const;

 private:
  enum class Side : std::uint8_t { control, data };
  struct Life {
    int machine = 0;
    std::string label;
  };

  // --- world_process.cpp: what one process does, as NodeCore and ControlLoop do it ---
  void begin_life(Node& node, std::uint64_t incarnation, bool bootstrap);
  ProcessOptions process_options(Node& node);
  void renew(Node& node);
  void stop(Node& node, const char* why);
  void act(Node& node, Side side, const std::function<void()>& what);
  void wake_up(Node& node);
  void stall(Node& node);
  void look_later(Node& node);
  void look(Node& node);
  [[nodiscard]] bool held(const Node& node) const;
  void run(Node& node, Side side, const std::function<void()>& what);
  void share_right(Node& node);
  bool pump(Node& node);
  bool hand_over(Node& node);
  void step_exit(Node& node);
  void check(Node& node);
  void schedule_wake(Node& node);

  // --- world_outputs.cpp: what a control plane wants done ---
  void carry_out(Node& node, control::ControlOutput& output);
  void tell_region(Node& node, const ControlMessage& command);
  void forge(const Node& node, const ControlMessage& command);
  void connect(Node& node, const NodeInfo& to);
  void disconnect(Node& node, const control::DisconnectNode& output);
  void publish(const Node& node, const ControlMessage& message);
  void deliver_gossip(int from, int to, const std::string& bytes);
  void probe(Node& at, NodeKey node);
  void look_for_seeds(int machine, std::uint64_t starts);

  // --- WireEvents ---
  [[nodiscard]] Port port(int machine) const override;
  void on_connected(int machine, NodeKey peer) override;
  void on_disconnected(int machine, NodeKey peer) override;
  void on_link_frame(int machine, NodeKey peer, std::string frame) override;
  void on_peer_frame(int machine, std::uint32_t connection, std::string frame) override;

  [[nodiscard]] std::string unsettled_owners(const AllocationTable& table) const;
  LedgerConfig ledger_config();
  [[nodiscard]] bool is_up(const Node& node) const;
  void call_later(int machine);
  void fail(const std::string& what);
  void trace(const Node& node, const std::string& line);
  void hash(std::string_view bytes);
  void trace_frame(const Node& node, const std::string& from, const std::string& frame);
  [[nodiscard]] int machine_of(NodeKey key) const { return lives_.at(key).machine; }

  WorldConfig config_;
  std::map<NodeKey, Life> lives_;
  Random random_;
  Events events_;
  Network network_;
  Wires wires_;
  Checker checker_;
  Ledger ledger_;
  Workload workload_;
  std::vector<Node> nodes_;
  bool lost_place_ = false;  // of the process that is pumped
  std::uint64_t checks_ = 0;
  std::optional<std::string> broken_;
  std::uint64_t trace_hash_;
  Marks marks_;  // of processes that ended
};

}  // namespace shardbus::sim
