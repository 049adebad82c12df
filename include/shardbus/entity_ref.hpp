// `EntityRef`: the address of one entity, with typed tell and ask. Start reading at node.hpp.
#pragma once

#include <chrono>
#include <coroutine>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "shardbus/codec.hpp"
#include "shardbus/message.hpp"

namespace shardbus {

namespace detail {

template <class R>
Result<R> decode_reply(const ReplyView& reply) {
  if (!reply.ok()) return Status(reply.error, std::string(reply.text));
  if constexpr (std::is_void_v<R>) {
    return Result<void>();
  } else {
    return unpack<R>(reply.payload);
  }
}

// Awaitable ask. Lives in the awaiting coroutine's frame.
template <class R>
class AskAwaiter {
 public:
  AskAwaiter(std::shared_ptr<Messenger> via, std::string type, std::string id, std::string method,
             std::string payload, milliseconds timeout)
      : via_(std::move(via)),
        type_(std::move(type)),
        id_(std::move(id)),
        method_(std::move(method)),
        payload_(std::move(payload)),
        timeout_(timeout) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) {
    via_->ask({type_, id_, method_, payload_}, timeout_, [this, awaiting](const ReplyView& reply) {
      result_ = std::make_unique<Result<R>>(decode_reply<R>(reply));
      awaiting.resume();
    });
  }
  Result<R> await_resume() { return std::move(*result_); }

 private:
  std::shared_ptr<Messenger> via_;
  std::string type_, id_, method_, payload_;
  milliseconds timeout_;
  std::unique_ptr<Result<R>> result_;
};

}  // namespace detail

// Address of one entity: type and id. Copyable and cheap to keep; naming an entity does not start
// it.
//
// Threads: safe from any. Lifetime: may outlive its node or client; calls then fail with `stopped`.
class EntityRef {
 public:
  EntityRef(std::shared_ptr<Messenger> via, std::string type, std::string id)
      : via_(std::move(via)), type_(std::move(type)), id_(std::move(id)) {}

  [[nodiscard]] const std::string& type() const { return type_; }
  [[nodiscard]] const std::string& id() const { return id_; }

  // Sends without waiting for an answer; order is kept per calling thread.
  // Errors: as Messenger::tell.
  template <class M>
  Status tell(std::string_view method, const M& message) const {
    return via_->tell({type_, id_, method, pack(message)});
  }
  Status tell(std::string_view method) const {
    return via_->tell({type_, id_, method, pack_nothing()});
  }

  // Sends and waits for the answer. Not inside a handler or callback (would_deadlock).
  // Errors: every ask ends in a value or one of them; `error_info(code).may_have_happened` says
  // whether the entity may have handled the message.
  template <class R, class M>
  Result<R> ask(std::string_view method, const M& message,
                milliseconds timeout = kDefaultAskTimeout) const {
    Result<std::string> reply = via_->ask_and_wait({type_, id_, method, pack(message)}, timeout);
    if (!reply) return reply.error();
    return detail::decode_reply<R>(ReplyView{Errc::ok, {}, *reply});
  }

  // Sends and calls `done(Result<R>)` exactly once, on a thread of the library. A callback may send
  // the next message; it must not block.
  template <class R, class M, class Done>
  void ask(std::string_view method, const M& message, milliseconds timeout, Done done) const {
    via_->ask({type_, id_, method, pack(message)}, timeout,
              [done = std::move(done)](const ReplyView& reply) mutable {
                done(detail::decode_reply<R>(reply));
              });
  }

  // `co_await ref.ask_async<R>("get", Get{})`: the coroutine goes on on a thread of the library.
  template <class R, class M>
  detail::AskAwaiter<R> ask_async(std::string_view method, const M& message,
                                  milliseconds timeout = kDefaultAskTimeout) const {
    return {via_, type_, id_, std::string(method), std::string(pack(message)), timeout};
  }

  // The untyped calls underneath.
  [[nodiscard]] const std::shared_ptr<Messenger>& messenger() const { return via_; }

 private:
  std::shared_ptr<Messenger> via_;
  std::string type_;
  std::string id_;
};

}  // namespace shardbus
