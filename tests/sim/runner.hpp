// Many seeds, on several threads: one seed is one thread's, and the result is the same with any
// number of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/scenario.hpp"

namespace shardbus::sim {

struct RunOptions {
  ScenarioOptions scenario;  // of each seed; its own seed is not used
  std::uint64_t first = 1;
  std::uint64_t seeds = 300;
  int jobs = 1;
  std::uint64_t twice_every = 20;  // seeds that this divides run twice; 0: none
};

struct RunReport {
  std::uint64_t runs = 0;
  std::uint64_t twice = 0;
  std::uint64_t events = 0;
  std::uint64_t faults = 0;
  std::uint64_t messages = 0;
  std::uint64_t handled = 0;
  std::uint64_t answered = 0;
  std::uint64_t overlaps = 0;
  Duration longest_overlap{};
  Duration slowest_settling{};
  Marks marks;
  // Of the lowest seed whose promises broke, or that did not give the same run twice. What stands
  // above is of the seeds up to it.
  std::optional<std::uint64_t> broken_seed;
  std::string broken;
  bool differs = false;  // it is the second run that broke it
};

using Progress = std::function<void(std::uint64_t runs, std::uint64_t events)>;

struct SeedResult {
  ScenarioResult result;
  bool differs = false;  // `result.broken` says how
};

// One seed, and a second time where `twice`.
SeedResult run_seed(ScenarioOptions options, bool twice);
// `progress` is called by any of the threads, one at a time.
RunReport run_seeds(const RunOptions& options, const Progress& progress);

std::string marks_text(const Marks& marks);

}  // namespace shardbus::sim
