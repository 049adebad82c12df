// shardbus-sim: runs whole clusters on virtual time from seeds, replays one, or makes it smaller.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/model/text.hpp"
#include "sim/breaks.hpp"
#include "sim/growth.hpp"
#include "sim/minimise.hpp"
#include "sim/runner.hpp"

namespace {

using shardbus::sim::PlannedFault;
using shardbus::sim::RunOptions;
using shardbus::sim::RunReport;
using shardbus::sim::ScenarioOptions;

constexpr int kBroken = 1;
constexpr int kUsage = 2;

struct Options {
  RunOptions run;
  std::vector<int> without;
  bool trace = false;
  bool json = false;
  bool twice = false;
  bool minimise = false;
  std::string downing = "keep-majority";
  std::vector<int> growth;
  std::uint32_t shards = 4096;
};

class Stopwatch {
 public:
  [[nodiscard]] std::int64_t ms() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

const std::map<std::string, shardbus::downing::Rules>& policies() {
  using shardbus::DowningPolicy;
  static const std::map<std::string, shardbus::downing::Rules> kPolicies = {
      {"keep-majority", {}},
      {"static-quorum", {DowningPolicy::static_quorum}},
      {"keep-oldest", {DowningPolicy::keep_oldest}},
      {"keep-oldest-alone", {DowningPolicy::keep_oldest, 0, false}},
      {"down-all", {DowningPolicy::down_all}}};
  return kPolicies;
}

std::string name_of(const shardbus::downing::Rules& rules) {
  for (const auto& [name, known] : policies()) {
    if (known == rules) return name;
  }
  return "keep-majority";
}

std::string replay_command(const ScenarioOptions& options, std::uint64_t seed, bool twice) {
  std::string command = "shardbus-sim --seeds 1 --seed " + std::to_string(seed);
  if (options.machines != 0) command += " --nodes " + std::to_string(options.machines);
  if (options.entities != 0) command += " --entities " + std::to_string(options.entities);
  if (options.calm) command += " --calm";
  if (!options.break_name.empty()) command += " --break " + options.break_name;
  if (const std::string policy = name_of(options.downing); policy != "keep-majority") {
    command += " --downing " + policy;
  }
  std::string without;
  for (const int index : options.without) {
    without += (without.empty() ? "" : ",") + std::to_string(index);
  }
  if (!without.empty()) command += " --without " + without;
  return command + (twice ? " --twice" : " --trace");
}

void report_json(const Options& options, const RunReport& report, std::int64_t ms) {
  nlohmann::json never = nlohmann::json::array();
  for (std::size_t i = 0; i < shardbus::kMarks; ++i) {
    if (!report.marks.has(static_cast<shardbus::Mark>(i))) never.push_back(shardbus::kMarkNames[i]);
  }
  nlohmann::json out{{"seeds", report.runs},
                     {"run_twice", report.twice},
                     {"events", report.events},
                     {"faults", report.faults},
                     {"messages", report.messages},
                     {"handled", report.handled},
                     {"answered", report.answered},
                     {"overlaps", report.overlaps},
                     {"longest_overlap_ms", report.longest_overlap.count() / 1'000'000},
                     {"slowest_settling_ms", report.slowest_settling.count() / 1'000'000},
                     {"marks_total", shardbus::kMarks},
                     {"marks_hit", shardbus::kMarks - never.size()},
                     {"marks_never", never},
                     {"jobs", options.run.jobs},
                     {"wall_ms", ms},
                     {"broken", report.broken_seed.has_value()}};
  if (report.broken_seed) {
    out["seed"] = *report.broken_seed;
    out["what"] = report.broken;
    out["replay"] = replay_command(options.run.scenario, *report.broken_seed, report.differs);
  }
  std::cout << out.dump(2) << '\n';
}

void report_text(const Options& options, const RunReport& report, std::int64_t ms) {
  if (report.broken_seed) {
    std::cout << "seed " << *report.broken_seed << " broke: " << report.broken << "\nreplay: "
              << replay_command(options.run.scenario, *report.broken_seed, report.differs) << '\n';
    return;
  }
  const auto per_second = static_cast<double>(report.runs) * 1000 / static_cast<double>(ms + 1);
  std::cout << report.runs << " seeds held (" << report.twice << " run twice), " << report.events
            << " events, " << report.faults << " faults, " << report.messages << " messages ("
            << report.handled << " handled), " << report.overlaps
            << " overlaps (partitions; longest " << shardbus::to_text(report.longest_overlap)
            << "), slowest settling " << shardbus::to_text(report.slowest_settling) << ", " << ms
            << " ms (" << static_cast<int>(per_second) << " seeds/s)\n"
            << shardbus::sim::marks_text(report.marks) << '\n';
}

int run(Options options) {
  const Stopwatch watch;
  std::int64_t told = 0;
  const auto progress = [&](std::uint64_t runs, std::uint64_t events) {
    if (watch.ms() - told < 2000) return;
    told = watch.ms();
    std::cerr << runs << " of " << options.run.seeds << " seeds, " << events << " events\n";
  };
  if (options.trace) {
    options.run.jobs = 1;
    options.run.scenario.trace = [](const std::string& line) { std::cout << line << '\n'; };
  }
  if (options.twice) options.run.twice_every = 1;
  const RunReport report = shardbus::sim::run_seeds(options.run, progress);
  if (options.json) {
    report_json(options, report, watch.ms());
  } else {
    report_text(options, report, watch.ms());
  }
  return report.broken_seed ? kBroken : 0;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

int minimise(const Options& options) {
  ScenarioOptions scenario = options.run.scenario;
  scenario.seed = options.run.first;
  const auto found = shardbus::sim::minimise(
      scenario, [](const std::string& line) { std::cerr << "still breaks: " << line << '\n'; });
  if (!found.result.broken) {
    std::cout << "seed " << scenario.seed << " holds; there is nothing to make smaller\n";
    return 0;
  }
  std::cout << "after " << found.runs << " runs, seed " << scenario.seed
            << " still breaks: " << first_line(*found.result.broken) << "\nwith these faults:\n";
  for (const PlannedFault& fault : found.result.plan) {
    if (found.options.without.contains(fault.index)) continue;
    std::cout << "  " << shardbus::sim::describe(fault) << '\n';
  }
  std::cout << "replay: " << replay_command(found.options, scenario.seed, false) << '\n';
  return kBroken;
}

double seconds(shardbus::Duration duration) {
  return duration == shardbus::sim::kForever ? -1 : std::chrono::duration<double>(duration).count();
}

nlohmann::json growth_json(const shardbus::sim::GrowthResult& result, std::int64_t ms) {
  return {{"nodes", result.nodes},
          {"shards", result.shards},
          {"formed_s", seconds(result.formed)},
          {"digest_bytes", result.digest_bytes},
          {"digests_per_s", result.digests_per_second},
          {"gossip_sent_bytes_per_s", result.sent_per_second},
          {"gossip_received_bytes_per_s", result.received_per_second},
          {"join_s", seconds(result.joined)},
          {"join_settled_s", seconds(result.joined_settled)},
          {"join_received_bytes", result.joined_bytes},
          {"crash_s", seconds(result.crashed)},
          {"crash_settled_s", seconds(result.crashed_settled)},
          {"vanish_s", seconds(result.vanished)},
          {"vanish_settled_s", seconds(result.vanished_settled)},
          {"decider_crash_s", seconds(result.decider_crashed)},
          {"decider_crash_settled_s", seconds(result.decider_settled)},
          {"control_bytes", result.control_bytes},
          {"events", result.events},
          {"wall_ms", ms}};
}

// Seconds are virtual; -1: not within two minutes of them.
int grow(const Options& options) {
  nlohmann::json all = nlohmann::json::array();
  for (const int nodes : options.growth) {
    const Stopwatch watch;
    const auto told = [&](const std::string& line) {
      std::cerr << nodes << " nodes: " << line << ", " << watch.ms() << " ms\n";
    };
    const auto result = shardbus::sim::measure_growth({nodes, options.shards}, told);
    all.push_back(growth_json(result, watch.ms()));
    if (options.json) continue;
    std::cout << nodes << " nodes, " << result.shards << " shards: formed in "
              << seconds(result.formed) << " s; idle: " << result.digest_bytes
              << " bytes a digest, " << static_cast<std::uint64_t>(result.sent_per_second)
              << " bytes/s sent and " << static_cast<std::uint64_t>(result.received_per_second)
              << " received per node; join " << seconds(result.joined) << " s (balanced "
              << seconds(result.joined_settled) << "), crash " << seconds(result.crashed)
              << " s (owned " << seconds(result.crashed_settled) << "), machine gone "
              << seconds(result.vanished) << " s (owned " << seconds(result.vanished_settled)
              << "), decider's crash " << seconds(result.decider_crashed) << " s (owned "
              << seconds(result.decider_settled) << "); " << result.events << " events, "
              << watch.ms() << " ms\n";
  }
  if (options.json) std::cout << all.dump(2) << '\n';
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  RunOptions& run = options.run;
  app.add_option("--seeds", run.seeds, "how many seeds to run")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 53))
      ->capture_default_str();
  app.add_option("--seed", run.first, "the first seed")->capture_default_str();
  app.add_option("--jobs", run.jobs, "threads; each runs whole seeds; default: one per core")
      ->check(CLI::Range(1, 256));
  app.add_option("--nodes", run.scenario.machines,
                 "nodes per cluster; default: 3 to 7, from the seed")
      ->check(CLI::Range(2, 20));
  app.add_option("--entities", run.scenario.entities,
                 "entities that are called; default: 4 to 30, from the seed")
      ->check(CLI::Range(1, 1000));
  std::vector<std::string> downing;
  for (const auto& [name, rules] : policies()) downing.push_back(name);
  app.add_option(
         "--downing", options.downing,
         "policy of all nodes; keep-oldest-alone has down_if_alone off, static-quorum needs "
         "a majority of the nodes")
      ->check(CLI::IsMember(downing))
      ->capture_default_str();
  app.add_flag("--calm", run.scenario.calm, "a network that does nothing but what faults do to it");
  app.add_option("--without", options.without, "numbers of faults to leave out")->delimiter(',');
  app.add_flag("--minimise", options.minimise,
               "make the seed of --seed smaller for as long as it breaks, and print what is left");
  app.add_option("--growth", options.growth,
                 "instead of seeds: what clusters of so many nodes say and how fast they agree")
      ->delimiter(',')
      ->check(CLI::Range(2, 1000));
  app.add_option("--shards", options.shards, "of --growth")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_flag("--twice", options.twice, "run every seed twice and compare; default: one of 20");
  app.add_flag("--trace", options.trace, "print every input and output");
  app.add_flag("--json", options.json, "print the result as JSON");
  std::string breaks = "break one rule on purpose, to see that it is noticed:";
  std::vector<std::string> names;
  for (const shardbus::sim::Break& known : shardbus::sim::all_breaks()) {
    names.emplace_back(known.name);
    breaks += "\n" + std::string(known.name) + ": " + known.what;
  }
  app.add_option("--break", run.scenario.break_name, breaks)->check(CLI::IsMember(names));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Runs whole shardbus clusters on virtual time: control planes, data planes and wire codec "
      "as\n"
      "they are, entities that are told and asked, a lossy network, crashes, pauses, partitions -\n"
      "all from a seed. Stops at the first seed whose promises break and prints the command that\n"
      "replays it."};
  Options options;
  options.run.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  add_options(app, options);
  app.footer("Exit code: 0 all seeds held, 1 a promise broke, 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0 || !options.json) return app.exit(error) == 0 ? 0 : kUsage;
    const nlohmann::json told = {{"exit_code", kUsage}, {"text", error.what()}};
    std::cerr << nlohmann::json{{"error", told}}.dump() << '\n';
    return kUsage;
  }
  options.run.scenario.without = {options.without.begin(), options.without.end()};
  options.run.scenario.downing = policies().at(options.downing);
  if (!options.growth.empty()) return grow(options);
  return options.minimise ? minimise(options) : run(options);
}
