// One seed: a random mix of faults on a random cluster, then healing, then everything must be well.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/marks.hpp"
#include "base/time.hpp"
#include "core/downing/policy.hpp"
#include "sim/faults.hpp"

namespace shardbus::sim {

struct ScenarioOptions {
  std::uint64_t seed = 1;
  int machines = 0;            // 0: 3 to 7, from the seed
  std::set<int> without;       // indices of planned faults that are left out
  std::uint32_t entities = 0;  // 0: 4 to 30, from the seed
  bool calm = false;           // a network that loses and delays nothing but by faults
  std::string break_name;      // empty, or one of breaks.hpp
  // Of static_quorum the size is a majority of the machines where it is 0.
  downing::Rules downing{};
  bool hash_trace = false;
  std::function<void(const std::string& line)> trace;
};

struct ScenarioResult {
  std::optional<std::string> broken;  // what broke, with the states of all nodes below it
  std::uint64_t events = 0;
  std::uint64_t faults = 0;        // that were begun
  std::vector<PlannedFault> plan;  // all that were drawn
  std::uint64_t messages = 0;      // sent by callers
  std::uint64_t handled = 0;
  std::uint64_t answered = 0;  // asks that got a reply
  std::uint64_t overlaps = 0;  // of owners, in runs with partitions
  Duration longest_overlap{};
  Duration settled_after{};  // from healing
  std::uint64_t trace_hash = 0;
  Marks marks;
  int machines = 0;
};

ScenarioResult run_scenario(const ScenarioOptions& options);

}  // namespace shardbus::sim
