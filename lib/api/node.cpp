#include "shardbus/node.hpp"

#include "api/inside.hpp"
#include "runtime/node/node_core.hpp"

namespace shardbus {

class Node::Impl {
 public:
  explicit Impl(std::shared_ptr<runtime::NodeCore> node) : core(std::move(node)), messenger(core) {}
  ~Impl() {
    if (!core->stopped() && runtime::NodeCore::inside_callback()) die_inside_callback("a Node");
    core->stop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::shared_ptr<runtime::NodeCore> core;
  std::shared_ptr<Messenger> messenger;
};

Result<Node> Node::start(NodeOptions options) {
  auto core = runtime::NodeCore::start(std::move(options));
  if (!core) return core.error();
  return Node(std::make_shared<Impl>(std::move(*core)));
}

Node::Node(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

Status Node::host(EntityType type) {
  return impl_->core->host(std::move(type));
}

EntityRef Node::entity(std::string type, std::string id) const {
  return {impl_->messenger, std::move(type), std::move(id)};
}

const std::shared_ptr<Messenger>& Node::messenger() const {
  return impl_->messenger;
}

Status Node::wait_ready(milliseconds timeout, std::uint32_t members) const {
  return impl_->core->wait_ready(timeout, members);
}

std::string Node::listen_address() const {
  return impl_->core->info().front;
}
std::string Node::name() const {
  return impl_->core->info().name;
}
Status Node::leave(milliseconds deadline) {
  return impl_->core->leave(deadline);
}
void Node::stop() {
  impl_->core->stop();
}

}  // namespace shardbus
