// `Node`: one member of a cluster, inside your process. The header to start with.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "shardbus/entity.hpp"
#include "shardbus/export.hpp"
#include "shardbus/options.hpp"

namespace shardbus {

// A running node. Move-only; its destructor stops it at once (no hand-over of shards: call
// `leave()` first for that).
//
// Threads: all calls are safe from any; only those that wait (`wait_ready`, `leave`, `stop`, the
// destructor) not from one that is inside a callback or handler: it would wait for itself. A node
// has a thread that polls, a control thread, and ZeroMQ's; all block signals. Make it after any
// fork().
class SHARDBUS_EXPORT Node {
 public:
  // Binds the addresses, starts the threads, and begins to join; returns without waiting for that.
  // Errors: bad_address, address_in_use, invalid_argument (names the option), exhausted.
  static Result<Node> start(NodeOptions options);
  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;
  ~Node();

  // Offers to run entities of a type. Messages for it wait until the cluster has given out its
  // shards. Errors: invalid_argument (hosted already, or names the value), exhausted (more than 256
  // types, or 73,728 shards in all), config_mismatch (the cluster knows another shard count or
  // placement), stopped. Without the type's role, or with `proxy`, the node runs none of it.
  Status host(EntityType type);
  // The same for a C++ type: `node.host<Counter>("counter", on<Add>("add"), on<Get>("get"))`.
  template <class T, class... M>
  Status host(std::string name, Method<M>... methods) {
    return host(entity_type<T>(std::move(name), TypeOptions{}, std::move(methods)...));
  }
  template <class T, class... M>
  Status host(std::string name, TypeOptions options, Method<M>... methods) {
    return host(entity_type<T>(std::move(name), std::move(options), std::move(methods)...));
  }

  // Address of an entity anywhere in the cluster.
  [[nodiscard]] EntityRef entity(std::string type, std::string id) const;
  // The untyped calls.
  [[nodiscard]] const std::shared_ptr<Messenger>& messenger() const;

  // Waits until the node is an up member of a deciding cluster with at least `members` up members,
  // every shard of every hosted type has an owner, and no move is open. Errors: timeout, stopped,
  // would_deadlock.
  Status wait_ready(milliseconds timeout, std::uint32_t members = 1) const;
  // Real addresses, after port 0 was resolved.
  [[nodiscard]] std::string listen_address() const;
  [[nodiscard]] std::string name() const;
  // Hands all shards to other nodes, leaves the cluster, and stops. Errors: timeout (stopped all
  // the same; shards that did not get away are re-homed by the others), would_deadlock.
  Status leave(milliseconds deadline);
  // Stops within a second without handing over. Asks end as in Client::stop. Idempotent. Inside a
  // callback or handler it throws std::logic_error, and the destructor aborts with a message.
  void stop();

  class Impl;

 private:
  explicit Node(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace shardbus
