#include "runtime/data/stream_items.hpp"

#include <algorithm>
#include <utility>

namespace shardbus::runtime {
namespace {

std::optional<StreamInput> read_message(const wire::Envelope& envelope, Time now) {
  wire::StreamMessage in;
  if (wire::decode(envelope, in) != Errc::ok) return std::nullopt;
  wire::Envelope inner;
  std::string_view rest = in.envelope;
  if (wire::next_envelope(rest, inner) != Errc::ok) return std::nullopt;
  if (inner.kind != wire::Kind::tell && inner.kind != wire::Kind::ask) return std::nullopt;
  const wire::Message& message = inner.message;
  const Time deadline =
      message.time_left_ms == 0 ? kNever : now + milliseconds(message.time_left_ms);
  return StreamInput{in.shard, 0, in.generation, in.index,
                     core::Parked{in.sender, message.generation, std::string(inner.raw), deadline,
                                  message.correlation.node, message.correlation.slot, in.passed}};
}

std::optional<StreamInput> read_head(const wire::Envelope& envelope) {
  wire::StreamStart in;
  if (wire::decode(envelope, in) != Errc::ok) return std::nullopt;
  core::StreamHead head;
  for (const wire::StreamMark& mark : in.marks) {
    head.marks.push_back({mark.sender, mark.generation});
  }
  return StreamInput{std::move(in.shard), in.shard_count, in.generation, 0, std::move(head)};
}

std::optional<StreamInput> read_state(const wire::Envelope& envelope) {
  wire::StreamState in;
  if (wire::decode(envelope, in) != Errc::ok) return std::nullopt;
  return StreamInput{in.shard, 0, in.generation, in.index,
                     core::SavedEntity{std::string(in.id), std::string(in.state)}};
}

std::optional<StreamInput> read_fence(const wire::Envelope& envelope) {
  wire::StreamFence in;
  if (wire::decode(envelope, in) != Errc::ok) return std::nullopt;
  return StreamInput{in.shard, 0, in.generation, in.index,
                     core::PassingFence{in.fence.id, in.fence.sender, in.fence.generation,
                                        in.fence.target, in.origin, in.passed}};
}

std::optional<StreamInput> read_end(const wire::Envelope& envelope) {
  wire::StreamEnd in;
  if (wire::decode(envelope, in) != Errc::ok) return std::nullopt;
  return StreamInput{in.shard, 0, in.generation, in.index, core::StreamTail{}};
}

// The time left shrinks while a message waits.
std::string with_time_left(const core::Parked& parked, Time now) {
  if (parked.deadline == kNever) return parked.envelope;
  wire::Envelope envelope = wire::own_envelope(parked.envelope);
  const auto left = std::chrono::duration_cast<milliseconds>(parked.deadline - now).count();
  envelope.message.time_left_ms = static_cast<std::uint32_t>(std::max<std::int64_t>(left, 1));
  std::string patched;
  wire::encode(patched, envelope.message);
  return patched;
}

}  // namespace

std::optional<StreamInput> read_stream_item(const wire::Envelope& envelope, Time now) {
  switch (envelope.kind) {
    case wire::Kind::stream_start:
      return read_head(envelope);
    case wire::Kind::stream_state:
      return read_state(envelope);
    case wire::Kind::stream_message:
      return read_message(envelope, now);
    case wire::Kind::stream_fence:
      return read_fence(envelope);
    default:
      return read_end(envelope);
  }
}

void write_stream_item(std::string& out, const ShardName& name, std::uint32_t shard_count,
                       const core::SendItem& send, const DataContext& context) {
  const Generation generation = send.generation;
  if (const auto* head = std::get_if<core::StreamHead>(&send.item)) {
    wire::StreamStart item{name, shard_count, generation, {}};
    for (const core::SenderMark& mark : head->marks) {
      item.marks.push_back({mark.sender, mark.generation});
    }
    wire::encode(out, item);
  } else if (const auto* entity = std::get_if<core::SavedEntity>(&send.item)) {
    wire::encode(out, wire::StreamState{name, generation, send.index, entity->id, entity->state});
  } else if (const auto* parked = std::get_if<core::Parked>(&send.item)) {
    const std::string envelope = with_time_left(*parked, context.now);
    wire::encode(out, wire::StreamMessage{name, generation, send.index, parked->sender, envelope,
                                          parked->passed});
  } else if (const auto* fence = std::get_if<core::PassingFence>(&send.item)) {
    wire::StreamFence item{name, generation, send.index, fence->origin, {}, fence->passed};
    item.fence.shard = name;
    item.fence.id = fence->id;
    item.fence.sender = fence->sender;
    item.fence.generation = fence->generation;
    item.fence.target = fence->target;
    wire::encode(out, item);
  } else {
    wire::encode(out, wire::StreamEnd{name, generation, send.index, context.self()},
                 wire::Kind::stream_end);
  }
}

}  // namespace shardbus::runtime
