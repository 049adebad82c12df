#include "ctl/bench/floor.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "common/process.hpp"
#include "ctl/session.hpp"

namespace shardbusctl::bench {
namespace {

// An ask takes a tenth of a millisecond where they go one by one.
std::chrono::steady_clock::time_point deadline_for(std::uint64_t asks) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(30) +
         std::chrono::milliseconds(asks);
}

}  // namespace

Figures measure_floor(std::uint32_t servers, std::uint64_t asks, std::uint64_t window,
                      std::size_t payload) {
  const std::string program = shardbus_tools::beside_this_program("shardbus-floor");
  if (::access(program.c_str(), X_OK) != 0) {
    fail(Exit::failed, program + " cannot be run: " + std::strerror(errno) +
                           "; it is built with the benchmarks of the source tree, not installed");
  }
  shardbus_tools::Process process({program, "--json", "--servers", std::to_string(servers),
                                   "--asks", std::to_string(asks), "--window",
                                   std::to_string(window), "--payload", std::to_string(payload)});
  const auto line = process.read_line(deadline_for(asks));
  if (!line) fail(Exit::failed, program + " printed nothing");
  const Json json = Json::parse(*line);
  return {json.at("asks_per_s").get<double>(), json.at("cpu_us_per_ask").get<double>(),
          json.at("p50_us").get<double>(), json.at("p99_us").get<double>()};
}

}  // namespace shardbusctl::bench
