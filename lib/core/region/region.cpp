// Commands of the coordinator, arrivals, and what the world does to a shard.
#include "core/region/region.hpp"

#include <algorithm>
#include <utility>

namespace shardbus::core {
namespace {

constexpr Duration kAckPatience = std::chrono::seconds(2);

}  // namespace

Region::Verdict Region::admit(std::uint64_t sender, Generation stamped) {
  if (marks_.admit(sender, stamped)) return Verdict::deliver;
  ++counters_.stale_messages;
  rare_.hit(Mark::stale_stamp_refused);
  return Verdict::stale;
}

Region::Verdict Region::arrive_elsewhere() {
  if (!takes()) return Verdict::not_here;
  if (parked() < parked_limit_) return Verdict::park;
  rare_.hit(Mark::held_full);
  return Verdict::overflow;
}

void Region::park(Parked message, Outputs& out) {
  if ((passes() || state_ == RegionState::sending) && own_fence_ == 0) {
    append(std::move(message), out);
  } else {
    held_.push_back(std::move(message));
  }
}

void Region::on_fence(const PassingFence& fence, Outputs& out) {
  const bool of_region = fence.id >= kOwnFenceIds && fence.sender != self_.value;
  if (of_region && took_over_a_way() && !returned(fence)) return pass_behind(fence, out);
  switch (state_) {
    case RegionState::owner:
      // While stopping, an answer is right too: the sender's earlier messages are here.
      if (!stopping_ && generation_ < fence.generation && fence.target != self_) {
        out.emplace_back(PassFence{fence.target, fence});
        rare_.hit(Mark::fence_to_named_owner);
        return;
      }
      [[fallthrough]];
    case RegionState::incoming:
      out.emplace_back(AnswerFence{fence, self_, generation_, false});
      return;
    case RegionState::sending:
    case RegionState::forward:
    case RegionState::frozen:
      if (!takes()) break;
      // Where the buffer is full, or we wait for a fence ourselves, the sender asks again: an open
      // fence is repeated.
      if (own_fence_ == 0 && parked() < parked_limit_) return append(fence, out);
      rare_.hit(Mark::fence_dropped);
      return;
    case RegionState::none:
      break;
  }
  // Nothing of this sender waits here, so the named owner is the right way on.
  rare_.hit(Mark::fence_at_nobody);
  out.emplace_back(AnswerFence{fence, fence.target, fence.generation, false});
}

bool Region::passed(Generation generation) {
  const bool old = generation <= generation_ || generation <= frozen_;
  if (old) ++counters_.stale_commands;
  return old;
}

void Region::begin(Generation generation, NodeKey next, Outputs& out) {
  const bool known = (state_ == RegionState::sending || state_ == RegionState::forward) &&
                     generation == generation_;
  if (known) return;  // repeated; the stream is under way or done
  if (state_ != RegionState::owner || passed(generation)) {
    if (state_ != RegionState::owner) ++counters_.stale_commands;
    return;
  }
  if (own_fence_ != 0) {
    rare_.hit(Mark::begin_waits_for_fence);
    if (!waiting_begin_.has_value() || waiting_begin_->first < generation) {
      waiting_begin_ = {generation, next};
    }
    return;
  }
  if (next == self_) {  // an undo to ourselves: a new generation of the same life
    generation_ = generation;
    if (stopping_) next_ = self_;
    out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
    return;
  }
  if (stopping_ && generation <= next_generation_ && next_ != self_) return;
  next_generation_ = generation;
  next_ = next;
  if (!std::exchange(stopping_, true)) out.emplace_back(StopEntities{});
}

void Region::on_term(Term term) {
  term_ = std::max(term_, term);
  if (stopping_ && next_generation_.term < term) next_ = self_;
  if (waiting_begin_.has_value() && waiting_begin_->first.term < term) waiting_begin_.reset();
}

void Region::prepare(Generation generation, NodeKey from, Outputs& out) {
  if (state_ == RegionState::owner && generation_ == generation) {
    out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
    return;
  }
  if (state_ == RegionState::incoming && generation_ == generation) return;
  if (generation <= frozen_) {
    out.emplace_back(AnswerCoordinator{RegionAnswerKind::frozen, generation});
    return;
  }
  if (state_ == RegionState::owner || passed(generation)) return;
  become_incoming(generation, from, out);
}

void Region::freeze(Generation generation, Outputs& out) {
  if (state_ == RegionState::owner && generation <= generation_) {
    out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation_});
    return;
  }
  frozen_ = std::max(frozen_, generation);
  if (state_ == RegionState::incoming && generation_ <= frozen_) give_up_transfer(out);
  out.emplace_back(AnswerCoordinator{RegionAnswerKind::frozen, generation});
}

// The old owner still has all that came of the transfer, and goes on as the owner; what came here
// directly follows to it. If it is dead, both are lost.
void Region::give_up_transfer(Outputs& out) {
  state_ = RegionState::frozen;
  rare_.hit(source_dead_ ? Mark::frozen_source_dead : Mark::transfer_frozen);
  close_inflow();
  streamless_ = true;
  if (source_dead_) return lose_transfer(out);
  if (own_fence_ == 0) pass_held(out);
}

void Region::lose_transfer(Outputs& out) {
  lose_arrived(out);
  fail_all(held_, Errc::stale_owner, out);
}

void Region::rehome(Generation generation, Generation frozen, Outputs& out) {
  if (state_ == RegionState::owner && generation <= generation_) {
    out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation_});
    return;
  }
  if (generation <= frozen_ || generation < generation_) {
    ++counters_.stale_commands;
    rare_.hit(Mark::rehome_too_old);
    out.emplace_back(AnswerCoordinator{RegionAnswerKind::frozen, generation});
    return;
  }
  if (state_ == RegionState::owner) {  // the same life under a newer right; an open stop is undone
    generation_ = generation;
    if (stopping_) next_ = self_;
    out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
    return;
  }
  if (state_ == RegionState::sending) {
    if (frozen == generation_) return take_back(generation, out);
    rare_.hit(Mark::next_owner_death_unheard);
    lose_retained(out);  // the next owner died, and its death was not heard of here yet
  }
  if (state_ == RegionState::incoming) {  // the old owner died before the tail
    rare_.hit(Mark::rehomed_while_incoming);
    close_inflow();
  }
  lose_arrived(out);
  marks_.clear();
  source_ = kNoNode;  // a fresh life: what older owners still forward goes in its turn
  become_owner(generation);
  if (own_fence_ == 0) release_held(out);
  out.emplace_back(AnswerCoordinator{RegionAnswerKind::owned, generation});
}

void Region::become_owner(Generation generation) {
  state_ = RegionState::owner;
  generation_ = generation;
  other_ = kNoNode;
  lost_to_ = kNoNode;
  stopping_ = false;
  past_.reset();
}

void Region::release_held(Outputs& out) {
  while (!held_.empty()) {
    Parked message = std::move(held_.front());
    held_.pop_front();
    if (admit(message.sender, message.generation) == Verdict::deliver) {
      out.emplace_back(DeliverParked{std::move(message)});
    } else {
      rare_.hit(Mark::held_too_old);
      out.emplace_back(FailParked{std::move(message), Errc::stale_owner});
    }
  }
}

void Region::fail_all(std::deque<Parked>& messages, Errc code, Outputs& out) {
  for (Parked& message : messages) out.emplace_back(FailParked{std::move(message), code});
  messages.clear();
}

void Region::on_own_fence(std::uint64_t id, Outputs& out) {
  if (id != own_fence_ || own_fence_ == 0) return;
  if (std::exchange(passed_behind_, false)) {
    rare_.hit(Mark::own_fence_again);
    own_fence_ = ++own_fences_;
    return resend_own_fence(out);
  }
  own_fence_ = 0;
  if (state_ == RegionState::owner) release_held(out);
  if (passes()) pass_held(out);
  if (waiting_begin_.has_value()) {
    const auto [generation, next] = *std::exchange(waiting_begin_, std::nullopt);
    begin(generation, next, out);
  }
}

void Region::on_table(const TableEntry& entry, Outputs& out) {
  if (entry.owner == self_ || entry.generation <= generation_) return;
  if (state_ == RegionState::frozen && !source_dead_) arrived_.clear();  // it took all of it back
  if (state_ == RegionState::incoming) return abandon_transfer(out);
  if (state_ == RegionState::sending && !std::exchange(overtaken_, true)) {
    rare_.hit(Mark::sending_overtaken);
    overtaken_until_ = {};
  }
  if (state_ != RegionState::owner) return;
  if (stopping_ && entry.generation == next_generation_) return;
  // Another owner was made without us: a partition or a death that was none (guarantee 1).
  const bool fenced = entry.owner != kNoNode;
  counters_.fenced += fenced ? 1 : 0;
  rare_.hit(fenced ? Mark::fenced_by_table : Mark::dropped_unhosted);
  state_ = RegionState::none;
  stopping_ = false;
  generation_ = entry.generation;
  marks_.clear();
  out.emplace_back(DropEntities{fenced});
  fail_all(held_, Errc::stale_owner, out);
}

// A newer generation is in the table, so the one that is on its way here was given up without us: a
// coordinator that could not reach us thought us dead.
void Region::abandon_transfer(Outputs& out) {
  rare_.hit(Mark::incoming_abandoned);
  close_inflow();
  lose_arrived(out);
  state_ = RegionState::none;
  other_ = kNoNode;
  fail_all(held_, Errc::stale_owner, out);
}

void Region::on_dead(NodeKey node, Outputs& out) {
  if (past_.has_value() && past_->owner == node) past_ = TableEntry{};
  if (own_fence_ != 0 && own_fence_via_ == node) {
    passed_behind_ = false;
    rare_.hit(Mark::own_fence_path_died);
    on_own_fence(own_fence_, out);
  }
  if (stopping_ && next_ == node) {  // nothing left this node yet: go on as the owner
    next_ = self_;
  }
  if (waiting_begin_.has_value() && waiting_begin_->second == node) waiting_begin_.reset();
  std::erase_if(inflows_, [node](const Inflow& inflow) { return inflow.from == node; });
  marks_.forget(node.value);
  if (other_ != node) return;
  if (state_ == RegionState::sending || state_ == RegionState::forward) lost_to_ = node;
  if (state_ == RegionState::sending) {
    rare_.hit(Mark::next_owner_died);
    lose_retained(out);
  }
  if (state_ == RegionState::forward) state_ = RegionState::none;
  if (state_ != RegionState::incoming && state_ != RegionState::frozen) return;
  source_dead_ = true;
  if (state_ == RegionState::frozen) lose_transfer(out);
}

void Region::forget_sender(std::uint64_t sender) {
  marks_.forget(sender);
}

void Region::expire(Time now, Outputs& out) {
  std::erase_if(held_, [&](Parked& message) {
    if (message.deadline > now) return false;
    rare_.hit(Mark::held_expired);
    out.emplace_back(FailParked{std::move(message), Errc::expired});
    return true;
  });
  if (state_ != RegionState::sending || !overtaken_) return;
  if (overtaken_until_ == Time{}) overtaken_until_ = now + kAckPatience;
  if (now < overtaken_until_) return;
  rare_.hit(Mark::overtaken_given_up);
  lose_retained(out);
}

std::string Region::state_text() const {
  static constexpr const char* kNames[] = {"none",    "owner",    "sending",
                                           "forward", "incoming", "frozen"};
  const auto generation_text = [](Generation generation) {
    return std::to_string(generation.term.value) + "." + std::to_string(generation.claimant.value) +
           "." + std::to_string(generation.counter);
  };
  std::string text = kNames[static_cast<int>(state_)];
  text += " g=" + generation_text(generation_);
  if (stopping_) text += " stopping->" + std::to_string(next_.value);
  if (other_ != kNoNode) text += " other=" + std::to_string(other_.value);
  text += " held=" + std::to_string(held_.size()) + " arrived=" + std::to_string(arrived_.size()) +
          " retained=" + std::to_string(retained_.size()) + " sent=" + std::to_string(sent_);
  if (own_fence_ != 0) text += " own_fence->" + std::to_string(own_fence_via_.value);
  for (const Inflow& inflow : inflows_) {
    text += " from" + std::to_string(inflow.from.value) + "=" + std::to_string(inflow.expected);
  }
  return text;
}

}  // namespace shardbus::core
