// What one sender knows of one shard, and whether its next message may go now.
//
// Decides: send to the owner, or hold. Invariant: messages of this sender reach the shard in the
// order sent, across every change of owner. The means is a fence: on a change of route the sender
// holds what is new, sends a fence along the way its last message took, and goes on straight to the
// new owner when the fence has come out there (PROTOCOL.md "Handoff", rules 14 to 19).
//
// The held messages themselves are kept by the caller; this class says when to release them.
#pragma once

#include <cstdint>

#include "base/ids.hpp"
#include "base/marks.hpp"
#include "base/model/allocation.hpp"
#include "base/time.hpp"

namespace shardbus::core {

class Route {
 public:
  // Messages go to `via`, which passes them on by its own route: nothing is known of the shard, or
  // its owner cannot be reached from here. They carry no generation, so that all of them take that
  // one route, one behind the other. Only where nothing is under way.
  void start_via(NodeKey via) {
    via_ = via;
    used_ = true;
    direct_ = false;
  }
  // What the caller has to do after an input.
  struct Step {
    bool release = false;     // send what is held: `may_send()` holds now
    bool send_fence = false;  // send fence `fence_id()` to `via()`
  };

  // True: the next message goes to `via()`, stamped with `stamp()`; call `sent()` then.
  [[nodiscard]] bool may_send() const {
    return fence_id_ == 0 && via_ != kNoNode && !(direct_ && ownerless());
  }
  [[nodiscard]] NodeKey via() const { return via_; }
  [[nodiscard]] NodeKey owner() const { return entry_.owner; }
  [[nodiscard]] Generation generation() const { return entry_.generation; }
  [[nodiscard]] Generation stamp() const { return direct_ ? entry_.generation : Generation{}; }
  [[nodiscard]] std::uint64_t fence_id() const { return fence_id_; }
  void sent() { used_ = true; }
  // Something was sent along `via()` and may still be on its way.
  [[nodiscard]] bool used() const { return used_; }

  // The table, a "moved" notice, or a fence's answer told of an entry. Older ones are ignored.
  // `rebuilt`: the term of the coordinator whose table it is.
  Step on_entry(const TableEntry& entry, Term rebuilt = {});
  // The answer to a fence. Answers to other fences are ignored (rule 16). `there`: the answerer can
  // be reached from here; only then may it be what the next fence goes through.
  Step on_fence_ok(std::uint64_t id, NodeKey node, Generation generation, bool there = true);
  // The way of the fence is gone: what was sent along it ended in unknown_outcome (rule 18).
  Step on_path_lost(std::uint64_t id);
  // A node is dead; nothing is sent there any more.
  Step on_dead(NodeKey node);
  // What was sent to `node` is lost, but the node may come back: the way is open again from there.
  Step on_way_lost(NodeKey node);
  // The session to a node was replaced, or the fence is overdue: the same fence again (rule 18).
  [[nodiscard]] Step on_link_reset(NodeKey node);
  // `node` can be reached now: an owner that was served through another node is served directly.
  Step on_way_open(NodeKey node);
  [[nodiscard]] const Marks& marks() const { return rare_; }

 private:
  // Whoever had the shard gave it up, and nobody has it yet.
  [[nodiscard]] bool ownerless() const {
    return entry_.owner == kNoNode && entry_.generation.known();
  }
  // A next owner answers fences before the shard is its own. If it dies, and with it the only
  // coordinator that knew of the move, the old owner goes on under its older generation.
  [[nodiscard]] bool outlived(const TableEntry& entry, Term rebuilt) const {
    return entry_.owner == kNoNode && entry.owner != kNoNode && rebuilt > entry_.generation.term;
  }
  Step open_fence();
  Step go_direct();

  TableEntry entry_;
  NodeKey via_;
  std::uint64_t fence_id_ = 0;  // 0: none open
  std::uint64_t fences_ = 0;
  bool used_ = false;   // something was sent along `via_`
  bool direct_ = true;  // `via_` was chosen as the owner
  Marks rare_;
};

}  // namespace shardbus::core
