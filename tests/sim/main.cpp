// shardbus-sim: runs whole clusters on virtual time from seeds, and replays one.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/model/text.hpp"
#include "sim/breaks.hpp"
#include "sim/scenario.hpp"

namespace {

constexpr int kBroken = 1;
constexpr int kUsage = 2;

struct Options {
  std::uint64_t seeds = 300;
  std::uint64_t first = 1;
  int machines = 0;
  bool trace = false;
  bool json = false;
  std::string break_name;
  std::string downing = "keep-majority";
};

struct Totals {
  std::uint64_t runs = 0;
  std::uint64_t events = 0;
  std::uint64_t faults = 0;
  std::uint64_t messages = 0;
  std::uint64_t handled = 0;
  std::uint64_t answered = 0;
  std::uint64_t overlaps = 0;
  shardbus::Duration longest_overlap{};
  shardbus::Duration slowest_settling{};

  void add(const shardbus::sim::ScenarioResult& result) {
    ++runs;
    events += result.events;
    faults += result.faults;
    messages += result.messages;
    handled += result.handled;
    answered += result.answered;
    overlaps += result.overlaps;
    longest_overlap = std::max(longest_overlap, result.longest_overlap);
    slowest_settling = std::max(slowest_settling, result.settled_after);
  }
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

std::string replay_command(const Options& options, std::uint64_t seed) {
  std::string command = "shardbus-sim --seeds 1 --seed " + std::to_string(seed);
  if (options.machines != 0) command += " --nodes " + std::to_string(options.machines);
  if (!options.break_name.empty()) command += " --break " + options.break_name;
  if (options.downing != "keep-majority") command += " --downing " + options.downing;
  return command + " --trace";
}

shardbus::sim::ScenarioResult run_one(const Options& options, std::uint64_t seed) {
  shardbus::sim::ScenarioOptions scenario;
  scenario.seed = seed;
  scenario.machines = options.machines;
  scenario.break_name = options.break_name;
  scenario.downing = policies().at(options.downing);
  if (options.trace) {
    scenario.trace = [](const std::string& line) { std::cout << line << '\n'; };
  }
  return shardbus::sim::run_scenario(scenario);
}

void report(const Options& options, const Totals& totals, std::int64_t ms, std::uint64_t seed,
            const std::string& broken) {
  if (options.json) {
    nlohmann::json out{{"seeds", totals.runs},
                       {"events", totals.events},
                       {"faults", totals.faults},
                       {"messages", totals.messages},
                       {"handled", totals.handled},
                       {"answered", totals.answered},
                       {"overlaps", totals.overlaps},
                       {"longest_overlap_ms", totals.longest_overlap.count() / 1'000'000},
                       {"slowest_settling_ms", totals.slowest_settling.count() / 1'000'000},
                       {"wall_ms", ms},
                       {"broken", !broken.empty()}};
    if (!broken.empty()) {
      out["seed"] = seed;
      out["what"] = broken;
      out["replay"] = replay_command(options, seed);
    }
    std::cout << out.dump(2) << '\n';
    return;
  }
  if (!broken.empty()) {
    std::cout << "seed " << seed << " broke: " << broken
              << "\nreplay: " << replay_command(options, seed) << '\n';
    return;
  }
  std::cout << totals.runs << " seeds held, " << totals.events << " events, " << totals.faults
            << " faults, " << totals.messages << " messages (" << totals.handled << " handled), "
            << totals.overlaps << " overlaps (partitions; longest "
            << shardbus::to_text(totals.longest_overlap) << "), slowest settling "
            << shardbus::to_text(totals.slowest_settling) << ", " << ms << " ms\n";
}

int run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  auto told = begin;
  const auto ms_since = [](Clock::time_point then) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then).count();
  };
  Totals totals;
  for (std::uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    const auto result = run_one(options, seed);
    totals.add(result);
    if (result.broken) {
      report(options, totals, ms_since(begin), seed, *result.broken);
      return kBroken;
    }
    if (ms_since(told) < 2000) continue;
    told = Clock::now();
    std::cerr << totals.runs << " of " << options.seeds << " seeds, " << totals.events
              << " events\n";
  }
  report(options, totals, ms_since(begin), 0, {});
  return 0;
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
  app.add_option("--seeds", options.seeds, "how many seeds to run")->capture_default_str();
  app.add_option("--seed", options.first, "the first seed")->capture_default_str();
  app.add_option("--nodes", options.machines, "nodes per cluster; default: 3 to 7, from the seed")
      ->check(CLI::Range(2, 20));
  app.add_flag("--trace", options.trace, "print every input and output");
  app.add_flag("--json", options.json, "print the result as JSON");
  std::vector<std::string> downing;
  for (const auto& [name, rules] : policies()) downing.push_back(name);
  app.add_option(
         "--downing", options.downing,
         "policy of all nodes; keep-oldest-alone has down_if_alone off, static-quorum needs "
         "a majority of the nodes")
      ->check(CLI::IsMember(downing));
  std::string breaks = "break one rule on purpose, to see that it is noticed:";
  std::vector<std::string> names;
  for (const shardbus::sim::Break& known : shardbus::sim::all_breaks()) {
    names.emplace_back(known.name);
    breaks += "\n" + std::string(known.name) + ": " + known.what;
  }
  app.add_option("--break", options.break_name, breaks)->check(CLI::IsMember(names));
  app.footer("Exit code: 0 all seeds held, 1 a promise broke, 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return run(options);
}
