// The control plane of one node: composes the cores, turns the outputs of one into the inputs of
// another, and says what the node has to send. Pure as they are: no clock, thread or I/O.
// Use: call any number of on_*(), then take_outputs() once, then sleep until next_deadline().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/marks.hpp"
#include "base/model/allocation.hpp"
#include "base/model/gone_nodes.hpp"
#include "base/model/keys.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "core/coordinator/coordinator.hpp"
#include "core/downing/downing.hpp"
#include "core/election/election.hpp"
#include "core/failure/failure.hpp"
#include "core/lease/lease.hpp"
#include "core/membership/membership.hpp"
#include "runtime/control/control_outputs.hpp"
#include "runtime/control/control_status.hpp"
#include "shardbus/status.hpp"

namespace shardbus::control {

struct ControlConfig {
  std::string cluster;
  NodeInfo self;
  bool bootstrap = false;  // make a cluster of one; otherwise wait for on_seed()
  std::uint64_t seed = 1;  // of the cluster id and of back-offs
  std::vector<HostedType> hosts;
  NodeTraits traits;
  Duration digest_interval = std::chrono::milliseconds(200);
  Duration digest_gap = std::chrono::milliseconds(1);  // changes within it share one digest
  Duration lease = std::chrono::seconds(1);
  Duration join_interval = std::chrono::milliseconds(500);
  Duration pull_interval = std::chrono::milliseconds(50);
  Duration stable_after{};  // 0: by size, see downing
  downing::Rules downing;
  std::uint32_t min_members = 1;  // up, before any shard is given out for the first time
  Duration handoff_timeout = std::chrono::seconds(7);
  Duration move_cooldown = std::chrono::seconds(10);
  failure::Config failure;
  Duration failure_timeout = std::chrono::milliseconds(1500);  // as set, for others to compare
  Planner planner;                                             // empty: as the types' settings say
  bool break_repeat_lower_term = false;                        // demonstration only, see election
  bool break_answer_unchecked = false;  // demonstration only, see coordinator
};

class ControlPlane {
 public:
  ControlPlane(Time now, ControlConfig config);

  void on_digest(Time now, const Digest& digest);
  void on_delta(Time now, NodeKey from, const TableDelta& delta);
  // From peer links; `from` is this node for the answers and reports of its own region.
  void on_message(Time now, NodeKey from, const ControlMessage& message);
  void on_traffic(Time now, NodeKey from);
  void on_link_lost(Time now, NodeKey node);
  void on_proof_of_death(Time now, NodeKey node);
  void on_hosted_types(Time now, std::vector<HostedType> hosts);
  // A seed answered WHO. Repeat it while status().in_cluster is false.
  void on_seed(Time now, const NodeInfo& contact, const std::string& cluster,
               std::uint64_t cluster_id);
  void leave(Time now);
  // An operator's word that a member is dead.
  void down(Time now, const std::string& name, const std::string& actor = {});
  // An operator's order, for the coordinator alone; `not_ready` where this node does not decide.
  coordinator::Ordered order(Time now, const coordinator::Order& order);
  void on_tick(Time now);

  // Decides on everything that was heard, and hands out what follows. Call it after each batch.
  std::vector<ControlOutput> take_outputs();
  // Valid after take_outputs().
  [[nodiscard]] Time next_deadline() const;

  [[nodiscard]] ControlStatus status() const;
  [[nodiscard]] std::string state_text() const;
  [[nodiscard]] const AllocationTable& table() const { return table_; }
  [[nodiscard]] const MemberSet& members() const { return membership_.set(); }
  // What members host, by name, with the settings of the oldest that does. After take_outputs().
  [[nodiscard]] const std::vector<HostedType>& known_types() const { return known_types_; }
  // While this node leaves and others stay: the types that nobody else could take from it.
  [[nodiscard]] std::vector<std::string> only_here() const;
  [[nodiscard]] const Vote& vote() const { return election_.vote(); }
  [[nodiscard]] Authority authority() const { return election_.authority(); }
  [[nodiscard]] std::uint64_t cluster_id() const { return cluster_id_; }
  // Until when this node may start handlers of strict types; never more than a lease ahead.
  [[nodiscard]] Time strict_until() const { return stopped_ ? Time{} : lease_.until(); }
  [[nodiscard]] const IgnoredInputs& ignored() const { return ignored_; }
  [[nodiscard]] coordinator::Plan plan(Time now) const { return coordinator_.plan(now); }
  // Of this node, a member, or one that was lately; else its key.
  [[nodiscard]] std::string name_of(NodeKey node) const;
  [[nodiscard]] Duration usual_move() const { return coordinator_.usual_move(); }
  // The last changes of the table, oldest first; at most kHistoryMax.
  static constexpr std::size_t kHistoryMax = 8192;
  [[nodiscard]] const std::deque<Change>& history() const { return history_; }
  [[nodiscard]] Marks marks() const;  // of all its cores

 private:
  struct Joiner {
    JoinRequest request;
    Time asked{};
  };
  // To whom this node wants a connection, and how it last saw it in the member set.
  struct Connection {
    bool member = false;
    bool leaves = false;
  };

  struct Unheard {
    KeySet unreachable;
    // And who was never heard: who has just joined has not missed anybody yet, but nobody may rely
    // on it to reach one either.
    KeySet told;
  };

  // inputs.cpp
  bool enter(Time now);  // false: stopped
  void accept_digest(const Digest& digest);
  bool check_identity(const Digest& digest);
  bool note_incarnation(const NodeInfo& node, bool admitted);
  bool known_cluster(const Digest& digest);
  void miss_set(const Digest& digest);
  void ask_for_set(NodeKey from);
  void note_peer(const Digest& digest);
  void adopt_table(NodeKey from, const AllocationTable& table);
  coordinator::Ordered confirm(const coordinator::Order& order);
  void note_change(Change change);
  void note_delta(const TableDelta& delta);
  void note_table(const AllocationTable& table);
  void pull_table(NodeKey from, const TableVersion& have);
  void see_table_of(Term term);
  void handle(NodeKey from, const BeginHandoff& m) { command(from, m.generation.term, m); }
  void handle(NodeKey from, const PrepareHandoff& m) { command(from, m.generation.term, m); }
  void handle(NodeKey from, const RehomeShard& m) { command(from, m.generation.term, m); }
  // It names an old generation on purpose.
  void handle(NodeKey from, const FreezeShard& m) { command(from, vote().term, m); }
  void handle(NodeKey from, const ReportRequest& m) { command(from, m.term, m); }
  void handle(NodeKey from, const RegionAnswer& m);
  void handle(NodeKey from, const RegionReport& m);
  void handle(NodeKey from, const TablePull& m);
  void handle(NodeKey from, const TablePart& m) { adopt_table(from, m.table); }
  void handle(NodeKey from, const DownRequest& m);
  void handle(NodeKey from, const Digest& m);
  void handle(NodeKey from, const TableDelta& m);
  void handle(NodeKey from, const JoinRequest& m);
  void handle(NodeKey from, const JoinRefused& m);
  void command(NodeKey from, Term term, ControlMessage message);

  // joining.cpp
  void learn_contact(const Digest& digest);
  void ask_to_join();
  void refuse(const JoinRequest& request, JoinRefused refusal);
  [[nodiscard]] JoinRefused check_join(const JoinRequest& request) const;
  [[nodiscard]] JoinRefused check_types(const JoinRequest& request) const;
  [[nodiscard]] std::vector<Setting> settings() const;
  [[nodiscard]] std::string other_settings(const JoinRequest& request) const;
  void forget_joiners();
  [[nodiscard]] std::vector<NodeInfo> joiners() const;

  // decide.cpp
  void settle();
  void sync_members();
  void forget_strangers();
  void apply(const std::vector<failure::Output>& outputs);
  void apply(const std::vector<membership::Output>& outputs);
  void apply(const std::vector<election::Output>& outputs);
  void apply(std::vector<coordinator::Output> outputs);
  void apply(const std::vector<downing::Output>& outputs);
  void presume(const KeySet& gone);
  void look_again();
  void feed_election();
  bool decide_members();
  void note_removals();
  [[nodiscard]] Time strict_free_at() const;
  void decide_shards();
  void feed_downing();
  void warn_of_members();
  void note_held_back();
  void note_doubted();
  void note_strict_waits();
  [[nodiscard]] std::size_t members_up() const;
  [[nodiscard]] std::string held_back() const;
  [[nodiscard]] std::string strict_waits() const;
  void maybe_leave();
  void leave_as_last();
  void own_pause(Duration late);
  void learn_dead(NodeKey node, const std::string& why);
  void down_self(const std::string& reason);
  void report_overlap(std::uint64_t shards, const std::string& why);
  [[nodiscard]] Time majority_heard_at() const;
  [[nodiscard]] std::uint64_t own_available_shards() const;
  [[nodiscard]] membership::Wishes wishes();
  [[nodiscard]] coordinator::View coordinator_view() const;
  const Unheard& unheard();
  [[nodiscard]] KeySet leaving() const;
  [[nodiscard]] KeySet all_leaving() const;  // also those whose state in the set says so
  [[nodiscard]] KeySet staying() const;
  [[nodiscard]] bool others_stay() const;
  [[nodiscard]] bool nobody_else() const;
  [[nodiscard]] bool deciding() const { return election_.authority() != Authority::none; }
  [[nodiscard]] bool in_set() const { return membership_.in_set(); }

  // connections.cpp
  void sync_connections();
  void note_gone(NodeKey key);
  void note_standing(NodeKey key, Connection& connection);
  [[nodiscard]] Parting parting(NodeKey key, const Connection& connection) const;
  void flush();
  void publish();
  void learn_types();
  [[nodiscard]] std::vector<HostedType> agreeing(const std::vector<HostedType>& hosts) const;
  void count_loads();
  [[nodiscard]] Digest make_digest();
  [[nodiscard]] bool list_is_due() const;
  [[nodiscard]] Digest numbered_digest(bool with_list);
  [[nodiscard]] std::vector<Repeat> repeats() const;
  void send(NodeKey to, ControlMessage message);
  void event(Severity severity, const char* name, std::string text);
  void remember(const NodeInfo& node);

  ControlConfig config_;
  NodeKey self_;
  Random random_;
  Time now_;
  failure::Detector detector_;
  membership::Membership membership_;
  election::Election election_;
  lease::Lease lease_;
  downing::Downing downing_;
  coordinator::Coordinator coordinator_;

  std::uint64_t cluster_id_ = 0;
  std::map<NodeKey, Digest> peers_;    // newest digest of each node heard
  std::map<NodeKey, Time> heard_at_;   // of members, when it came
  std::map<NodeKey, NodeInfo> infos_;  // how to reach whom
  std::map<NodeKey, Connection> connected_;
  KeySet dead_;                       // proven dead, while they take part in the set
  GoneNodes gone_;                    // former members: an incarnation never comes back
  KeySet to_remove_;                  // by downing
  KeySet presumed_;                   // by downing: taken for gone
  bool warned_of_members_ = false;    // too many for static-quorum
  std::string held_back_;             // told last, by this node as coordinator
  std::string strict_waits_;          // told last
  std::vector<Member> last_counted_;  // the members that counted last
  std::set<std::string> doubted_;     // names of those removed by evidence alone
  // Of the counted set in the term that this node decides in: nobody was removed since then.
  bool confirmed_ = false;  // by an operator, of this term and these members; not in the set yet
  Term confirmed_in_;
  KeySet confirmed_members_;
  KeySet counted_members_;
  Term counted_in_;
  Time unchanged_since_ = kNever;
  std::vector<HostedType> hosts_;
  std::vector<HostedType> known_types_;
  std::vector<std::string> differences_;  // of members' types from the known ones, told last
  std::string own_differences_;           // the first of this node's
  bool types_changed_ = true;
  bool leaving_ = false;
  bool stopped_ = false;
  bool view_changed_ = true;  // what election sees
  bool downing_due_ = true;
  Unheard unheard_;
  bool unheard_stale_ = true;

  AllocationTable table_;
  std::uint64_t table_hash_ = 0;
  TableVersion table_told_;
  std::map<NodeKey, std::uint64_t> loads_;  // shards of each owner in the table told last
  std::deque<Change> history_;
  Time pull_at_{};
  Time set_pull_at_{};

  std::uint64_t join_cluster_id_ = 0;  // of the cluster that this node asks
  std::vector<NodeInfo> contacts_;
  NodeKey join_coordinator_;
  Time join_heard_{};
  Time join_at_{};
  std::map<NodeKey, Joiner> joiners_;
  std::vector<NodeKey> joiner_order_;

  std::uint64_t digest_number_ = 0;
  Digest published_;  // content of the last one, its set brief
  Time published_at_{};
  bool publish_pending_ = false;
  std::map<NodeKey, Time> answered_at_;  // last "here is mine" to a node with an older set
  std::vector<ControlOutput> outputs_;
  IgnoredInputs ignored_;
  Marks rare_;
};

}  // namespace shardbus::control
