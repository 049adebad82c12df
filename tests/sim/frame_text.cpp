#include "sim/frame_text.hpp"

#include "base/model/text.hpp"
#include "sim/ledger.hpp"
#include "wire/codec.hpp"

namespace shardbus::sim {
namespace {

std::string item_text(const ShardName& shard, Generation generation, std::uint64_t index) {
  return " " + to_text(shard) + " " + to_text(generation) + "#" + std::to_string(index);
}

std::string payload_text(std::string_view payload) {
  const auto ticket = Ticket::parse(payload);
  if (!ticket) return " ?";
  return " " + to_text(ticket->caller) + (ticket->inside ? "'s" : "") + " e" +
         std::to_string(ticket->entity) + "." + std::to_string(ticket->number);
}

std::string message_text(const wire::Message& message) {
  return (message.kind == wire::Kind::ask ? "ask" : "tell") + payload_text(message.payload) + " @" +
         to_text(message.generation);
}

template <class T>
std::string stream_text(const char* name, const wire::Envelope& envelope) {
  T item;
  if (wire::decode(envelope, item) != Errc::ok) return name;
  std::uint64_t index = 0;
  if constexpr (requires { item.index; }) index = item.index;
  std::string out = name + item_text(item.shard, item.generation, index);
  if constexpr (requires { item.envelope; }) {
    std::string_view rest = item.envelope;
    wire::Envelope inner;
    if (wire::next_envelope(rest, inner) == Errc::ok) out += " " + message_text(inner.message);
  }
  if constexpr (requires { item.fence; }) out += " id " + std::to_string(item.fence.id);
  if constexpr (requires { item.lost; }) {
    out += " id " + std::to_string(item.id) + " at " + to_text(item.node);
  }
  if constexpr (requires { item.target; }) {
    out += " id " + std::to_string(item.id) + " to " + to_text(item.target);
  }
  return out;
}

std::string link_text(const wire::Envelope& envelope) {
  wire::Link link;
  if (wire::decode(envelope, link) != Errc::ok) return "link?";
  return "session " + std::to_string(link.session % 1000) + " from " +
         std::to_string(link.sequence);
}

std::string control_text(const wire::Envelope& envelope) {
  ControlMessage message;
  return wire::decode(envelope, message) == Errc::ok ? to_text(message) : "control?";
}

std::string envelope_text(const wire::Envelope& envelope) {
  switch (envelope.kind) {
    case wire::Kind::tell:
    case wire::Kind::ask:
      return message_text(envelope.message);
    case wire::Kind::reply:
    case wire::Kind::error:
      return "reply " + std::to_string(envelope.reply.code) + payload_text(envelope.reply.payload);
    case wire::Kind::fence:
      return stream_text<wire::Fence>("fence", envelope);
    case wire::Kind::fence_ok:
      return stream_text<wire::FenceOk>("fence_ok", envelope);
    case wire::Kind::path_lost:
      return stream_text<wire::FenceOk>("path_lost", envelope);
    case wire::Kind::stream_start:
      return stream_text<wire::StreamStart>("start", envelope);
    case wire::Kind::stream_state:
      return stream_text<wire::StreamState>("state", envelope);
    case wire::Kind::stream_message:
      return stream_text<wire::StreamMessage>("item", envelope);
    case wire::Kind::stream_fence:
      return stream_text<wire::StreamFence>("item fence", envelope);
    case wire::Kind::stream_end:
      return stream_text<wire::StreamEnd>("end", envelope);
    case wire::Kind::stream_ack:
      return stream_text<wire::StreamEnd>("ack", envelope);
    case wire::Kind::link:
      return link_text(envelope);
    case wire::Kind::ping:
      return "ping";
    case wire::Kind::hello:
      return "hello";
    case wire::Kind::welcome:
      return "welcome";
    case wire::Kind::no_session:
      return "no_session";
    case wire::Kind::goodbye:
      return "goodbye";
    default:
      break;
  }
  const auto kind = static_cast<int>(envelope.kind);
  if (kind >= 50 && kind <= 63) return control_text(envelope);
  return "kind " + std::to_string(kind);
}

}  // namespace

std::string frame_text(std::string_view frame) {
  std::string out;
  wire::Envelope envelope;
  while (!frame.empty() && wire::next_envelope(frame, envelope) == Errc::ok) {
    if (envelope.kind == wire::Kind::pong || envelope.kind == wire::Kind::digest) continue;
    out += (out.empty() ? "" : " | ") + envelope_text(envelope);
  }
  return out;
}

}  // namespace shardbus::sim
