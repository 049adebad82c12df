// The control loop of a node: gossip, membership, election and coordination, on a thread of its own
// that data never blocks.
//
// Owns the gossip sockets and the control plane. What the data plane notes down for it comes in by
// `DataListener`; what it decides goes to the link as work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "observe/log.hpp"
#include "runtime/control/control_plane.hpp"
#include "runtime/data/ports.hpp"
#include "runtime/node/incarnations.hpp"
#include "runtime/node/link.hpp"
#include "runtime/node/readiness.hpp"
#include "runtime/node/refounding.hpp"
#include "runtime/node/repeats.hpp"
#include "runtime/node/seeds.hpp"
#include "transport/death_probe.hpp"
#include "transport/gossip_sockets.hpp"

namespace shardbus::runtime {

struct ControlOptions {
  control::ControlConfig control;  // self: the first incarnation
  std::vector<std::string> seeds;  // without this node's own address
  bool may_bootstrap = false;
  bool death_proof = true;
};

class ControlLoop final : public DataListener {
 public:
  // Makes the data plane of a new incarnation; called before a node joins again.
  using Renew = std::function<void(const NodeInfo& self)>;

  ControlLoop(transport::ZmqContext& context, transport::GossipSockets gossip, Link& link,
              observe::Log& log, Readiness& readiness, ControlOptions options, Renew renew);
  ~ControlLoop() override;

  void start();
  void stop();
  // Asks for a graceful exit: shards go first, then the membership.
  void leave();
  // Waits until that is done; false if `until` came first.
  bool wait_left(Time until);
  // Whether this node was ever a member of a cluster.
  [[nodiscard]] bool was_member() const { return was_member_; }

  // --- DataListener, from within passes ---
  void on_control(NodeKey from, ControlMessage message) override;
  void on_traffic(NodeKey from) override;
  void on_link_lost(NodeKey node) override;
  void on_hosted_types(std::vector<HostedType> types) override;
  void on_admin(AdminCall call) override;
  void log(LogLevel level, std::string_view event, std::string text) override;
  [[nodiscard]] bool awake(Time now) const override {
    return now - judged_.load(std::memory_order_relaxed) < unjudged_max_;
  }

 private:
  struct FromNode {
    NodeKey from;
    ControlMessage message;
  };
  struct LinkLost {
    NodeKey node;
  };
  struct Hosted {
    std::vector<HostedType> types;
  };
  struct Leave {};
  using Input = std::variant<FromNode, LinkLost, Hosted, AdminCall, Leave>;

  void run();
  void wait();
  bool post(Input input);
  void take_inputs();
  void take(FromNode& input);
  void take(LinkLost& input);
  void take(Hosted& input);
  void take(AdminCall& input);
  void take(Leave& input);
  void begin_leave();
  void read_gossip();
  void read_probes();
  void carry_out();
  void share_right();
  void send_workers_away();
  void carry_out(const control::PublishDigest& output);
  void carry_out(const control::PublishDelta& output);
  void carry_out(const control::SendControl& output);
  void carry_out(const control::TellRegion& output);
  void carry_out(const control::ConnectNode& output);
  void carry_out(const control::DisconnectNode& output);
  void carry_out(const control::TableChanged& output);
  void carry_out(const control::Event& output);
  void carry_out(const control::LeaveDone& output);
  void carry_out(const control::DownSelf& output);
  void ask_seeds();
  void look_for_others();
  void report_waiting();
  [[nodiscard]] std::string waits_for() const;
  void down(const AdminCall& call);
  bool refuse_outside(const AdminCall& call);
  [[nodiscard]] std::string with_names(const std::string& text) const;
  void read_seeds();
  void take(const Seeds::Answer& answer);
  void decide_bootstrap();
  void begin_control(bool bootstrap);
  void note_left();
  void rejoin(const std::string& reason);
  [[nodiscard]] std::shared_ptr<const ClusterView> view() const;
  void report_placement();
  void tell(LogLevel level, std::string_view event, const std::string& text);

  transport::ZmqContext& context_;
  transport::GossipSockets gossip_;
  Link& link_;
  observe::Log& log_;
  Readiness& readiness_;
  ControlOptions options_;
  Renew renew_;
  transport::Wakeup wakeup_;
  transport::DeathProbe death_probe_;
  std::map<NodeKey, NodeInfo> known_;             // whom the plane told us to reach
  std::unique_ptr<control::ControlPlane> plane_;  // once this node knows whom to join
  std::shared_ptr<const AllocationTable> table_ =
      std::make_shared<AllocationTable>();  // its newest
  Seeds seeds_;
  Time next_seed_report_{};
  Time next_seed_look_{};
  bool refused_ = false;  // since the last report on the seeds
  std::string refusal_;   // by the cluster that it last asked; empty: none
  Time founded_anew_ = kNever;
  Repeats repeats_;
  std::vector<HostedType> hosts_;
  std::vector<HostedType> told_types_;
  std::vector<std::string> told_only_here_;
  std::uint64_t told_cluster_ = 0;
  Time told_right_{};  // see ControlPlane::strict_until
  std::string rejoin_reason_;
  bool founder_ = false;  // of the cluster that it is in
  bool leaving_ = false;  // the process, through all its incarnations
  Refounding refounding_;
  Incarnations incarnations_;
  bool placement_reported_ = false;

  std::mutex mutex_;
  std::vector<Input> inputs_;      // guarded by mutex_
  std::size_t admin_waiting_ = 0;  // of them; guarded by mutex_
  std::set<NodeKey> traffic_;      // guarded by mutex_
  // Half of the pause that costs a node its place, so that no such pause is missed; many times the
  // interval between two looks.
  const Duration unjudged_max_;
  std::atomic<Time> judged_{kNever};  // the last look at the clock; never: there is no loop
  std::atomic<bool> stopping_{false};
  std::atomic<bool> was_member_{false};
  std::condition_variable left_signal_;
  bool left_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace shardbus::runtime
