// What handlers of strict types send and answer through: nothing leaves once the right is over.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "runtime/data/strict_right.hpp"
#include "shardbus/message.hpp"

namespace shardbus::runtime {

// A handler that outlives the right of its node: what it sends is refused, what it answers becomes
// unknown_outcome, as another owner may have begun meanwhile.
class GuardedMessenger final : public Messenger {
 public:
  GuardedMessenger(std::weak_ptr<Messenger> inner, std::shared_ptr<const StrictRight> right)
      : inner_(std::move(inner)), right_(std::move(right)) {}

  Status tell(const Outgoing& message) override {
    const std::shared_ptr<Messenger> inner = inner_.lock();
    if (inner == nullptr) return Status(Errc::stopped);
    return right_->holds() ? inner->tell(message) : Status(Errc::not_ready, kOver);
  }
  void ask(const Outgoing& message, milliseconds timeout, ReplyCallback done) override {
    const std::shared_ptr<Messenger> inner = inner_.lock();
    if (inner == nullptr) return done({Errc::stopped, {}, {}});
    if (!right_->holds()) return done({Errc::not_ready, kOver, {}});
    inner->ask(message, timeout, std::move(done));
  }
  Result<std::string> ask_and_wait(const Outgoing& message, milliseconds timeout) override {
    const std::shared_ptr<Messenger> inner = inner_.lock();
    if (inner == nullptr) return Status(Errc::stopped);
    if (!right_->holds()) return Status(Errc::not_ready, kOver);
    return inner->ask_and_wait(message, timeout);
  }
  Status answer(const ReplyAddress& to, const ReplyView& reply) override {
    const std::shared_ptr<Messenger> inner = inner_.lock();
    if (inner == nullptr) return Status(Errc::stopped);
    if (right_->holds()) return inner->answer(to, reply);
    return inner->answer(to, {Errc::unknown_outcome, kOver, {}});
  }

 private:
  static constexpr const char* kOver = "the node of a strict entity lost its majority";
  std::weak_ptr<Messenger> inner_;
  std::shared_ptr<const StrictRight> right_;
};

}  // namespace shardbus::runtime
