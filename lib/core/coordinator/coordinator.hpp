// Decides which node owns which shard while it is told that it may (protocols.md section 1, rules
// 3, 13, 20 to 24; section 2, rules 8 and 10). It sends commands and publishes what regions
// confirmed; it never claims for itself the right to decide, and nothing that it wants is true
// before a region says so.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/marks.hpp"
#include "base/model/allocation.hpp"
#include "base/model/keys.hpp"
#include "base/model/placement.hpp"
#include "base/time.hpp"
#include "core/coordinator/coordinator_types.hpp"
#include "shardbus/status.hpp"

namespace shardbus::coordinator {

struct Config {
  NodeKey self;
  Duration resend = std::chrono::milliseconds(250);    // of commands and report requests
  Duration handoff_timeout = std::chrono::seconds(7);  // regions abandon entities after 5 s
  // A type without hosts keeps its owners for so long: another host may just have come, and would
  // find the entities' state. Owners that leave keep it for `handoff_timeout`: their workers have
  // to hand their entities back before they go to another node.
  Duration unhosted_patience = std::chrono::milliseconds(500);
  Duration table_patience = std::chrono::milliseconds(250);  // for a newer table, once all reported
  std::size_t moves_percent = 10;  // moves in progress: this share of all shards, ...
  std::size_t moves_min = 4;       // ... but at least so many may be,
  std::size_t moves_max = 20;      // and never more than so many
  // Moves of one node at a time, to it or from it: entities of a move wait for those beside it.
  std::size_t moves_per_node = 1;    // at least so many may be,
  std::size_t shards_per_move = 32;  // and one for so many shards that it has or gets
  Duration slow_move = std::chrono::milliseconds(200);  // then it holds up no other one any more
  Duration cooldown = std::chrono::seconds(10);  // a moved shard is not moved for balance again
  Planner planner;
  Planner fallback;  // gives homes where `planner` fails
  // Only for the demonstration that the simulator sees it: believe any `owned`.
  bool break_answer_unchecked = false;
};

// Invariants: at most one op per shard; every generation it gives is new and of its own term; an
// entry changes only on `owned` (or to unowned); a node gets a higher generation of a shard only
// when its owner confirmed, died, was removed, answered `frozen`, or reported that it let go of a
// shard that the table gave to nobody; nothing is sent before every reachable member reported.
class Coordinator {
 public:
  explicit Coordinator(Config config) : config_(std::move(config)) {}

  std::vector<Output> step(Time now, const Input& input);
  [[nodiscard]] Time next_deadline() const { return deadline_; }
  [[nodiscard]] std::string state_text() const;

  // The table it publishes; meaningful once it decided and all reports are in.
  [[nodiscard]] const AllocationTable& table() const { return table_; }
  [[nodiscard]] bool active() const { return mode_ == Mode::active; }
  // Whether a node owns nothing and no op concerns it.
  [[nodiscard]] bool drained(NodeKey node) const;
  [[nodiscard]] std::vector<Handoff> handoffs() const;
  [[nodiscard]] Plan plan(Time now) const;
  // Moves that operators wanted and that have not begun.
  [[nodiscard]] std::size_t waiting_moves() const;
  // Half of the last moves took no longer than this; zero: there was none.
  [[nodiscard]] Duration usual_move() const;
  [[nodiscard]] std::uint64_t ignored_answers() const { return ignored_answers_; }
  [[nodiscard]] std::uint64_t ignored_reports() const { return ignored_reports_; }
  [[nodiscard]] const Marks& marks() const { return rare_; }

 private:
  enum class Mode : std::uint8_t { idle, collecting, active };

  struct Claim {  // one line of a region's report
    NodeKey node;
    RegionState state = RegionState::none;
    Generation generation;
    NodeKey other;
  };
  struct Shard {
    TableEntry entry;
    Op op;
    bool held = false;  // a member that may own it can be neither asked nor written off
    NodeKey former;     // owns it until it hears, and reports, that the table gives it to nobody
    std::optional<PlannedMove> wanted;  // by an operator, once
    std::string wanted_by;
    Time rests_until{};
    bool rests_by_order = false;  // an operator put it there
    std::vector<Claim> claims;
  };
  using Loads = std::map<NodeKey, std::uint64_t>;  // shards of all types
  struct Type {
    std::vector<Shard> shards;
    Time unhosted_since = kNever;
    bool strict = false;
  };

  // coordinator.cpp
  void decide(const Decide& input);
  void set_view(const View& view);
  void end_rests();
  void note_report(const RegionReport& report);
  void note_former(const RegionReport& report);
  void note_answer(Time now, const RegionAnswer& answer);
  void tick(Time now, std::vector<Output>& out);
  void publish(std::vector<Output>& out);
  void confirm(Time now, const ShardName& name, Shard& shard, const RegionAnswer& answer);
  void set_entry(const ShardName& name, Shard& shard, const TableEntry& entry, Cause cause,
                 const std::string& actor = {});
  [[nodiscard]] const Peer* find(NodeKey key) const;
  [[nodiscard]] bool alive(NodeKey key) const;
  [[nodiscard]] bool usable(NodeKey key) const;  // alive and heard
  [[nodiscard]] Shard* find(const ShardName& name);
  Type* ensure_type(const std::string& name, std::uint32_t shard_count);

  // rebuild.cpp
  void adopt(const AllocationTable& known);
  void start_collecting(const AllocationTable& known);
  void ask_reports(Time now, std::vector<Output>& out);
  void rebuild(Time now, std::vector<Output>& out);
  void resolve_pending(Time now);
  void resolve(Time now, const ShardName& name, Shard& shard);
  void learn_owner(const ShardName& name, Shard& shard);
  bool resolve_open_claim(Time now, const ShardName& name, Shard& shard, const Claim& top,
                          NodeKey keeper);
  [[nodiscard]] bool somebody_is_missing() const;
  [[nodiscard]] bool unheard(NodeKey key) const;
  [[nodiscard]] bool waits_for_partner(const Shard& shard, const Claim& top, NodeKey keeper) const;
  [[nodiscard]] NodeKey keeper_of(const Shard& shard) const;

  // schedule.cpp
  void schedule(Time now, std::vector<Output>& out);
  void learn_types();
  void note_strict();
  void repair(Time now, const ShardName& name, Shard& shard);
  void plan_type(Time now, const std::string& name, Type& type, Loads& totals, std::size_t& budget);
  [[nodiscard]] PlacementSnapshot snapshot(Time now, const std::string& name, const Type& type,
                                           const Loads& totals, std::size_t budget) const;
  [[nodiscard]] bool may_rehome(const std::string& name) const;
  [[nodiscard]] bool somebody_stays() const;
  [[nodiscard]] Duration patience_with(NodeKey owner) const;
  void drop_unhosted(Time now, const std::string& name, Type& type,
                     const PlacementSnapshot& snapshot);
  void wait_for_former(Time now, Shard& shard, NodeKey owner);
  void ask_former(Time now, std::vector<Output>& out);
  void apply_plan(Time now, const std::string& name, Type& type, const PlacementSnapshot& view,
                  Loads& totals);
  Op& start(Time now, Shard& shard, OpKind kind, NodeKey from, NodeKey to, NodeKey prefer,
            Cause cause);
  void apply_moves(Time now, const std::string& name, Type& type, const PlacementSnapshot& view,
                   const std::vector<PlacementMove>& moves, Loads& totals);
  // Why it failed; empty: it did not.
  [[nodiscard]] std::string ask_planner(const PlacementSnapshot& view,
                                        std::vector<PlacementMove>& moves) const;
  void start_freeze(Time now, Shard& shard, NodeKey to, Generation generation, NodeKey prefer);
  void send_due(Time now, const ShardName& name, Shard& shard, std::vector<Output>& out);
  [[nodiscard]] Generation next_generation();
  [[nodiscard]] Loads loads() const;
  [[nodiscard]] bool fixed(const ShardName& name, const Shard& shard, const Peer* owner) const;
  [[nodiscard]] Loads moves_by_node(Time now) const;
  [[nodiscard]] bool takes_move(const Loads& moving, const Loads& totals, NodeKey node) const;
  [[nodiscard]] Cause cause_of(const PlacementSnapshot& view, const PlacementMove& move) const;

  // orders.cpp
  [[nodiscard]] Ordered order(Time now, const Order& order);
  [[nodiscard]] Ordered order_node(const Order& order);
  [[nodiscard]] Ordered order_shard(const Order& order);
  [[nodiscard]] Ordered order_plan(Time now, const Order& order);
  [[nodiscard]] std::string actor_of(Cause cause, const ShardName& shard,
                                     const PlacementMove& move) const;
  void end_levelling_orders();
  [[nodiscard]] std::string why_not_drain(const Peer& peer) const;
  [[nodiscard]] bool cordoned(const Peer& peer) const;
  [[nodiscard]] bool draining(const Peer& peer) const;
  [[nodiscard]] bool may_own(const Peer& peer, const std::string& type, std::size_t count) const;
  [[nodiscard]] std::vector<const Peer*> homes_for(const std::string& type,
                                                   std::size_t count) const;
  [[nodiscard]] const Peer* find_named(const std::string& name) const;
  [[nodiscard]] NodeKey pin_of(const ShardName& shard) const;
  void set_orders(Orders orders);
  std::size_t start_wanted(Time now, std::size_t budget);
  [[nodiscard]] std::string why_frozen() const;

  Config config_;
  Mode mode_ = Mode::idle;
  bool stopped_ = true;
  Term term_;
  std::uint64_t counter_ = 0;       // of generations; never reset
  std::uint64_t table_number_ = 0;  // of table versions; never reset
  std::vector<Peer> peers_;
  bool first_homes_ = true;
  bool strict_homes_ = true;
  bool newer_table_ = false;
  KeySet missing_;  // members whose report of this term has not come
  Time ask_at_{};
  Time collecting_since_ = kNever;
  KeySet former_;  // owners that have not reported yet that they let go
  Time ask_former_at_{};
  AllocationTable table_;
  std::map<std::string, Type> types_;
  // Who ordered what the planner carries out: of nodes their last order, of shards their pin. Known
  // to the coordinator that took it; a later one names nobody.
  std::map<std::string, std::string> ordered_by_;
  std::map<ShardName, std::string> pinned_by_;
  std::string resumed_by_;
  std::vector<TableChange> changes_;  // since the last publication
  bool orders_changed_ = false;       // likewise
  std::deque<Duration> move_times_;   // of the last moves
  bool new_version_ = false;          // publish even without a change
  bool dirty_ = false;                // something was heard since the last tick
  Time deadline_ = kNever;
  std::vector<Note> notes_;
  std::uint64_t ignored_answers_ = 0;
  std::uint64_t ignored_reports_ = 0;
  Marks rare_;
};

}  // namespace shardbus::coordinator
