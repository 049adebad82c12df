// What the control loop last knew, for other threads, and waiting until it is good enough.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/time.hpp"
#include "runtime/control/control_plane.hpp"
#include "shardbus/message.hpp"

namespace shardbus::runtime {

struct ClusterView {
  control::ControlStatus status;
  std::shared_ptr<const AllocationTable> table;  // never null
  std::vector<HostedType> hosts;                 // of this node
  std::string waits_for{};                       // while it is in no cluster: whom, and why
  Time founded_anew = kNever;                    // when this node founded its lost cluster anew
};

// Why the cluster is not ready from this node's point of view; empty if it is.
std::string why_not_ready(const ClusterView& view, std::uint32_t members);

class Readiness {
 public:
  void update(std::shared_ptr<const ClusterView> view);
  void close();
  // Waits until `why_not_ready` is empty and `unsettled()` too. Errors: timeout, stopped.
  Status wait(milliseconds timeout, std::uint32_t members,
              const std::function<std::string()>& unsettled) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::shared_ptr<const ClusterView> view_;  // guarded by mutex_
  bool closed_ = false;                      // guarded by mutex_
};

}  // namespace shardbus::runtime
