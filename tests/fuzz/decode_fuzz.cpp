// A frame of any bytes: no crash, no read behind the end, and what is accepted keeps its meaning
// when it is encoded and decoded again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "support/wire_recode.hpp"

namespace {

using shardbus::Errc;
using namespace shardbus::wire;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

bool same(const Correlation& a, const Correlation& b) {
  return a.opaque == b.opaque && a.node == b.node && a.slot == b.slot;
}

bool same(const Message& a, const Message& b) {
  return a.kind == b.kind && a.flags == b.flags && same(a.correlation, b.correlation) &&
         a.type == b.type && a.id == b.id && a.method == b.method && a.generation == b.generation &&
         a.sender_generation == b.sender_generation && a.time_left_ms == b.time_left_ms &&
         a.hops == b.hops && a.headers == b.headers && a.payload == b.payload;
}

void check_message(const Envelope& got) {
  std::string bytes;
  encode(bytes, got.message);
  std::string_view rest = bytes;
  Envelope again;
  require(next_envelope(rest, again) == Errc::ok && rest.empty(), "a message encodes");
  require(same(got.message, again.message), "a message keeps its fields");
}

void check_limits(const Envelope& got) {
  require(got.message.type.size() <= kTypeBytesMax, "type");
  require(got.message.id.size() <= kEntityIdBytesMax, "id");
  require(got.message.method.size() <= kMethodBytesMax, "method");
  require(got.message.headers.size() <= kHeadersBytesMax, "headers");
  require(got.message.time_left_ms <= kTimeLeftMsMax, "time left");
}

void check_stable(std::string_view envelope) {
  std::string once, twice;
  if (shardbus::test::recode(envelope, once) != Errc::ok) return;
  std::string_view rest = once;
  require(shardbus::test::recode(rest, twice) == Errc::ok && rest.empty(), "an envelope encodes");
  require(once == twice, "an envelope keeps its meaning");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const std::string_view before = rest;
    Envelope envelope;
    const Errc error = next_envelope(rest, envelope);
    require(rest.size() < before.size(), "an envelope is taken off");
    require(error != Errc::malformed || rest.empty(), "nothing is read behind a bad envelope");
    if (error != Errc::ok) continue;
    require(before.substr(0, envelope.raw.size()) == envelope.raw, "raw is the envelope");
    if (envelope.kind == Kind::tell || envelope.kind == Kind::ask) {
      check_limits(envelope);
      check_message(envelope);
    }
    check_stable(envelope.raw);
  }
  return 0;
}
