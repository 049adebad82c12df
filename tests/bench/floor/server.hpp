// A server of the floor: a ROUTER that sends back what it gets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/floor/protocol.hpp"
#include "common/process.hpp"

namespace shardbus_floor {

// What the process of a server does, until it is killed: prints its address, then serves.
[[noreturn]] void serve(const Options& options);

// The processes of all servers; they end with this object.
class Servers {
 public:
  explicit Servers(const Options& options);
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] const std::vector<shardbus_tools::Process>& processes() const { return processes_; }

 private:
  std::vector<shardbus_tools::Process> processes_;
  std::vector<std::string> addresses_;
};

}  // namespace shardbus_floor
