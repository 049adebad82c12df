// One node: context, sockets, threads and planes put together, and its life from start to stop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "observe/log.hpp"
#include "runtime/node/control_loop.hpp"
#include "runtime/node/link.hpp"
#include "runtime/node/pool.hpp"
#include "runtime/node/readiness.hpp"
#include "shardbus/entity.hpp"
#include "shardbus/options.hpp"
#include "transport/zmq.hpp"

namespace shardbus::runtime {

// Also the Messenger of everything that runs on the node. Make it with `start`.
class NodeCore final : public NodeMessenger, public std::enable_shared_from_this<NodeCore> {
 public:
  // Errors: as Node::start.
  static Result<std::shared_ptr<NodeCore>> start(NodeOptions options);
  explicit NodeCore(NodeOptions options);
  ~NodeCore() override;

  Status host(EntityType type);
  Status tell(const Outgoing& message) override;
  void ask(const Outgoing& message, milliseconds timeout, ReplyCallback done) override;
  Result<std::string> ask_and_wait(const Outgoing& message, milliseconds timeout) override;
  Status answer(const ReplyAddress& to, const ReplyView& reply) override;
  Status answer_by_right(const ReplyAddress& to, const ReplyView& reply) override;

  Status wait_ready(milliseconds timeout, std::uint32_t members) const;
  [[nodiscard]] const NodeInfo& info() const { return info_; }
  Status leave(milliseconds deadline);
  // Throws std::logic_error within a callback or handler.
  void stop();
  [[nodiscard]] bool stopped() const { return stopped_.load(); }
  // True within a callback or handler: `stop` would wait for it.
  [[nodiscard]] static bool inside_callback() {
    return transport::Reactor::inside_pass() || Pool::inside();
  }

 private:
  using Answering = void (DataPlane::*)(const ReplyAddress& to, const ReplyView& reply);
  Status answer_with(Answering how, const ReplyAddress& to, const ReplyView& reply);
  void halt();
  Status open();
  Status bind(std::string& front, std::string& peer, std::string& gossip,
              std::optional<transport::GossipSockets>& sockets);
  [[nodiscard]] NodeTraits traits() const;
  std::unique_ptr<DataPlane> make_plane(const NodeInfo& self);
  void part(Time until);
  bool wait_until(Time until, const std::function<bool(DataPlane&)>& holds);
  void renew(const NodeInfo& self);

  NodeOptions options_;
  NodeInfo info_;
  observe::Log log_;
  Readiness readiness_;
  transport::ZmqContext context_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<ControlLoop> control_;
  std::unique_ptr<Pool> pool_;
  std::mutex hosted_mutex_;
  std::vector<EntityType> hosted_;  // guarded by hosted_mutex_; for a new incarnation
  std::atomic<bool> stopped_{false};
};

}  // namespace shardbus::runtime
