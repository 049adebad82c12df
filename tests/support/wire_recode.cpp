#include "support/wire_recode.hpp"

namespace shardbus::test {
namespace {

using wire::Envelope;
using wire::Kind;

template <class T>
Errc through(const Envelope& in, std::string& out) {
  T value;
  const Errc error = wire::decode(in, value);
  if (error == Errc::ok) wire::encode(out, value);
  return error;
}

Errc through_no_session(const Envelope& in, std::string& out) {
  wire::Reject value;
  const Errc error = wire::decode(in, value);
  if (error == Errc::ok) wire::encode_no_session(out, value.code, value.text);
  return error;
}

Errc through_end(const Envelope& in, std::string& out) {
  wire::StreamEnd value;
  const Errc error = wire::decode(in, value);
  if (error == Errc::ok) wire::encode(out, value, in.kind);
  return error;
}

Errc through_offer(const Envelope& in, std::string& out) {
  std::vector<HostedType> value;
  const Errc error = wire::decode_offer(in, value);
  if (error == Errc::ok) wire::encode_offer(out, value);
  return error;
}

Errc recode_body(const Envelope& in, std::string& out) {
  switch (in.kind) {
    case Kind::tell:
    case Kind::ask:
      wire::encode(out, in.message);
      return Errc::ok;
    case Kind::reply:
    case Kind::error:
      wire::encode(out, in.reply);
      return Errc::ok;
    case Kind::hello:
      return through<wire::Hello>(in, out);
    case Kind::welcome:
      return through<wire::Welcome>(in, out);
    case Kind::reject:
      return through<wire::Reject>(in, out);
    case Kind::no_session:
      return through_no_session(in, out);
    case Kind::goodbye:
    case Kind::ping:
    case Kind::pong:
    case Kind::who:
      wire::encode_empty(out, in.kind);
      return Errc::ok;
    case Kind::credit:
      return through<wire::Credit>(in, out);
    case Kind::link:
      return through<wire::Link>(in, out);
    case Kind::here:
      return through<wire::Here>(in, out);
    case Kind::moved:
      return through<wire::Moved>(in, out);
    case Kind::table:
      return through<wire::ClientTable>(in, out);
    case Kind::fence:
      return through<wire::Fence>(in, out);
    case Kind::fence_ok:
    case Kind::path_lost:
      return through<wire::FenceOk>(in, out);
    case Kind::stream_start:
      return through<wire::StreamStart>(in, out);
    case Kind::stream_state:
      return through<wire::StreamState>(in, out);
    case Kind::stream_message:
      return through<wire::StreamMessage>(in, out);
    case Kind::stream_fence:
      return through<wire::StreamFence>(in, out);
    case Kind::stream_end:
    case Kind::stream_ack:
      return through_end(in, out);
    case Kind::restore:
      return through<wire::Restore>(in, out);
    case Kind::release:
      return through<wire::Release>(in, out);
    case Kind::released:
      return through<wire::Released>(in, out);
    case Kind::offer:
      return through_offer(in, out);
    default:
      return through<ControlMessage>(in, out);
  }
}

}  // namespace

Errc recode(std::string_view& rest, std::string& out) {
  Envelope envelope;
  const Errc error = wire::next_envelope(rest, envelope);
  return error == Errc::ok ? recode_body(envelope, out) : error;
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string unhex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    out += static_cast<char>(digit(text[i]) << 4 | digit(text[i + 1]));
  }
  return out;
}

}  // namespace shardbus::test
