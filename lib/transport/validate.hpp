// Checks what users hand in, and small helpers around their messages.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "shardbus/entity.hpp"
#include "shardbus/message.hpp"
#include "shardbus/options.hpp"

namespace shardbus::transport {

// Errors: invalid_argument or bad_address, naming the option, its value, and its range.
Status validate(const NodeOptions& options);
Status validate(const EntityType& type);
// Errors: invalid_argument, too_large.
Status validate(const Outgoing& message);
Status validate(const Outgoing& message, milliseconds timeout);

// A message that outlives its caller's views.
class OwnedMessage {
 public:
  explicit OwnedMessage(const Outgoing& message)
      : type_(message.type), id_(message.id), method_(message.method), payload_(message.payload) {}
  [[nodiscard]] Outgoing view() const { return {type_, id_, method_, payload_}; }

 private:
  std::string type_, id_, method_, payload_;
};

// Runs `send` with a callback, and sleeps until that was called.
template <class Send>
Result<std::string> wait_for_reply(Send send) {
  std::mutex mutex;
  std::condition_variable signal;
  std::optional<Result<std::string>> result;
  send([&](const ReplyView& reply) {
    const std::lock_guard lock(mutex);
    if (reply.ok()) {
      result.emplace(std::string(reply.payload));
    } else {
      result.emplace(Status(reply.error, std::string(reply.text)));
    }
    signal.notify_one();
  });
  std::unique_lock lock(mutex);
  signal.wait(lock, [&] { return result.has_value(); });
  return std::move(*result);
}

}  // namespace shardbus::transport
