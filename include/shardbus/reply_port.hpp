// `ReplyPort<T>`: the right to answer one ask, now or later, here or on another node.
#pragma once

#include <memory>
#include <msgpack.hpp>
#include <string>
#include <utility>

#include "shardbus/codec.hpp"
#include "shardbus/message.hpp"

namespace shardbus {

namespace detail {

// Shared by the copies of one port. The last copy that goes unanswered and was not packed into a
// message answers `no_reply`, so that no ask is left to its timeout.
class SHARDBUS_EXPORT PortState {
 public:
  PortState(std::weak_ptr<Messenger> via, ReplyAddress address)
      : via_(std::move(via)), address_(address) {}
  ~PortState();
  PortState(const PortState&) = delete;
  PortState& operator=(const PortState&) = delete;

  Status answer(const ReplyView& reply);
  ReplyAddress pass_on() {
    settled_ = true;
    return address_;
  }

 private:
  std::weak_ptr<Messenger> via_;
  ReplyAddress address_;
  bool settled_ = false;
};

// The messenger of the handler that runs on this thread; ports that it unpacks answer through it.
SHARDBUS_EXPORT std::weak_ptr<Messenger>& current_messenger();

}  // namespace detail

// A port whose answer type is not named yet; converts to any ReplyPort<T>.
class AnyReplyPort {
 public:
  AnyReplyPort() = default;
  explicit AnyReplyPort(std::shared_ptr<detail::PortState> state) : state_(std::move(state)) {}
  AnyReplyPort(std::weak_ptr<Messenger> via, ReplyAddress address)
      : state_(address.valid() ? std::make_shared<detail::PortState>(std::move(via), address)
                               : nullptr) {}

  // False for a message that was told, not asked: answers go nowhere.
  [[nodiscard]] bool valid() const { return state_ != nullptr; }
  Status fail(Errc code, std::string_view text) const {
    return state_ == nullptr ? Status() : state_->answer({code, text, {}});
  }
  [[nodiscard]] const std::shared_ptr<detail::PortState>& state() const { return state_; }

 protected:
  std::shared_ptr<detail::PortState> state_;
};

// The right to answer one ask with a T. Copyable; the first answer counts. May be a field of a
// message (MSGPACK_DEFINE_MAP): whoever receives it answers the first asker directly.
//
// Threads: one at a time per port.
template <class T>
class ReplyPort : public AnyReplyPort {
 public:
  ReplyPort() = default;
  ReplyPort(const AnyReplyPort& any) : AnyReplyPort(any) {}

  Status answer(const T& value) const {
    return state_ == nullptr ? Status() : state_->answer({Errc::ok, {}, pack(value)});
  }

  template <class Packer>
  void msgpack_pack(Packer& packer) const {
    const ReplyAddress address = state_ == nullptr ? ReplyAddress{} : state_->pass_on();
    packer.pack_array(2);
    packer.pack(address.node);
    packer.pack(address.slot);
  }
  void msgpack_unpack(const msgpack::object& object) {
    std::pair<std::uint64_t, std::uint64_t> pair;
    object.convert(pair);
    *this = AnyReplyPort(detail::current_messenger(), ReplyAddress{pair.first, pair.second});
  }
};

}  // namespace shardbus
