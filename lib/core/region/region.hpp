// The owner's side of one shard: may a message be handled here, and how does the shard move away
// or arrive.
//
// Decides the states none, owner, sending, forward, incoming, frozen (PROTOCOL.md "Handoff"; the
// rules' numbers below are those of its design). Two differ from that: a FREEZE ends the transfer,
// not the sender's whole session (rule 21), and a forwarder passes a next owner that leaves
// (rule 11). Invariants:
//  - a message is handed to the entities only in state owner;
//  - a generation once frozen or passed is never owned here;
//  - what is handed on keeps the order in which it arrived.
// Commands and stream items of older generations are counted and have no effect.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/marks.hpp"
#include "core/region/region_types.hpp"
#include "core/region/sender_marks.hpp"

namespace shardbus::core {

struct RegionCounters {
  std::uint64_t stale_commands = 0;  // of a generation or term passed
  std::uint64_t stale_messages = 0;  // refused by a sender's mark (rule 12)
  std::uint64_t stream_repeats = 0;  // items seen before
  std::uint64_t stream_gaps = 0;     // items that came too early: the link lost some
  std::uint64_t fenced = 0;          // higher generation appeared without a handoff
};

class Region {
 public:
  using Outputs = std::vector<RegionOutput>;

  Region(NodeKey self, std::uint32_t parked_limit) : self_(self), parked_limit_(parked_limit) {}

  // What to do with a message that arrived for this shard.
  enum class Verdict : std::uint8_t {
    deliver,   // hand it to the entities now
    park,      // call `park` with an owned copy: it is held, or passed on in the stream
    stale,     // refuse with stale_owner: not delivered
    overflow,  // refuse with overloaded: not delivered
    not_here,  // this node knows nothing of the shard
  };
  // The hot path: state owner costs a comparison and a look at the sender's mark.
  Verdict arrive(std::uint64_t sender, Generation stamped) {
    if (state_ == RegionState::owner && !stopping_ && own_fence_ == 0) {
      return admit(sender, stamped);
    }
    return arrive_elsewhere();
  }
  void park(Parked message, Outputs& out);
  void on_fence(const PassingFence& fence, Outputs& out);

  // --- commands of a coordinator; `generation.term` must not be older than one seen (rule 2) ---
  void begin(Generation generation, NodeKey next, Outputs& out);
  void prepare(Generation generation, NodeKey from, Outputs& out);
  void freeze(Generation generation, Outputs& out);
  // `frozen`: the move of that generation was called off before it took effect.
  void rehome(Generation generation, Generation frozen, Outputs& out);

  // A newer term began, and its coordinator is told of our state: what an older one ordered and did
  // not happen yet must not happen any more (rules 2 and 24).
  void on_term(Term term);

  // All handlers of the shard are done: the states to take along, and what was never started.
  void on_stopped(std::vector<SavedEntity> states, std::vector<Parked> unstarted, Outputs& out);

  // --- the stream, from the old owner ---
  void on_item(NodeKey from, Generation generation, std::uint64_t index, StreamItem item,
               Outputs& out);
  void on_ack(NodeKey from, Generation generation);

  // The next owner leaves in good order, and `owner` has the shard now: what still comes here goes
  // there straight, once all that went through the leaver is through (rule 11).
  void go_past(NodeKey leaver, const TableEntry& owner, Outputs& out);

  // --- the world ---
  void on_own_fence(std::uint64_t id, Outputs& out);  // answered, or its path lost
  void on_table(const TableEntry& entry, Outputs& out);
  void on_dead(NodeKey node, Outputs& out);
  // The session to `node` was replaced: whatever is not acknowledged is sent again (rule 11). It
  // must leave before newer items that waited for the session: behind a gap they would be lost.
  void on_link_reset(NodeKey node, Outputs& out);
  // Sends the own fence again if it is open: its path or its answer may have been lost (rule 18).
  void resend_own_fence(Outputs& out);
  // A client or worker is gone: its mark is not needed any more.
  void forget_sender(std::uint64_t sender);
  // Drops what is held past its deadline (rule 19), and a transfer that was overtaken.
  void expire(Time now, Outputs& out);

  [[nodiscard]] RegionState state() const { return state_; }
  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] NodeKey other() const { return other_; }
  // None: the dead node that had the shard from us, under `generation()`. A coordinator has to
  // know, or it takes an older move, whose ACK was lost, for one that never ended.
  [[nodiscard]] NodeKey lost_to() const { return lost_to_; }
  [[nodiscard]] bool stopping() const { return stopping_; }
  [[nodiscard]] bool owns() const { return state_ == RegionState::owner; }
  // What others send through here goes there, now or once our fence is through.
  [[nodiscard]] bool passes_to(NodeKey node) const {
    return passes() && (other_ == node || (past_ && past_->owner == node));
  }
  // What comes here goes on to `other()`: to the next owner after our ACK, or back to the old one
  // that still has everything after our part of a move was frozen.
  [[nodiscard]] bool passes() const {
    return state_ == RegionState::forward || (state_ == RegionState::frozen && !source_dead_);
  }
  // Whether messages of this shard are for the region, and not for this node's route.
  [[nodiscard]] bool takes() const {
    return passes() || state_ == RegionState::owner || state_ == RegionState::sending ||
           state_ == RegionState::incoming;
  }
  [[nodiscard]] std::size_t parked() const {
    return held_.size() + arrived_.size() + retained_.size();
  }
  [[nodiscard]] const RegionCounters& counters() const { return counters_; }
  [[nodiscard]] const Marks& marks() const { return rare_; }
  [[nodiscard]] std::string state_text() const;

 private:
  // A stream from another node. After its tail it goes on as what that node forwards, also while
  // this node hands the shard on or takes it again from somebody else, until the head of that
  // node's next stream.
  struct Inflow {
    NodeKey from;
    Generation generation;
    std::uint64_t expected = 0;  // index of the next item
    bool complete = false;       // its tail was taken
  };

  Verdict admit(std::uint64_t sender, Generation stamped);
  Verdict arrive_elsewhere();
  void become_owner(Generation generation);
  void become_incoming(Generation generation, NodeKey from, Outputs& out);
  Inflow* inflow_of(NodeKey from, Generation generation, std::uint64_t index, Outputs& out);
  void close_inflow();  // of the transfer that is not completed
  void fill(std::uint64_t index, StreamItem item, Outputs& out);
  void take_forwarded(bool source, StreamItem item, Outputs& out);
  void apply_accepted(StreamItem item, Outputs& out);  // accepted by the former owner
  void apply_item(StreamItem item, Outputs& out);
  void end_of_stream(std::uint64_t tail, Outputs& out);
  void append(StreamItem item, Outputs& out);
  void pass_held(Outputs& out);
  bool change_next(Outputs& out);
  void give_up_transfer(Outputs& out);
  void lose_transfer(Outputs& out);
  // We forwarded before, and what went that way is not known to be through.
  [[nodiscard]] bool took_over_a_way() const {
    return own_fence_ != 0 && (state_ == RegionState::incoming || state_ == RegionState::owner);
  }
  void open_own_fence(NodeKey via);
  void pass_behind(StreamItem item, Outputs& out);
  // It went that way behind our fence, and has come back.
  template <class Item>
  [[nodiscard]] bool returned(const Item& item) const {
    return state_ == RegionState::owner && item.passed == generation_;
  }
  void release_held(Outputs& out);
  void fail_all(std::deque<Parked>& messages, Errc code, Outputs& out);
  void take_back(Generation generation, Outputs& out);
  void lose_retained(Outputs& out);
  void lose_arrived(Outputs& out);
  void abandon_transfer(Outputs& out);
  void resume(std::vector<SavedEntity> states, std::vector<Parked> unstarted, Outputs& out);
  bool passed(Generation generation);

  NodeKey self_;
  std::uint32_t parked_limit_;
  RegionState state_ = RegionState::none;
  Generation generation_;       // owner: own; sending, forward, incoming: of the move
  NodeKey other_;               // sending, forward: next; incoming: from
  NodeKey lost_to_;             // none: see lost_to()
  Term term_;                   // streams of an older one do not begin any more
  Generation frozen_;           // never own this or an older one
  bool stopping_ = false;       // owner: BEGIN taken, handlers still run
  Generation next_generation_;  // while stopping
  NodeKey next_;                // while stopping; ourselves: the move was called off
  SenderMarks marks_;
  std::deque<StreamItem> retained_;  // sending: everything since the stream's start
  // sending: the table names a newer generation than this transfer's. Its ACK may still be under
  // way; if none comes, the next owner never took it and owns by another right.
  bool overtaken_ = false;
  Time overtaken_until_{};          // set when first looked at
  std::uint64_t sent_ = 0;          // items of the stream so far
  std::optional<TableEntry> past_;  // passing, own fence open: who is the next one behind it
  bool streamless_ = false;         // passing: to a node that had no stream of ours
  bool source_dead_ = false;        // incoming, frozen: `other_` is dead
  std::vector<Inflow> inflows_;     // at most two per node
  NodeKey source_;                  // whose stream made or makes us owner
  Generation source_generation_;    // and that stream's
  std::deque<StreamItem> arrived_;  // incoming: until the tail; frozen: until we hear who owns
  std::deque<Parked> held_;         // stopping, incoming, own fence open: arrived directly
  std::uint64_t own_fence_ = 0;     // open fence of rules 7 and 11; 0: none
  std::uint64_t own_fences_ = kOwnFenceIds;
  NodeKey own_fence_via_;
  Generation passed_generation_;  // rule 7: of the stream that went that way
  bool passed_behind_ = false;    // messages of it after the fence
  std::optional<std::pair<Generation, NodeKey>> waiting_begin_;  // BEGIN during an own fence
  RegionCounters counters_;
  Marks rare_;
};

}  // namespace shardbus::core
