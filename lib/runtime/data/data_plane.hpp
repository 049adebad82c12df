// The data plane of one node: sessions, links, routing, shards and entities as one object.
//
// Pure of threads, clocks and sockets: frames come in with the time of the pass, frames go out
// through WirePort. The real node calls it under the link's lock, the simulator from its event
// queue. A pass is `begin(now)`, any number of events, `end()`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/context.hpp"
#include "runtime/data/dispatch.hpp"
#include "runtime/data/front_door.hpp"
#include "runtime/data/hosts.hpp"
#include "runtime/data/links.hpp"
#include "runtime/data/peer_door.hpp"

namespace shardbus::runtime {

// Figures for operators, taken at one instant.
struct DataStatus {
  std::uint64_t shards_owned = 0;
  std::uint64_t entities = 0;
  std::uint64_t sessions = 0;
  std::uint64_t pending_asks = 0;
  std::string unsettled;                          // why some shard cannot be reached at once
  std::map<std::string, std::uint64_t> counters;  // totals, then gauges with their limits
};

class DataPlane {
 public:
  DataPlane(DataConfig config, WirePort& wire, DataListener& listener,
            std::weak_ptr<NodeMessenger> messenger, Executor* executor);

  void begin(Time now) {
    context_.now = now;
    context_.held = !context_.listener->awake(now);
    if (born_ == Time{}) born_ = now;
  }
  // Before each frame of a pass, and before what has waited is run: the process may have stood
  // still since the pass began.
  void look(Time now) { context_.held = context_.held || !context_.listener->awake(now); }
  // Nothing may be handled in this pass, and so nothing should be read; what the process itself
  // sends, and what the control loop says, is noted down.
  [[nodiscard]] bool held() const { return context_.held; }
  // Runs what became ready, sees to deadlines, and flushes every batch.
  void end();
  // Call `begin`/`end` again by then even if nothing comes in.
  [[nodiscard]] Time next_deadline();

  // --- calls of this process; a pass must be open ---
  Errc tell(const Outgoing& message);
  void ask(const Outgoing& message, milliseconds timeout, ReplyCallback done);
  void answer(const ReplyAddress& to, const ReplyView& reply);
  // Of an entity of a strict type: see NodeMessenger.
  void answer_by_right(const ReplyAddress& to, const ReplyView& reply);
  Errc host(EntityType type) { return hosts_.host(std::move(type)); }
  // Why `host` says config_mismatch.
  [[nodiscard]] std::string differs(const HostedType& type, const std::string& who) const {
    return hosts_.differs(type, who);
  }
  // Ends every pending ask, in `code` what was not sent, all else in unknown_outcome; refuses all
  // later calls with `stopped`.
  void abandon(Errc code, std::string_view text);
  // Another plane takes over: no further message of this one is handled. Handlers that run in the
  // executor finish in it. Asks that were not sent end in not_ready: asked again, the next one
  // takes them.
  void retire(std::string_view why);
  // This plane counts on from a former one of the same process, after that one's retirement.
  void count_on(const DataPlane& former);
  // Whether nobody relies on this node as a way any more, and what was sent from here is on its
  // own.
  [[nodiscard]] bool parted() const {
    return peers_.parted() && front_.parted() && dispatch_.held() == 0;
  }
  // Destroys the entities; the last thing before the plane itself goes.
  void end_entities() { hosts_.end_entities(); }
  // Not const: it asks entities for their state.
  [[nodiscard]] std::vector<ShardLoad> loads(const std::string& type) { return hosts_.loads(type); }

  // --- the control loop ---
  void set_cluster_id(std::uint64_t id) { context_.cluster_id = id; }
  // Until when handlers of strict types may start.
  void set_strict_until(Time until);
  void set_known_types(std::vector<HostedType> types) { hosts_.set_known_types(std::move(types)); }
  // This node leaves the cluster: workers that are not here yet go elsewhere.
  void begin_leave() {
    front_.refuse_workers();
    hosts_.begin_leave();
  }
  // No other node hosts these types: their workers go elsewhere too, and the states stay here until
  // the shards follow them.
  void send_workers_away(const std::vector<std::string>& types) { hosts_.send_workers_away(types); }
  // The last words of a node that has left, or could not in time.
  void give_up_states() { hosts_.give_up_states(); }
  void connect(const NodeInfo& node) { links_.open(node, kNever); }
  // For a few envelopes only: the link goes again by itself, unless `connect` claims it.
  void reach(const NodeInfo& node) { links_.reach(node); }
  // Ends a `connect`: of a node that may come again; of one that left in good order; of a dead one.
  void let_go(NodeKey node) { links_.let_go(node); }
  void part_from(NodeKey node) { dispatch_.on_departing(node); }
  void bury(NodeKey node) { dispatch_.on_gone(node, "the owner's node died"); }
  // Counts and logs a tell that was refused after its caller had gone on.
  void report_tell(Errc outcome, const Outgoing& message);

  [[nodiscard]] const DataConfig& config() const { return context_.config; }
  [[nodiscard]] milliseconds uptime() const {
    return std::chrono::duration_cast<milliseconds>(context_.now - born_);
  }
  [[nodiscard]] FrontDoor& front() { return front_; }
  [[nodiscard]] PeerDoor& peers() { return peers_; }
  [[nodiscard]] Links& links() { return links_; }
  [[nodiscard]] Dispatch& dispatch() { return dispatch_; }
  [[nodiscard]] const Dispatch& dispatch() const { return dispatch_; }
  [[nodiscard]] DataStatus status();
  [[nodiscard]] Marks marks() const;  // of all its regions and routes, too

 private:
  struct Answer {
    ReplyAddress to;
    Errc error = Errc::ok;
    std::string text;
    std::string payload;
  };
  void run(std::size_t& budget);
  bool release_answers();
  void refuse_late(ReplyCallback& done);

  DataContext context_;
  Links links_;
  FrontDoor front_;
  PeerDoor peers_;
  Dispatch dispatch_;
  Hosts hosts_;
  Time next_tick_{};
  bool more_ = false;  // the budget of the pass ended before the work
  Time born_{};
  bool abandoned_ = false;
  std::vector<Answer> by_right_;  // of this pass
  std::size_t by_right_bytes_ = 0;
};

}  // namespace shardbus::runtime
