// Finds a small form of a seed that breaks: fewer faults, nodes and entities, a calm network.
#pragma once

#include <functional>
#include <string>

#include "sim/scenario.hpp"

namespace shardbus::sim {

struct Minimised {
  ScenarioOptions options;  // of the smallest run found that still breaks
  ScenarioResult result;
  std::uint64_t runs = 0;
};

// `start` must break. Any way in which it breaks counts. `told` hears of each smaller form.
Minimised minimise(const ScenarioOptions& start,
                   const std::function<void(const std::string& line)>& told);

}  // namespace shardbus::sim
