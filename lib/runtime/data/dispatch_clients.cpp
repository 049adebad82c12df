// Messages and fences of smart clients, which are senders of their own.
#include <utility>

#include "runtime/data/dispatch.hpp"
#include "runtime/data/links.hpp"

namespace shardbus::runtime {

Dispatch::Direct Dispatch::submit_direct(std::uint64_t sender, wire::Message message, Time deadline,
                                         AskOrigin& origin, wire::Moved* moved) {
  Type* type = find_type(message.type);
  if (type == nullptr) return Direct::not_here;
  const ShardId id = shard_of(message.id, type->shard_count);
  Shard& shard = type->shards[id.value];
  const RegionState state = shard.region.state();
  // One way for all that it sends before its next fence.
  if (!shard.region.takes() || in_our_name_.contains({&shard, sender})) {
    if (moved != nullptr && shard.route.owner() != kNoNode) {
      moved->shard = {type->name, id};
      moved->entry = {shard.route.owner(), shard.route.generation()};
    }
    return Direct::not_here;
  }
  if (message.kind == wire::Kind::ask) {
    Asks::Ask ask{std::move(origin), context_.self(), deadline};
    if (asks_.full()) {
      fail(std::move(ask), Errc::overloaded, "pending asks are at their limit");
      return Direct::taken;
    }
    const std::uint64_t slot = asks_.open(std::move(ask));
    message.correlation = {{}, context_.self(), slot};
  }
  if (state == RegionState::forward && moved != nullptr) {
    moved->shard = {type->name, id};
    moved->entry = {shard.region.other(), shard.region.generation()};
  }
  arrive(*type, id, sender, message, deadline);
  return Direct::taken;
}

void Dispatch::on_client_fence(const wire::Fence& fence) {
  Type* type = find_type(fence.shard.type);
  if (type == nullptr || fence.shard.shard.value >= type->shard_count) return;
  Shard& shard = type->shards[fence.shard.shard.value];
  // What the client sent in our own name waits here: its fence goes behind that.
  const bool waits = !shard.held.empty() || !open(shard);
  if (waits && in_our_name_.contains({&shard, fence.sender})) {
    HeldMessage held{{}, 0, kNever, context_.now + context_.config.held_wait, Errc::expired};
    wire::encode(held.envelope, fence);
    (void)hold_bytes(shard.held, std::move(held));  // the client asks again
    return;
  }
  pass_client_fence(shard, fence);
}

// The way that the client's messages took from here. It is one way, and may not be mistaken: a
// region that takes its shard back holds what clients send, while our own messages still go to
// whoever has the shard as yet. A fence that comes out there lets the client's next messages
// overtake what is held.
void Dispatch::pass_client_fence(Shard& shard, const wire::Fence& fence) {
  const auto ours = in_our_name_.find({&shard, fence.sender});
  if (ours == in_our_name_.end()) return on_fence(context_.self(), fence);
  ours->second = fence.id;
  const bool leads_here = shard.route.via() == context_.self() || !shard.route.used();
  if (leads_here) return on_fence(context_.self(), fence);
  (void)context_.links->send(shard.route.via(), fence);
}

void Dispatch::on_client_fence_ok(const Shard& shard, const wire::FenceOk& answer) {
  const auto ours = in_our_name_.find({&shard, answer.sender});
  if (ours != in_our_name_.end() && ours->second == answer.id) in_our_name_.erase(ours);
}

}  // namespace shardbus::runtime
