// shardbusd processes that a benchmark starts for itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/process.hpp"

namespace shardbusctl::bench {

class Daemons {
 public:
  // Starts one after the other, each with `more` arguments, and waits until all agree on all.
  // Errors end the command.
  Daemons(std::uint32_t nodes, const std::vector<std::string>& more);

  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] std::vector<shardbus_tools::Process>& processes() { return processes_; }
  // Of all of them and this process.
  [[nodiscard]] std::chrono::nanoseconds cpu_time() const;
  [[nodiscard]] std::uint64_t resident_bytes() const;
  // All at once and without handing over: there is nothing that anybody wants to keep.
  void kill();

  static std::string name(std::size_t index) { return "n" + std::to_string(index); }

 private:
  void start_node(std::uint32_t index, const std::vector<std::string>& more);
  void wait_for_all();

  std::vector<shardbus_tools::Process> processes_;
  std::vector<std::string> addresses_;
};

}  // namespace shardbusctl::bench
