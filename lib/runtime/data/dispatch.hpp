// Routing of one node: entity types and their shards, where each message goes, and the asks that
// wait for an answer.
//
// For every message that enters the cluster here (from a client, a worker, a handler, the API) this
// node is the sender that the handoff rules speak of.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash.hpp"
#include "base/model/gone_nodes.hpp"
#include "core/delivery/pending_asks.hpp"
#include "core/delivery/route.hpp"
#include "core/region/region.hpp"
#include "runtime/data/context.hpp"
#include "runtime/data/early_replies.hpp"
#include "shardbus/message.hpp"
#include "wire/codec.hpp"

namespace shardbus::runtime {

// Who asked. Exactly one of: a session of the front door, a callback of this process, or another
// address (asks that a worker runs for us).
struct AskOrigin {
  ReplyCallback callback;
  std::uint64_t session = 0;  // front session number; 0: none
  std::string opaque;         // its correlation, raw; of a worker's ask: the entity's id
  NodeKey node;               // else: reply address to pass the answer on to
  std::uint64_t slot = 0;
  std::uint32_t type = 0;  // of that last kind: the shard that the worker answers for
  ShardId shard{};
  bool admin = false;  // about the node itself: no traffic of entities
};
using Asks = core::PendingAsks<AskOrigin>;

// A message that waits at its sender: for an owner, for a fence, or for the type to appear.
struct HeldMessage {
  std::string envelope;
  std::uint64_t slot = 0;  // 0: a tell
  Time deadline = kNever;  // of the message itself
  Time until = kNever;     // it waits no longer, and then ends in:
  Errc ends_in = Errc::expired;
  std::uint64_t client = 0;  // the smart client that sent it, while its type is not known
};

struct Shard {
  Shard(NodeKey self, std::uint32_t limit) : region(self, limit) {}
  core::Route route;
  core::Region region;
  std::deque<HeldMessage> held;
};

struct Type {
  std::string name;
  std::uint32_t index = 0;
  std::uint32_t shard_count = 0;
  std::vector<Shard> shards;
};

// One message for Dispatch::submit. The message's correlation is set by it.
struct Submission {
  wire::Message message;
  Time deadline = kNever;
};

class Dispatch {
 public:
  explicit Dispatch(DataContext& context);

  // --- messages that enter the cluster here ---
  // They go in this node's own name. `client`: the smart client that sends it, or 0: its next fence
  // for the shard goes the same way.
  Errc submit_tell(const wire::Message& message, std::uint64_t client = 0);
  // Always ends the ask exactly once through its origin, also when it is refused at once.
  void submit_ask(wire::Message message, Time deadline, AskOrigin origin, std::uint64_t client = 0);
  // A smart client's message: it is a sender of its own. `not_here`: nothing is known of the shard,
  // or messages of that client have gone in our own name already.
  enum class Direct : std::uint8_t { taken, not_here };
  Direct submit_direct(std::uint64_t sender, wire::Message message, Time deadline,
                       AskOrigin& origin, wire::Moved* moved);
  // An answer to an address, from a handler or a worker.
  void answer(NodeKey node, std::uint64_t slot, const ReplyView& reply);

  // --- from other nodes ---
  void on_node_message(NodeKey from, const wire::Message& message);
  void on_reply(const wire::Reply& reply);
  void on_node_envelope(NodeKey from, const wire::Envelope& envelope);
  void on_link_opened(NodeKey node);
  void on_link_broken(NodeKey node);
  // The link to a node that is no member was given up: it may come again, what it had sent is lost.
  void on_way_lost(NodeKey node, const std::vector<std::string>& unsent);
  // A new session to `node`: first the streams again, then (after what waited for the session) the
  // fences, which must not overtake what was sent along the same way.
  void resend_streams(NodeKey node);
  void on_link_ready(NodeKey node);
  void on_peer_session_replaced(NodeKey node);

  // --- from the control loop ---
  void on_table(const AllocationTable& table);
  void on_region_command(NodeKey from, const ControlMessage& command);
  // A node is gone for good (an incarnation never comes back): proven dead, removed, or left.
  void on_gone(NodeKey node, std::string_view why);
  // A member leaves in good order: nothing new goes there. Once all of ours that is under way
  // through it has come to its end we say goodbye; once it has said so too, it is let go
  // (PROTOCOL.md "Leaving").
  void on_departing(NodeKey node);
  void on_goodbye(NodeKey node);
  [[nodiscard]] bool is_gone(NodeKey node) const { return gone_.contains(node); }

  // --- from hosts ---
  // Null: a new one would be more than the protocol's limit of types, or of shards in all.
  Type* add_type(std::string_view name, std::uint32_t shard_count);
  void on_stopped(Type& type, ShardId shard, std::vector<core::SavedEntity> states,
                  std::vector<core::Parked> unstarted);
  // Answers a message's asker with an error, or counts the tell.
  void refuse(NodeKey asker, std::uint64_t slot, Errc code, std::string_view text);
  // Counts the tells of a frame that a connection takes along: nobody else hears of them.
  void note_lost_tells(std::string_view frame);
  // Opens a slot whose answer is passed on; 0 if the limit is reached.
  std::uint64_t open_relay(AskOrigin origin, NodeKey target, Time deadline);
  void close_relay(std::uint64_t slot) { (void)asks_.close(slot); }
  // Takes an ask back from whom it was given to; nothing if it has ended.
  std::optional<Asks::Ask> take_relay(std::uint64_t slot, NodeKey target) {
    const Asks::Ask* ask = asks_.find(slot);
    return ask == nullptr || ask->target != target ? std::nullopt : asks_.close(slot);
  }
  void fail_target(NodeKey target, Errc code, std::string_view text);
  // What a worker has of one shard: whatever it still says does not count. Gives the ids of the
  // entities that owed an answer.
  std::set<std::string> fail_relays(NodeKey worker, std::uint32_t type, ShardId shard,
                                    std::string_view text);
  void forget_sender(std::uint64_t sender);
  // A client's fence (PROTOCOL.md "Smart clients").
  void on_client_fence(const wire::Fence& fence);

  // Answers that came deep inside user code and were put off to keep the stack flat.
  // At most `budget` of them, and counts down.
  void run_deferred(std::size_t& budget);
  [[nodiscard]] bool has_deferred() const { return !deferred_.empty(); }
  // Ends every pending ask: in `code` what was not sent, all else in unknown_outcome.
  void abandon(Errc code, std::string_view text);

  void tick();
  [[nodiscard]] Time next_deadline();

  Type* find_type(std::string_view name);
  [[nodiscard]] bool has_room(std::uint32_t shard_count) const {
    return types_.size() < wire::kTypesMax && shard_count <= wire::kShardsMax - shards_;
  }
  [[nodiscard]] const std::deque<Type>& types() const { return types_; }
  [[nodiscard]] const AllocationTable& table() const { return table_; }
  [[nodiscard]] std::size_t pending() const { return asks_.size(); }
  [[nodiscard]] std::size_t held() const { return held_total_; }
  [[nodiscard]] std::size_t held_bytes() const { return held_bytes_; }
  [[nodiscard]] std::size_t parked_bytes() const { return parked_bytes_; }
  [[nodiscard]] std::size_t early_replies() const { return early_replies_.size(); }
  [[nodiscard]] std::size_t owned() const;
  // Takes over what the shards of a former plane counted.
  void count_on(const Dispatch& former);
  // Sums over all shards of what had no effect.
  void add_counters(std::map<std::string, std::uint64_t>& counters) const;
  // Why some shard cannot be reached from here at once: it moves, or has no route. Empty: none.
  // In words for a person; with `internals` the simulator shows what it stands on, too.
  [[nodiscard]] std::string unsettled(bool internals = false) const;
  [[nodiscard]] RegionReport report(Term term, NodeKey claimant) const;

 private:
  [[nodiscard]] core::RegionCounters region_counters() const;
  Errc route(Type& type, Shard& shard, wire::Message& message, std::uint64_t slot, Time deadline);
  Errc wait_for_type(const wire::Message& message, std::uint64_t slot, Time deadline,
                     std::uint64_t client);
  void note_client(const Shard& shard, std::uint64_t client) {
    if (client != 0) in_our_name_[{&shard, client}] = 0;
  }
  Errc pass_on(Type& type, Shard& shard, wire::Message& message, std::uint64_t slot, Time deadline);
  void adopt(Type& type, std::deque<HeldMessage> queue);
  void fill(Type& type, std::uint32_t shard_count);
  void take_count(Type& type, std::uint32_t shard_count);
  [[nodiscard]] bool open(const Shard& shard) const;
  Errc hold(std::deque<HeldMessage>& queue, const wire::Message& message, std::uint64_t slot,
            Time deadline, Errc ends_in);
  [[nodiscard]] std::string why_unsent(std::string_view type) const;
  [[nodiscard]] std::string why_closed(const Type& type, ShardId id) const;
  [[nodiscard]] Errc ends_in(const Type& type, const Shard& shard) const;
  void arrive(Type& type, ShardId id, std::uint64_t sender, const wire::Message& message,
              Time deadline);
  void aim(const std::vector<std::uint64_t>& slots, NodeKey target);
  void fail_sent(NodeKey node, std::string_view why);
  void put_back(const std::vector<std::string>& unsent);
  void note_term(Term term);
  void act(Type& type, ShardId id, core::Route::Step step);
  void check_fence_later(const Type& type, ShardId id);
  void check_fences();
  void release(Type& type, ShardId id);
  void send_held(Type& type, Shard& shard, const HeldMessage& held);
  void pass_client_fence(Shard& shard, const wire::Fence& fence);
  void on_client_fence_ok(const Shard& shard, const wire::FenceOk& answer);
  void send_fence(Type& type, ShardId id);
  void on_fence(NodeKey from, const wire::Fence& fence);
  void on_fence_ok(const wire::FenceOk& answer);
  void on_moved(const wire::Moved& moved);
  void tell_moved(NodeKey asker, std::uint64_t slot, Type& type, ShardId id,
                  const TableEntry& entry);
  void on_stream_envelope(NodeKey from, const wire::Envelope& envelope);
  void carry_out(Type& type, ShardId id, core::Region::Outputs& outputs);
  void carry_out_one(Type& type, ShardId id, core::RegionOutput& output);
  void send_item(Type& type, ShardId id, core::SendItem& send);
  void answer_coordinator(Type& type, ShardId id, const core::AnswerCoordinator& answer);
  void deliver_parked(Type& type, ShardId id, const core::Parked& parked);
  void pass_fence(Type& type, ShardId id, NodeKey to, const core::PassingFence& fence);
  void complete(Asks::Ask&& ask, const ReplyView& reply);
  void call_back(ReplyCallback& callback, const ReplyView& reply);
  void fail(Asks::Ask&& ask, Errc code, std::string_view text);
  void on_admin(const wire::Message& message, NodeKey asker, std::uint64_t slot);
  Errc route_admin(const wire::Message& message, std::uint64_t slot);
  [[nodiscard]] bool quiet(NodeKey node);
  void go_past(NodeKey leaver);
  void part_from_departed();
  Errc hold_bytes(std::deque<HeldMessage>& queue, HeldMessage held);
  bool take_room(const HeldMessage& held);
  void took_out(const HeldMessage& held);
  void end(const std::vector<HeldMessage>& over);  // each in its `ends_in`
  void expire_held();
  void drop_held_tells(Errc code);
  void sweep_regions();
  [[nodiscard]] Time deadline_of(const wire::Message& message) const {
    return message.time_left_ms == 0 ? kNever : context_.now + milliseconds(message.time_left_ms);
  }

  DataContext& context_;
  std::size_t parked_bytes_ = 0;  // of messages at shards that move; before what leases of it
  std::deque<Type> types_;        // stable addresses
  std::uint32_t shards_ = 0;
  Type* last_type_ = nullptr;
  struct Decision {
    Type* type = nullptr;
    ShardId shard;
    core::RegionOutput output;
  };
  std::deque<Decision> outbox_;
  bool carrying_ = false;
  struct Deferred {
    ReplyCallback callback;
    Errc error = Errc::ok;
    std::string text;
    std::string payload;
  };

  Asks asks_;
  std::deque<Deferred> deferred_;
  std::uint32_t callback_depth_ = 0;
  std::map<std::string, std::deque<HeldMessage>, std::less<>> unknown_;  // no such type yet
  // Smart clients whose messages to a shard went in our own name, until the answer to the fence
  // behind these (0: none yet). All others' went to the region.
  std::map<std::pair<const Shard*, std::uint64_t>, std::uint64_t> in_our_name_;
  std::size_t held_total_ = 0;
  std::size_t held_bytes_ = 0;
  AllocationTable table_;
  struct Departure {
    Time deadline{};
    bool said = false;  // our goodbye
  };
  std::map<NodeKey, Departure> departing_;
  GoneNodes gone_;
  EarlyReplies early_replies_;
  Term highest_term_;
  NodeKey coordinator_;  // whoever commanded last
  Time next_fence_check_ = kNever;
  Time next_sweep_{};
  core::RegionCounters former_;                            // of the planes before this one
  std::vector<std::pair<std::uint32_t, ShardId>> fenced_;  // shards with an open fence
};

}  // namespace shardbus::runtime
