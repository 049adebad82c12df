// `Client`: calls entities without being a member of the cluster.
#pragma once

#include <memory>
#include <string>

#include "shardbus/entity_ref.hpp"
#include "shardbus/export.hpp"
#include "shardbus/options.hpp"

namespace shardbus {

// A session with a cluster. Reconnects by itself; an ask that was under way then ends in
// `unknown_outcome` at once.
//
// Threads: all calls are safe from any; only `stop()` and the destructor not from one that is
// inside a callback of the library, which they would wait for. Has one thread of its own and
// ZeroMQ's.
class SHARDBUS_EXPORT Client {
 public:
  // Connects to the first node that answers. Errors: unreachable (names the addresses and the
  // reason of each), cluster_mismatch, version_mismatch, bad_address.
  static Result<Client> connect(const ClientOptions& options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  [[nodiscard]] EntityRef entity(std::string type, std::string id) const;
  [[nodiscard]] const std::shared_ptr<Messenger>& messenger() const;
  // Asks end in `unknown_outcome` if they were sent, else in `stopped`. Idempotent. Inside a
  // callback it throws std::logic_error, and the destructor aborts the process with a message.
  void stop();

  class Impl;

 private:
  explicit Client(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace shardbus
