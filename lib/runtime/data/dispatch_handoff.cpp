// Handoffs: carrying out what a region decided, and the stream that comes in.
#include <utility>

#include "base/overloaded.hpp"
#include "runtime/data/dispatch.hpp"
#include "runtime/data/hosts.hpp"
#include "runtime/data/links.hpp"
#include "runtime/data/stream_items.hpp"

namespace shardbus::runtime {

void Dispatch::on_stopped(Type& type, ShardId id, std::vector<core::SavedEntity> states,
                          std::vector<core::Parked> unstarted) {
  core::Region::Outputs outputs;
  type.shards[id.value].region.on_stopped(std::move(states), std::move(unstarted), outputs);
  carry_out(type, id, outputs);
}

// Carrying out one output may make a region decide again, here or elsewhere. What it decides then
// comes after what it decided before: items of a stream must leave in the order of their indices.
void Dispatch::carry_out(Type& type, ShardId id, core::Region::Outputs& outputs) {
  for (core::RegionOutput& output : outputs) outbox_.push_back({&type, id, std::move(output)});
  outputs.clear();
  if (std::exchange(carrying_, true)) return;
  while (!outbox_.empty()) {
    Decision next = std::move(outbox_.front());
    outbox_.pop_front();
    carry_out_one(*next.type, next.shard, next.output);
  }
  carrying_ = false;
}

void Dispatch::carry_out_one(Type& type, ShardId id, core::RegionOutput& output) {
  std::visit(
      Overloaded{
          [&](core::StopEntities&) { context_.hosts->stop(type, id); },
          [&](core::SendItem& o) { send_item(type, id, o); },
          [&](core::AckStream& o) {
            wire::StreamEnd ack{{type.name, id}, o.generation, o.index, context_.self()};
            std::string envelope;
            wire::encode(envelope, ack, wire::Kind::stream_ack);
            context_.links->send_ack(o.to, envelope);
          },
          [&](core::AnswerCoordinator& o) { answer_coordinator(type, id, o); },
          [&](core::AnswerFence& o) {
            const wire::FenceOk answer{{type.name, id}, o.fence.id, o.fence.sender,
                                       o.generation,    o.node,     o.lost};
            if (o.fence.origin == context_.self()) return on_fence_ok(answer);
            (void)context_.links->send(o.fence.origin, answer);
          },
          [&](core::SendOwnFence& o) {
            check_fence_later(type, id);
            pass_fence(type, id, o.via, o.fence);
          },
          [&](core::PassFence& o) { pass_fence(type, id, o.to, o.fence); },
          [&](core::RestoreEntity& o) { context_.hosts->restore(type, id, std::move(o.entity)); },
          [&](core::DeliverParked& o) { deliver_parked(type, id, o.message); },
          [&](core::FailParked& o) { refuse(o.message.asker, o.message.slot, o.code, ""); },
          [&](core::DropEntities& o) {
            if (o.fenced) context_.count(Count::shards_fenced);
            context_.listener->log(o.fenced ? LogLevel::warn : LogLevel::debug,
                                   o.fenced ? "region.fenced" : "region.dropped",
                                   "type=" + type.name + " shard=" + std::to_string(id.value));
            context_.hosts->drop(type, id, o.fenced);
          },
      },
      output);
}

void Dispatch::deliver_parked(Type& type, ShardId id, const core::Parked& parked) {
  context_.hosts->deliver(type, id, parked.sender, wire::own_envelope(parked.envelope).message,
                          parked.deadline, false);
}

// A fence that goes on keeps the node to which the answer is due.
void Dispatch::pass_fence(Type& type, ShardId id, NodeKey to, const core::PassingFence& fence) {
  wire::Fence envelope;
  envelope.shard = {type.name, id};
  envelope.id = fence.id;
  envelope.sender = fence.sender;
  envelope.generation = fence.generation;
  envelope.target = fence.target;
  envelope.reply = {{}, fence.origin, 0};
  (void)context_.links->send(to, envelope);
}

void Dispatch::send_item(Type& type, ShardId id, core::SendItem& send) {
  context_.links->send_stream(send.next, [&](std::string& envelope) {
    write_stream_item(envelope, {type.name, id}, type.shard_count, send, context_);
  });
  // Other shards may stop in the same pass: the next owner must not wait for them as well. Answers
  // of a strict owner leave at the end of the pass, and nothing may begin elsewhere before.
  const bool tail = std::holds_alternative<core::StreamTail>(send.item);
  if (tail && !context_.held && !context_.hosts->strict(type)) context_.links->flush(send.next);
  const auto* parked = std::get_if<core::Parked>(&send.item);
  if (parked == nullptr) return;
  // Whoever waits for the answer must hear of the next node's death, not of ours. The new owner
  // is named only once it has acknowledged (rule 13).
  const bool acknowledged = type.shards[id.value].region.state() == RegionState::forward;
  tell_moved(parked->asker, parked->slot, type, id,
             {send.next, acknowledged ? send.generation : Generation{}});
}

void Dispatch::on_stream_envelope(NodeKey from, const wire::Envelope& envelope) {
  std::optional<StreamInput> input = read_stream_item(envelope, context_.now);
  if (!input.has_value()) return context_.count(Count::malformed_frames);
  Type* type = input->shard_count > 0 ? add_type(input->name.type, input->shard_count)
                                      : find_type(input->name.type);
  const ShardId id = input->name.shard;
  if (type == nullptr || id.value >= type->shard_count) return;
  core::Region& region = type->shards[id.value].region;
  core::Region::Outputs outputs;
  if (envelope.kind == wire::Kind::stream_ack) {
    region.on_ack(from, input->generation);
  } else {
    region.on_item(from, input->generation, input->index, std::move(input->item), outputs);
  }
  carry_out(*type, id, outputs);
}

void Dispatch::answer_coordinator(Type& type, ShardId id, const core::AnswerCoordinator& answer) {
  RegionAnswer message{answer.kind, {type.name, id}, answer.generation, context_.self()};
  if (coordinator_ == context_.self()) {
    return context_.listener->on_control(coordinator_, std::move(message));
  }
  if (coordinator_ != kNoNode) (void)context_.links->send_control(coordinator_, message);
}

}  // namespace shardbus::runtime
