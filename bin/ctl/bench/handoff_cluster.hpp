// The cluster of `bench handoff`: nodes in this process that come and go, and whose entities keep a
// ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shardbus/node.hpp>
#include <string>
#include <vector>

#include "common/histogram.hpp"

namespace shardbusctl::bench {

inline constexpr const char* kLedgerType = "ledger";

// Pauses of entities during moves; written by handlers of all nodes.
struct Pauses {
  std::mutex mutex;
  shardbus_tools::Histogram ns;  // guarded by mutex
  std::uint64_t moved = 0;       // entities; guarded by mutex
};

class HandoffCluster {
 public:
  // Errors end the command.
  HandoffCluster(std::uint32_t nodes, std::uint32_t shards);

  // A node more, ready. It is the last one in nodes().
  void join();
  // The last one leaves in order.
  void leave();
  void stop();
  [[nodiscard]] const std::vector<shardbus::Node>& nodes() const { return nodes_; }
  [[nodiscard]] Pauses& pauses() { return *pauses_; }

 private:
  void start_node();

  std::uint32_t shards_;
  std::uint32_t started_ = 0;
  std::shared_ptr<Pauses> pauses_ = std::make_shared<Pauses>();
  std::vector<shardbus::Node> nodes_;
};

}  // namespace shardbusctl::bench
