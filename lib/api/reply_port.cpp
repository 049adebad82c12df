#include "shardbus/reply_port.hpp"

namespace shardbus::detail {

PortState::~PortState() {
  if (!settled_) (void)answer({Errc::no_reply, {}, {}});
}

Status PortState::answer(const ReplyView& reply) {
  if (settled_) return Status(Errc::invalid_argument, "the port has been answered or passed on");
  settled_ = true;
  const std::shared_ptr<Messenger> via = via_.lock();
  if (via == nullptr) return Status(Errc::stopped);
  return via->answer(address_, reply);
}

std::weak_ptr<Messenger>& current_messenger() {
  thread_local std::weak_ptr<Messenger> messenger;
  return messenger;
}

}  // namespace shardbus::detail
