// Messages as bytes: what stands under the typed calls of entity_ref.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "shardbus/export.hpp"
#include "shardbus/function.hpp"
#include "shardbus/status.hpp"

namespace shardbus {

using std::chrono::milliseconds;

// A message on its way out. Views are read during the call only.
struct Outgoing {
  std::string_view type;     // 1..64 bytes
  std::string_view id;       // 1..256 bytes, any
  std::string_view method;   // 1..128 bytes
  std::string_view payload;  // one msgpack value, or any bytes if both sides agree; may be empty
};

// How an ask ended: a payload, or an error with a text. Views live as long as the callback runs.
struct ReplyView {
  Errc error = Errc::ok;
  std::string_view text;
  std::string_view payload;
  [[nodiscard]] bool ok() const { return error == Errc::ok; }
};

// Called exactly once: on a thread of the library or, where the outcome is known at once, on the
// caller's. Must not block and must not throw; what it throws in the library is caught and logged.
using ReplyCallback = UniqueFunction<void(const ReplyView&)>;

// Address of an asker: any node of the cluster can send an answer there. Serialised as
// [node, slot]; {0, 0} is nobody.
struct ReplyAddress {
  std::uint64_t node = 0;
  std::uint64_t slot = 0;
  [[nodiscard]] bool valid() const { return node != 0; }
  friend bool operator==(const ReplyAddress&, const ReplyAddress&) = default;
};

// Default of every ask that names no timeout.
inline constexpr milliseconds kDefaultAskTimeout{5000};

// Sends messages for an EntityRef: a node, a client, or a handler's context.
//
// Threads: safe from any. Delivery: at most once per call, in the order of the calls of one thread
// to one entity.
class SHARDBUS_EXPORT Messenger {
 public:
  virtual ~Messenger() = default;
  // Hands a one-way message over; does not wait for it to be handled. A message that is refused
  // later is counted and logged where that happens.
  // Errors: too_large, invalid_argument, overloaded, stopped.
  virtual Status tell(const Outgoing& message) = 0;
  // Sends and calls back exactly once: with the reply, or with an error, at the deadline at latest.
  virtual void ask(const Outgoing& message, milliseconds timeout, ReplyCallback done) = 0;
  // Sends and waits. In a callback or a handler that runs on a polling thread: would_deadlock.
  virtual Result<std::string> ask_and_wait(const Outgoing& message, milliseconds timeout) = 0;
  // Answers an asker whose address was handed on. A second answer to one address is dropped and
  // counted. Nodes only (invalid_argument from a client).
  virtual Status answer(const ReplyAddress& to, const ReplyView& reply) = 0;
};

}  // namespace shardbus
