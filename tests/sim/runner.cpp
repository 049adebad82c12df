#include "sim/runner.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

namespace shardbus::sim {
namespace {

// What is kept of one seed.
struct Line {
  bool ran = false;
  bool twice = false;
  bool differs = false;
  ScenarioResult result;
};

void add(RunReport& report, const Line& line) {
  const ScenarioResult& result = line.result;
  ++report.runs;
  report.twice += line.twice ? 1 : 0;
  report.events += result.events;
  report.faults += result.faults;
  report.messages += result.messages;
  report.handled += result.handled;
  report.answered += result.answered;
  report.overlaps += result.overlaps;
  report.longest_overlap = std::max(report.longest_overlap, result.longest_overlap);
  report.slowest_settling = std::max(report.slowest_settling, result.settled_after);
  report.marks.add(result.marks);
}

class Runner {
 public:
  Runner(const RunOptions& options, const Progress& progress)
      : options_(options), progress_(progress), lines_(options.seeds) {}

  RunReport run() {
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < options_.jobs; ++i) threads.emplace_back([this] { work(); });
      work();
    }
    RunReport report;
    for (std::uint64_t i = 0; i < lines_.size() && lines_[i].ran; ++i) {
      add(report, lines_[i]);
      if (!lines_[i].result.broken) continue;
      report.broken_seed = options_.first + i;
      report.broken = *lines_[i].result.broken;
      report.differs = lines_[i].differs;
      break;
    }
    return report;
  }

 private:
  // Seeds are taken in order, so all below a broken one are run to their end.
  std::optional<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    if (broken_ || next_ == lines_.size()) return std::nullopt;
    return next_++;
  }

  void work() {
    while (const auto index = take()) {
      ScenarioOptions scenario = options_.scenario;
      scenario.seed = options_.first + *index;
      const bool twice = options_.twice_every != 0 && scenario.seed % options_.twice_every == 0;
      auto [result, differs] = run_seed(scenario, twice);
      result.plan.clear();
      const std::lock_guard lock(mutex_);
      broken_ = broken_ || result.broken.has_value();
      ++runs_;
      events_ += result.events;
      lines_[*index] = {true, twice, differs, std::move(result)};
      if (progress_) progress_(runs_, events_);
    }
  }

  const RunOptions& options_;
  const Progress& progress_;
  std::mutex mutex_;
  std::vector<Line> lines_;
  std::uint64_t next_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t events_ = 0;
  bool broken_ = false;
};

}  // namespace

SeedResult run_seed(ScenarioOptions options, bool twice) {
  options.hash_trace = options.hash_trace || twice;
  ScenarioResult result = run_scenario(options);
  if (result.broken || !twice) return {std::move(result), false};
  options.trace = {};
  const ScenarioResult again = run_scenario(options);
  const bool same = again.trace_hash == result.trace_hash && again.events == result.events;
  if (!same) {
    result.broken = "two runs differ: " + std::to_string(result.events) + " events with hash " +
                    std::to_string(result.trace_hash) + ", then " + std::to_string(again.events) +
                    " with " + std::to_string(again.trace_hash);
  }
  return {std::move(result), !same};
}

RunReport run_seeds(const RunOptions& options, const Progress& progress) {
  return Runner(options, progress).run();
}

std::string marks_text(const Marks& marks) {
  std::size_t hit = 0;
  std::string never;
  for (std::size_t i = 0; i < kMarks; ++i) {
    if (marks.has(static_cast<Mark>(i))) {
      ++hit;
    } else {
      never += (never.empty() ? "" : ", ") + std::string(kMarkNames[i]);
    }
  }
  return "marks: " + std::to_string(hit) + " of " + std::to_string(kMarks) + " hit (" +
         std::to_string(hit * 100 / kMarks) + "%)" + (never.empty() ? "" : ", never: " + never);
}

}  // namespace shardbus::sim
