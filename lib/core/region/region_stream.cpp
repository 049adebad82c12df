// The handoff stream, both ends.
#include <utility>

#include "core/region/region.hpp"

namespace shardbus::core {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

// --- old owner ---

void Region::on_stopped(std::vector<SavedEntity> states, std::vector<Parked> unstarted,
                        Outputs& out) {
  if (state_ != RegionState::owner || !stopping_) return;
  stopping_ = false;
  if (next_ == self_) return resume(std::move(states), std::move(unstarted), out);
  state_ = RegionState::sending;
  generation_ = next_generation_;
  other_ = next_;
  sent_ = 0;
  append(StreamHead{std::exchange(marks_, {})}, out);
  for (SavedEntity& entity : states) append(std::move(entity), out);
  for (Parked& message : unstarted) append(std::move(message), out);
  for (Parked& message : std::exchange(held_, {})) append(std::move(message), out);
  append(StreamTail{}, out);
}

// The move was called off before anything left: go on as the owner.
void Region::resume(std::vector<SavedEntity> states, std::vector<Parked> unstarted, Outputs& out) {
  for (SavedEntity& entity : states) out.emplace_back(RestoreEntity{std::move(entity)});
  for (Parked& message : unstarted) out.emplace_back(DeliverParked{std::move(message)});
  release_held(out);
}

void Region::append(StreamItem item, Outputs& out) {
  if (state_ == RegionState::sending) retained_.push_back(item);
  out.emplace_back(SendItem{other_, generation_, sent_++, std::move(item)});
}

void Region::on_ack(NodeKey from, Generation generation, Outputs& out) {
  (void)out;
  if (state_ != RegionState::sending || from != other_ || generation != generation_) return;
  retained_.clear();
  state_ = RegionState::forward;
}

void Region::on_link_reset(NodeKey node, Outputs& out) {
  if (own_fence_ != 0 && own_fence_via_ == node) {
    out.emplace_back(SendOwnFence{node, {own_fence_, self_.value, generation_, self_, self_}});
  }
  if (state_ != RegionState::sending || other_ != node) return;
  std::uint64_t index = 0;
  for (const StreamItem& item : retained_) {
    out.emplace_back(SendItem{other_, generation_, index++, item});
  }
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

// The coordinator gives the shard back under a new generation. It may do so only after the next
// owner was frozen, so nothing of the stream was handled there and all of it is still good.
void Region::take_back(Generation generation, Outputs& out) {
  std::deque<StreamItem> items = std::exchange(retained_, {});
  become_owner(generation, out);
  for (StreamItem& item : items) apply_item(std::move(item), out);
  out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
}

// --- next owner ---

void Region::become_incoming(Generation generation, NodeKey from, Outputs& out) {
  if (state_ == RegionState::sending) on_ack(other_, generation_, out);
  if (state_ == RegionState::forward) {
    // What we passed on earlier must be through before we take anything ourselves (rule 7).
    own_fence_ = ++own_fences_;
    own_fence_via_ = other_;
    out.emplace_back(SendOwnFence{other_, {own_fence_, self_.value, generation, self_, self_}});
  }
  state_ = RegionState::incoming;
  generation_ = generation;
  other_ = from;
  source_ = from;
  expected_ = 0;
  arrived_.clear();
}

void Region::on_item(NodeKey from, Generation generation, std::uint64_t index, StreamItem item,
                     Outputs& out) {
  const bool owned = state_ == RegionState::owner && generation_ == generation;
  if (!owned && (generation <= frozen_ || generation < generation_)) {
    ++counters_.stale_commands;
    return;
  }
  if (!owned && generation_ < generation) {
    // The head implies PREPARE; anything else without it is a leftover of a broken link.
    if (index != 0 || state_ == RegionState::owner) {
      ++counters_.stream_gaps;
      return;
    }
    become_incoming(generation, from, out);
  }
  const bool taking = owned || (state_ == RegionState::incoming && generation_ == generation);
  if (!taking || from != source_) return;
  if (index > expected_) ++counters_.stream_gaps;
  if (index > expected_ && !owned) return;  // sent again after the link's reset
  if (index < expected_) {
    ++counters_.stream_repeats;
    if (owned && std::holds_alternative<StreamTail>(item)) {
      out.emplace_back(AckStream{from, generation, index});  // rule 10
      out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
    }
    return;
  }
  expected_ = index + 1;
  if (owned) {
    apply_item(std::move(item), out);
  } else if (std::holds_alternative<StreamTail>(item)) {
    end_of_stream(out);
  } else if (const auto* fence = std::get_if<PassingFence>(&item)) {
    if (fence->sender == self_.value && fence->id >= kOwnFenceIds) {
      on_own_fence(fence->id, out);
    } else {
      out.emplace_back(AnswerFence{*fence, self_, generation_, false});
    }
  } else {
    arrived_.push_back(std::move(item));
  }
}

// Rule 9: the instant at which the shard is ours.
void Region::end_of_stream(Outputs& out) {
  const NodeKey from = other_;
  const Generation generation = generation_;
  become_owner(generation, out);
  for (StreamItem& item : std::exchange(arrived_, {})) apply_item(std::move(item), out);
  if (own_fence_ == 0) release_held(out);
  out.emplace_back(AckStream{from, generation, expected_ - 1});
  out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
}

void Region::apply_item(StreamItem item, Outputs& out) {
  std::visit(
      Overloaded{[&](StreamHead& head) { marks_ = std::move(head.marks); },
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
