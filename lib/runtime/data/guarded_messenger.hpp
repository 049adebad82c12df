// What handlers send and answer through where their outputs may have to be fenced: nothing leaves
// once the shard went away under them, or, of strict types, once the right is over.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "runtime/data/strict_right.hpp"
#include "shardbus/message.hpp"

namespace shardbus::runtime {

// The messenger of a node, as guards use it.
class NodeMessenger : public Messenger {
 public:
  // As `answer`, but judged once more when it leaves: without the right it is unknown_outcome. The
  // pass that takes it may be a later one, or stand still before it sends.
  virtual Status answer_by_right(const ReplyAddress& to, const ReplyView& reply) = 0;
};

// Of one life of a shard on this node. A handler that outlives it, or the right of its node: what
// it sends is refused, what it answers becomes unknown_outcome, as another owner may have begun.
//
// Threads: any.
class GuardedMessenger final : public Messenger {
 public:
  // `right`: of strict types; else null.
  GuardedMessenger(std::weak_ptr<NodeMessenger> inner, std::shared_ptr<const StrictRight> right)
      : inner_(std::move(inner)), right_(std::move(right)) {}
  void end() { over_.store(true, std::memory_order_relaxed); }

  Status tell(const Outgoing& message) override {
    const std::shared_ptr<Messenger> inner = inner_.lock();
    if (inner == nullptr) return Status(Errc::stopped);
    return holds() ? inner->tell(message) : Status(Errc::not_ready, kOver);
  }
  void ask(const Outgoing& message, milliseconds timeout, ReplyCallback done) override {
    const std::shared_ptr<Messenger> inner = inner_.lock();
    if (inner == nullptr) return done({Errc::stopped, {}, {}});
    if (!holds()) return done({Errc::not_ready, kOver, {}});
    inner->ask(message, timeout, std::move(done));
  }
  Result<std::string> ask_and_wait(const Outgoing& message, milliseconds timeout) override {
    const std::shared_ptr<Messenger> inner = inner_.lock();
    if (inner == nullptr) return Status(Errc::stopped);
    if (!holds()) return Status(Errc::not_ready, kOver);
    return inner->ask_and_wait(message, timeout);
  }
  Status answer(const ReplyAddress& to, const ReplyView& reply) override {
    const std::shared_ptr<NodeMessenger> inner = inner_.lock();
    if (inner == nullptr) return Status(Errc::stopped);
    if (!holds()) return inner->answer(to, {Errc::unknown_outcome, kOver, {}});
    return right_ == nullptr ? inner->answer(to, reply) : inner->answer_by_right(to, reply);
  }

 private:
  [[nodiscard]] bool holds() const {
    return !over_.load(std::memory_order_relaxed) && (right_ == nullptr || right_->holds());
  }

  static constexpr const char* kOver = "the entity's shard, or the right to run it, has moved on";
  std::atomic<bool> over_{false};
  std::weak_ptr<NodeMessenger> inner_;
  std::shared_ptr<const StrictRight> right_;
};

}  // namespace shardbus::runtime
