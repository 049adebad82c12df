// The clusters that benchmarks start for themselves: nodes in this process, or shardbusd processes.
#pragma once

#include <cstdint>
#include <memory>
#include <shardbus/client.hpp>
#include <shardbus/node.hpp>
#include <string>
#include <vector>

#include "common/process.hpp"

namespace shardbusctl::bench {

struct ClusterOptions {
  std::uint32_t nodes = 3;
  std::uint32_t workers = 0;
  std::uint32_t senders = 3;  // that stamp asks; for the entity's check of order
  std::uint32_t credit = 0;   // envelopes that one sender may have in flight
  bool smart = true;
};

// A running cluster and the ways into it. All entities of type() answer a Stamp by itself.
class Cluster {
 public:
  virtual ~Cluster() = default;
  // One per sender.
  [[nodiscard]] virtual std::vector<std::shared_ptr<shardbus::Messenger>> ways_in() const = 0;
  [[nodiscard]] virtual std::string type() const = 0;
  // Of all its processes and this one.
  [[nodiscard]] virtual std::chrono::nanoseconds cpu_time() const = 0;
  [[nodiscard]] virtual std::uint64_t resident_bytes() const = 0;
  virtual void stop() = 0;
};

// Both wait until all nodes are up and all shards have an owner. Errors end the command.
std::unique_ptr<Cluster> start_in_process(const ClusterOptions& options);
std::unique_ptr<Cluster> start_processes(const ClusterOptions& options);

}  // namespace shardbusctl::bench
