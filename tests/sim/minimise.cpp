#include "sim/minimise.hpp"

#include <algorithm>
#include <vector>

namespace shardbus::sim {
namespace {

class Minimiser {
 public:
  Minimiser(const ScenarioOptions& start, const std::function<void(const std::string&)>& told)
      : told_(told) {
    best_.options = start;
    best_.result = run_scenario(start);
    best_.runs = 1;
  }

  Minimised run() {
    if (!best_.result.broken) return best_;
    drop_faults();
    calm();
    fewer_entities();
    fewer_machines();
    drop_faults();
    return best_;
  }

 private:
  // Keeps the smaller form if it breaks too.
  bool attempt(const ScenarioOptions& smaller) {
    ++best_.runs;
    ScenarioResult result = run_scenario(smaller);
    if (!result.broken) return false;
    best_.options = smaller;
    best_.result = std::move(result);
    told_(std::to_string(faults_left().size()) + " faults, " +
          std::to_string(best_.result.machines) + " nodes, " + std::to_string(best_.result.events) +
          " events");
    return true;
  }

  [[nodiscard]] std::vector<int> faults_left() const {
    std::vector<int> left;
    for (const PlannedFault& fault : best_.result.plan) {
      if (!best_.options.without.contains(fault.index)) left.push_back(fault.index);
    }
    return left;
  }

  // Halves first, then ever smaller blocks, then one by one until none can go.
  void drop_faults() {
    for (std::size_t block = std::max<std::size_t>(faults_left().size() / 2, 1);;) {
      const bool dropped = drop_blocks(block);
      if (block == 1 && !dropped) return;
      if (block > 1) block = block / 2;
    }
  }

  bool drop_blocks(std::size_t block) {
    bool dropped = false;
    std::vector<int> left = faults_left();
    // The last ones first: what comes after the failure goes at once.
    for (std::size_t end = left.size(); end > 0;) {
      const std::size_t begin = end > block ? end - block : 0;
      ScenarioOptions smaller = best_.options;
      for (std::size_t i = begin; i < end; ++i) smaller.without.insert(left[i]);
      dropped = attempt(smaller) || dropped;
      end = begin;
    }
    return dropped;
  }

  void calm() {
    ScenarioOptions smaller = best_.options;
    smaller.calm = true;
    attempt(smaller);
  }

  void fewer_entities() {
    for (const std::uint32_t entities : {1U, 2U, 4U, 8U}) {
      ScenarioOptions smaller = best_.options;
      smaller.entities = entities;
      if (attempt(smaller)) return;
    }
  }

  void fewer_machines() {
    for (int machines = 2; machines < best_.result.machines; ++machines) {
      ScenarioOptions smaller = best_.options;
      smaller.machines = machines;
      if (attempt(smaller)) return;
    }
  }

  const std::function<void(const std::string&)>& told_;
  Minimised best_;
};

}  // namespace

Minimised minimise(const ScenarioOptions& start,
                   const std::function<void(const std::string& line)>& told) {
  return Minimiser(start, told).run();
}

}  // namespace shardbus::sim
