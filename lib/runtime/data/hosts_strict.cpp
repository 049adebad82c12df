// Strict types: what waits while this node has no majority behind it.
#include <algorithm>
#include <utility>

#include "runtime/data/hosts.hpp"

namespace shardbus::runtime {

// Only where handlers can outlive the shard, or the right to run it: in a pool, or of strict types.
std::shared_ptr<Messenger> Hosts::messenger_of(const Hosting& hosting, Cells& cells) {
  if (!hosting.placement.strict && executor_ == nullptr) return messenger_.lock();
  if (cells.guard == nullptr) {
    cells.guard = std::make_shared<GuardedMessenger>(
        messenger_, hosting.placement.strict ? context_.strict_right : nullptr);
  }
  return cells.guard;
}

void Hosts::end_guard(Cells& cells) {
  if (cells.guard != nullptr) cells.guard->end();
  cells.guard.reset();
}

// What a shard that stops has not begun, oldest first.
void Hosts::take_ready(const Hosting& hosting, ShardId shard,
                       std::vector<core::Parked>& unstarted) {
  for (std::deque<Ready>* queue : {&halted_, &ready_}) {
    std::erase_if(*queue, [&](Ready& ready) {
      if (ready.type != hosting.type->index || ready.shard != shard) return false;
      unstarted.push_back(ready.message.parked(hosting.type->name));
      return true;
    });
  }
  hostings_[hosting.type->index].cells[shard.value].ready = 0;
}

// What an entity of the pool has in its mailbox came before what is halted of it already. Many
// mailboxes may hold more than one queue does: of each the newest find no room then.
void Hosts::halt(Hosting& hosting, ShardId shard, Cell& cell) {
  const std::size_t limit = context_.config.buffered_messages;
  const std::size_t room = limit - std::min(limit, ready_.size() + halted_.size());
  std::list<core::Parked> kept = std::exchange(cell.mailbox, {});
  std::deque<core::Parked> refused;
  for (; kept.size() > room; kept.pop_back()) refused.push_front(std::move(kept.back()));
  for (; !kept.empty(); kept.pop_back()) {
    hosting.cells[shard.value].note_ready(kept.back().sender);
    halted_.push_front({hosting.type->index, shard, KeptMessage(kept.back())});
    limit_wait(halted_.front());
  }
  for (const core::Parked& parked : refused) {
    context_.dispatch->refuse(parked.asker, parked.slot, Errc::overloaded,
                              "too many messages wait on this node");
  }
}

// Another node ends its ask by its own deadline, which says nothing: it hears why before that.
void Hosts::limit_wait(Ready& ready) {
  const KeptMessage& message = ready.message;
  const bool forwarded = message.asker() != kNoNode && message.asker() != context_.self();
  ready.until = message.deadline();
  if (forwarded && message.deadline() != kNever) {
    ready.until = context_.now + (message.deadline() - context_.now) * 3 / 4;
  }
  halted_until_ = std::min(halted_until_, ready.until);
}

void Hosts::resume() {
  if (halted_.empty() || !context_.strict_right->holds()) return;
  ready_.insert(ready_.begin(), std::make_move_iterator(halted_.begin()),
                std::make_move_iterator(halted_.end()));
  halted_.clear();
  halted_until_ = kNever;
}

void Hosts::expire_halted() {
  std::vector<KeptMessage> late;
  halted_until_ = kNever;
  std::erase_if(halted_, [&](Ready& ready) {
    if (context_.now < ready.until) {
      halted_until_ = std::min(halted_until_, ready.until);
      return false;
    }
    --hostings_[ready.type].cells[ready.shard.value].ready;
    late.push_back(std::move(ready.message));
    return true;
  });
  for (const KeptMessage& message : late) {
    context_.dispatch->refuse(message.asker(), message.slot(), Errc::expired,
                              "the node of a strict entity has no majority");
  }
}

}  // namespace shardbus::runtime
