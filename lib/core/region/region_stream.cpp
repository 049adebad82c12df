// The handoff stream, both ends.
#include <algorithm>
#include <utility>

#include "base/overloaded.hpp"
#include "core/region/region.hpp"

namespace shardbus::core {

// --- old owner ---

void Region::on_stopped(std::vector<SavedEntity> states, std::vector<Parked> unstarted,
                        Outputs& out) {
  if (state_ != RegionState::owner || !stopping_) {  // fenced meanwhile: nobody waits for these
    rare_.hit(Mark::fenced_while_stopping);
    for (Parked& message : unstarted) {
      out.emplace_back(FailParked{std::move(message), Errc::stale_owner});
    }
    return;
  }
  stopping_ = false;
  if (next_ == self_) return resume(std::move(states), std::move(unstarted), out);
  state_ = RegionState::sending;
  generation_ = next_generation_;
  other_ = next_;
  past_.reset();
  streamless_ = false;
  overtaken_ = false;
  sent_ = 0;
  // Whatever goes before the tail was accepted here and is not judged again: the marks may be newer
  // than the stamps of what still waits in the queue.
  for (Parked& message : std::exchange(held_, {})) {
    if (admit(message.sender, message.generation) == Verdict::deliver) {
      unstarted.push_back(std::move(message));
    } else {
      out.emplace_back(FailParked{std::move(message), Errc::stale_owner});
    }
  }
  append(StreamHead{marks_.take()}, out);
  for (SavedEntity& entity : states) append(std::move(entity), out);
  for (Parked& message : unstarted) append(std::move(message), out);
  append(StreamTail{}, out);
}

// The move was called off before anything left: go on as the owner.
void Region::resume(std::vector<SavedEntity> states, std::vector<Parked> unstarted, Outputs& out) {
  rare_.hit(Mark::stop_called_off);
  for (SavedEntity& entity : states) out.emplace_back(RestoreEntity{std::move(entity)});
  for (Parked& message : unstarted) out.emplace_back(DeliverParked{std::move(message)});
  release_held(out);
}

void Region::append(StreamItem item, Outputs& out) {
  if (state_ == RegionState::sending) retained_.push_back(item);
  // Without a generation it belongs to no stream.
  const Generation stream = streamless_ ? Generation{} : generation_;
  out.emplace_back(SendItem{other_, stream, sent_++, std::move(item)});
}

void Region::go_past(NodeKey leaver, const TableEntry& owner, Outputs& out) {
  if (!passes() || other_ != leaver) return;
  const bool elsewhere = owner.owner != kNoNode && owner.owner != leaver && owner.owner != self_;
  if (!elsewhere || owner.generation <= generation_) return;
  past_ = owner;
  if (own_fence_ != 0) return;
  open_own_fence(leaver);
  resend_own_fence(out);
}

// The own fence is through, past a leaver or back from where we passed things on before.
void Region::pass_held(Outputs& out) {
  if (past_.has_value() && !change_next(out)) return;
  for (Parked& message : std::exchange(held_, {})) append(std::move(message), out);
}

// If the one behind the leaver died meanwhile, nobody is left to pass things on to, as after the
// death of any next owner.
bool Region::change_next(Outputs& out) {
  const TableEntry next = *std::exchange(past_, std::nullopt);
  other_ = next.owner;
  state_ = other_ == kNoNode ? RegionState::none : RegionState::forward;
  rare_.hit(other_ == kNoNode ? Mark::behind_leaver_dead : Mark::leaver_passed);
  if (other_ == kNoNode) {
    fail_all(held_, Errc::stale_owner, out);
    return false;
  }
  generation_ = next.generation;
  streamless_ = true;
  return true;
}

void Region::on_ack(NodeKey from, Generation generation) {
  if (state_ != RegionState::sending || from != other_ || generation != generation_) return;
  retained_.clear();
  state_ = RegionState::forward;
}

void Region::on_link_reset(NodeKey node, Outputs& out) {
  for (const Inflow& inflow : inflows_) {  // the ACK may have been lost
    if (inflow.from == node && inflow.complete) {
      rare_.hit(Mark::ack_on_new_session);
      out.emplace_back(AckStream{node, inflow.generation, inflow.expected - 1});
    }
  }
  if (state_ != RegionState::sending || other_ != node) return;
  rare_.hit(Mark::stream_resent);
  std::uint64_t index = 0;
  for (const StreamItem& item : retained_) {
    out.emplace_back(SendItem{other_, generation_, index++, item});
  }
}

void Region::resend_own_fence(Outputs& out) {
  if (own_fence_ == 0) return;
  const TableEntry goal = past_.value_or(TableEntry{self_, generation_});
  out.emplace_back(
      SendOwnFence{own_fence_via_, {own_fence_, self_.value, goal.generation, goal.owner, self_}});
}

// Rule 20: the next owner died with the transfer under way; what it did with it is not known.
void Region::lose_retained(Outputs& out) {
  for (StreamItem& item : std::exchange(retained_, {})) {
    if (auto* message = std::get_if<Parked>(&item)) {
      out.emplace_back(FailParked{std::move(*message), Errc::unknown_outcome});
    } else if (const auto* fence = std::get_if<PassingFence>(&item)) {
      out.emplace_back(AnswerFence{*fence, self_, {}, true});
    }
  }
  state_ = RegionState::none;
  other_ = kNoNode;
}

// What came of a transfer that will not be completed.
void Region::lose_arrived(Outputs& out) {
  for (StreamItem& item : std::exchange(arrived_, {})) {
    if (auto* message = std::get_if<Parked>(&item)) {
      out.emplace_back(FailParked{std::move(*message), Errc::unknown_outcome});
    }
  }
}

// The coordinator gives the shard back under a new generation after the next owner was frozen, so
// nothing of the stream was handled there and all of it is still good.
void Region::take_back(Generation generation, Outputs& out) {
  rare_.hit(Mark::transfer_taken_back);
  std::deque<StreamItem> items = std::exchange(retained_, {});
  become_owner(generation);
  bool accepted = true;  // until the tail
  for (StreamItem& item : items) {
    if (std::holds_alternative<StreamTail>(item)) accepted = false;
    accepted ? apply_accepted(std::move(item), out) : apply_item(std::move(item), out);
  }
  out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
}

// --- next owner ---

// Along the way that what we forwarded has taken, of the stream that it belongs to.
void Region::open_own_fence(NodeKey via) {
  own_fence_ = ++own_fences_;
  own_fence_via_ = via;
  passed_generation_ = streamless_ ? Generation{} : generation_;
  passed_behind_ = false;
}

void Region::become_incoming(Generation generation, NodeKey from, Outputs& out) {
  if (state_ == RegionState::sending) {
    rare_.hit(Mark::move_back_is_ack);
    on_ack(other_, generation_);
  }
  if (passes()) {
    rare_.hit(Mark::forwarder_fences);
    // What we passed on earlier must be through before we take anything ourselves (rule 7).
    open_own_fence(other_);
    out.emplace_back(SendOwnFence{other_, {own_fence_, self_.value, generation, self_, self_}});
  }
  if (state_ == RegionState::frozen) arrived_.clear();  // whoever had that has it still
  if (state_ == RegionState::incoming) {                // an older transfer will not be completed
    rare_.hit(Mark::transfer_replaced);
    close_inflow();
    lose_arrived(out);
  }
  state_ = RegionState::incoming;
  generation_ = generation;
  other_ = from;
  lost_to_ = kNoNode;
  source_ = from;
  source_generation_ = generation;
  source_dead_ = false;
  past_.reset();
  inflows_.push_back({from, generation});
}

void Region::close_inflow() {
  std::erase_if(inflows_, [this](const Inflow& inflow) {
    return inflow.from == other_ && inflow.generation == generation_;
  });
}

// The stream that an item belongs to; opens a new one with its head. Null: it is not taken.
Region::Inflow* Region::inflow_of(NodeKey from, Generation generation, std::uint64_t index,
                                  Outputs& out) {
  const auto find = [&]() -> Inflow* {
    const auto found = std::find_if(inflows_.begin(), inflows_.end(), [&](const Inflow& inflow) {
      return inflow.from == from && inflow.generation == generation;
    });
    return found == inflows_.end() ? nullptr : &*found;
  };
  if (find() == nullptr) {
    if (generation <= generation_ || generation <= frozen_ || generation.term < term_) {
      ++counters_.stale_commands;
      rare_.hit(Mark::stream_too_old);
      return nullptr;
    }
    // The head implies PREPARE; anything else without it is a leftover of a broken link.
    if (index != 0 || state_ == RegionState::owner) {
      ++counters_.stream_gaps;
      rare_.hit(Mark::stream_gap);
      return nullptr;
    }
    rare_.hit(Mark::head_is_prepare);
    become_incoming(generation, from, out);
  }
  if (index == 0) {  // whatever belongs to an older stream of that node came before this
    std::erase_if(inflows_, [&](const Inflow& inflow) {
      return inflow.from == from && inflow.generation < generation;
    });
  }
  return find();
}

void Region::on_item(NodeKey from, Generation generation, std::uint64_t index, StreamItem item,
                     Outputs& out) {
  if (!generation.known()) return take_forwarded(false, std::move(item), out);
  Inflow* const inflow = inflow_of(from, generation, index, out);
  if (inflow == nullptr) return;
  const bool filling =
      state_ == RegionState::incoming && generation_ == generation && other_ == from;
  if (index > inflow->expected) {
    ++counters_.stream_gaps;
    rare_.hit(Mark::stream_gap);
    if (filling) return;  // sent again after the link's reset
  }
  if (index < inflow->expected) {
    ++counters_.stream_repeats;
    if (!inflow->complete || !std::holds_alternative<StreamTail>(item)) return;
    out.emplace_back(AckStream{from, generation, index});  // rule 10
    rare_.hit(Mark::ack_repeated);
    if (state_ == RegionState::owner && generation_ == generation) {
      out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
    }
    return;
  }
  inflow->expected = index + 1;
  if (!filling) {
    const bool source = from == source_ && generation == source_generation_;
    return take_forwarded(source, std::move(item), out);
  }
  if (std::holds_alternative<StreamTail>(item)) inflow->complete = true;
  fill(index, std::move(item), out);
}

// An item of the transfer that makes us owner.
void Region::fill(std::uint64_t index, StreamItem item, Outputs& out) {
  if (std::holds_alternative<StreamTail>(item)) return end_of_stream(index, out);
  if (std::holds_alternative<PassingFence>(item)) return apply_item(std::move(item), out);
  arrived_.push_back(std::move(item));
}

// What a former owner passes on after its transfer (rules 6 and 11), to us or to a node that left.
// Nodes that went through us twice, or that have not heard of our own move yet, come in here in
// every state.
void Region::take_forwarded(bool source, StreamItem item, Outputs& out) {
  auto* fence = std::get_if<PassingFence>(&item);
  if (fence != nullptr && fence->sender == self_.value && fence->id >= kOwnFenceIds) {
    return on_own_fence(fence->id, out);
  }
  auto* message = std::get_if<Parked>(&item);
  if (message == nullptr && fence == nullptr) return;
  const bool back = fence != nullptr ? returned(*fence) : returned(*message);
  if (took_over_a_way() && !source && !back) return pass_behind(std::move(item), out);
  if (fence != nullptr) return on_fence(*fence, out);
  switch (state_) {
    case RegionState::owner:
      // Ahead of what is held behind our own fence, which is behind it or comes along with it.
      return apply_item(std::move(item), out);
    case RegionState::incoming:
    case RegionState::sending:
    case RegionState::forward:
    case RegionState::frozen:
      if (takes()) {
        rare_.hit_if(passes(), Mark::forwarded_again);
        return park(std::move(*message), out);
      }
      [[fallthrough]];
    case RegionState::none:
      rare_.hit(Mark::forwarded_to_nobody);
      out.emplace_back(FailParked{std::move(*message), Errc::stale_owner});
      return;
  }
}

// While our own fence is on its way, what an older owner still forwards takes that way too: the
// node that it came from may have taken the shard again before us, and waits for it behind a fence
// of its own. Then that way is fenced once more. Once round is enough: whatever was ahead of it has
// come back too by then.
void Region::pass_behind(StreamItem item, Outputs& out) {
  rare_.hit(Mark::passed_behind_fence);
  if (auto* message = std::get_if<Parked>(&item)) message->passed = generation_;
  if (auto* fence = std::get_if<PassingFence>(&item)) fence->passed = generation_;
  passed_behind_ = passed_behind_ || std::holds_alternative<Parked>(item);
  out.emplace_back(SendItem{own_fence_via_, passed_generation_, sent_++, std::move(item)});
}

// Rule 9: the instant at which the shard is ours.
void Region::end_of_stream(std::uint64_t tail, Outputs& out) {
  const NodeKey from = other_;
  const Generation generation = generation_;
  become_owner(generation);
  for (StreamItem& item : std::exchange(arrived_, {})) apply_accepted(std::move(item), out);
  if (own_fence_ == 0) release_held(out);
  out.emplace_back(AckStream{from, generation, tail});
  out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
}

void Region::apply_accepted(StreamItem item, Outputs& out) {
  if (auto* message = std::get_if<Parked>(&item)) {
    out.emplace_back(DeliverParked{std::move(*message)});
  } else {
    apply_item(std::move(item), out);
  }
}

void Region::apply_item(StreamItem item, Outputs& out) {
  std::visit(
      Overloaded{[&](StreamHead& head) { marks_.put(head.marks); },
                 [&](SavedEntity& entity) { out.emplace_back(RestoreEntity{std::move(entity)}); },
                 [&](Parked& message) {
                   if (stopping_) {
                     held_.push_back(std::move(message));
                   } else if (admit(message.sender, message.generation) == Verdict::deliver) {
                     out.emplace_back(DeliverParked{std::move(message)});
                   } else {
                     out.emplace_back(FailParked{std::move(message), Errc::stale_owner});
                   }
                 },
                 [&](PassingFence& fence) {
                   if (fence.sender == self_.value && fence.id >= kOwnFenceIds) {
                     on_own_fence(fence.id, out);
                   } else {
                     out.emplace_back(AnswerFence{fence, self_, generation_, false});
                   }
                 },
                 [](StreamTail&) {}},
      item);
}

}  // namespace shardbus::core
