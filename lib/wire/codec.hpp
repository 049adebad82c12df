// Encodes and decodes envelopes. Layout: PROTOCOL.md.
//
// Decoders are total: on no input do they throw (but bad_alloc), read past its end, or reserve
// memory because of a count that the input only claims. Encoders do not check: a value over its
// limit or with bytes that are not UTF-8 is refused by the receiver, so callers check what users
// gave them. Only texts of errors are cut and cleaned.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "shardbus/status.hpp"
#include "wire/envelope.hpp"
#include "wire/limits.hpp"

namespace shardbus::wire {

// One envelope of a frame, its header read as far as the data path needs it.
struct Envelope {
  Kind kind{};
  std::string_view raw;   // the whole envelope
  std::string_view body;  // what follows (kind, flags, correlation): input of decode_*()
  std::uint32_t body_items = 0;
  Message message;          // filled for tell and ask
  Reply reply;              // filled for reply and error
  Correlation correlation;  // of any kind (so that an unknown kind can be answered)
};

// Reads the next envelope from the front of `rest` and takes it off.
// Errc::ok, Errc::malformed (rest is left empty: what follows cannot be trusted; `out.correlation`
// is what could be read of it, and only it is valid), Errc::too_large (a field over its limit; the
// envelope is taken off and `out.correlation` is valid), or Errc::unknown_kind (the same).
Errc next_envelope(std::string_view& rest, Envelope& out) noexcept;
// Reads one envelope that this process has written or checked before; the views point into it.
Envelope own_envelope(std::string_view envelope) noexcept;

// Appends to `out`.
void encode(std::string& out, const Message& message);
void encode(std::string& out, const Reply& reply);  // error if code != 0
void encode(std::string& out, const Hello& hello);
void encode(std::string& out, const Welcome& welcome);
void encode(std::string& out, const Reject& reject);
void encode_no_session(std::string& out, std::uint16_t code, std::string_view text);
void encode_empty(std::string& out, Kind kind);  // goodbye, ping, pong, who
void encode(std::string& out, const Credit& credit);
void encode(std::string& out, const Link& link);
void encode(std::string& out, const Here& here);
void encode(std::string& out, const Moved& moved);
void encode(std::string& out, const ClientTable& table);
void encode(std::string& out, const Fence& fence);
void encode(std::string& out, const FenceOk& answer);  // path_lost if answer.lost
void encode(std::string& out, const StreamStart& item);
void encode(std::string& out, const StreamState& item);
void encode(std::string& out, const StreamMessage& item);
void encode(std::string& out, const StreamFence& item);
void encode(std::string& out, const StreamEnd& item, Kind kind);  // stream_end or stream_ack
void encode(std::string& out, const ControlMessage& message);
void encode(std::string& out, const Restore& restore);
void encode(std::string& out, const Release& release);
void encode(std::string& out, const Released& released);
void encode_offer(std::string& out, const std::vector<HostedType>& types);

// Decode `envelope.body` of the matching kind. Errc::ok or Errc::malformed / too_large.
Errc decode(const Envelope& in, Hello& out);
Errc decode(const Envelope& in, Welcome& out);
Errc decode(const Envelope& in, Reject& out);  // reject and no_session
Errc decode(const Envelope& in, Credit& out);
Errc decode(const Envelope& in, Link& out);
Errc decode(const Envelope& in, Here& out);
Errc decode(const Envelope& in, Moved& out);
Errc decode(const Envelope& in, ClientTable& out);
Errc decode(const Envelope& in, Fence& out);
Errc decode(const Envelope& in, FenceOk& out);
Errc decode(const Envelope& in, StreamStart& out);
Errc decode(const Envelope& in, StreamState& out);
Errc decode(const Envelope& in, StreamMessage& out);
Errc decode(const Envelope& in, StreamFence& out);
Errc decode(const Envelope& in, StreamEnd& out);       // stream_end and stream_ack
Errc decode(const Envelope& in, ControlMessage& out);  // kinds 50..63
Errc decode(const Envelope& in, Restore& out);
Errc decode(const Envelope& in, Release& out);
Errc decode(const Envelope& in, Released& out);
Errc decode_offer(const Envelope& in, std::vector<HostedType>& out);

}  // namespace shardbus::wire
