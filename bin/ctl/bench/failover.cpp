// `shardbusctl bench failover`: one of the nodes is killed, or stopped, in mid-load; how long until
// every entity answers again, and how did the asks end that were under way?
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>

#include "ctl/bench/bench.hpp"
#include "ctl/bench/daemons.hpp"
#include "ctl/render.hpp"
#include "demo/readings.hpp"
#include "demo/workload.hpp"

namespace shardbusctl::bench {
namespace {

using shardbus_demo::Entity;
using shardbus_demo::Kind;
using shardbus_demo::Report;
using shardbus_demo::Workload;
using std::chrono::steady_clock;

struct Arguments {
  std::uint32_t runs = 20;
  std::uint32_t nodes = 3;
  std::uint32_t entities = 1000;
  std::uint32_t window = 32;
  std::string signal = "kill";
};

const Kind kCounter{"counter", "add", "get"};

struct Run {
  double all_answered_ms = 0, first_ms = 0, stall_ms = 0, slowest_ask_ms = 0;
  std::string first_wrong{};
  std::uint64_t unknown = 0, other_errors = 0, wrong = 0, unanswered = 0, asks = 0;
};

double ms(steady_clock::duration duration) {
  const double exact = std::chrono::duration<double, std::milli>(duration).count();
  return std::round(exact * 1000) / 1000;
}

std::vector<shardbus::Client> connect(const std::vector<std::string>& addresses) {
  std::vector<shardbus::Client> clients;
  for (const std::string& address : addresses) {
    shardbus::ClientOptions options;
    options.nodes = {address};
    options.smart = false;
    options.log = [](shardbus::LogLevel, std::string_view, std::string_view) {};
    auto client = shardbus::Client::connect(options);
    if (!client) fail(client.error());
    clients.push_back(std::move(*client));
  }
  return clients;
}

std::vector<Entity> make_entities(std::uint32_t count) {
  std::vector<Entity> entities(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    entities[i].kind = &kCounter;
    entities[i].id = "entity-" + std::to_string(i);
  }
  return entities;
}

void note_endings(const Report& report, Run& run) {
  for (const auto* endings : {&report.in_flight, &report.later}) {
    for (const auto& [name, ending] : *endings) {
      run.slowest_ask_ms = std::max(run.slowest_ask_ms, ms(ending.slowest));
      if (name == "unknown_outcome") run.unknown += ending.count;
      if (name != "unknown_outcome" && name != "reply") run.other_errors += ending.count;
    }
  }
  for (const auto& lane : report.lanes) {
    run.asks += lane.asks;
    run.unanswered += lane.asks - lane.replies - lane.errors;
  }
  run.unanswered += report.never_answered;
}

// The node in the middle dies, so that neither the oldest nor the youngest is special.
Run run_once(const Globals& globals, const Arguments& arguments) {
  Daemons daemons(arguments.nodes, {});
  std::vector<shardbus::Client> clients = connect(daemons.addresses());
  std::vector<Entity> entities = make_entities(arguments.entities);
  (void)read_all(clients, entities);  // starts every entity
  const std::vector<std::string> names = owners(clients.front(), entities);
  for (std::size_t i = 0; i < entities.size(); ++i) entities[i].owner = names[i];
  shardbus_demo::Ways ways;
  for (std::size_t i = 0; i < clients.size(); ++i)
    ways.emplace_back(Daemons::name(i), clients[i].messenger());
  Workload workload(ways, entities, arguments.window);
  const std::size_t victim = arguments.nodes / 2;
  workload.will_die(Daemons::name(victim), victim);
  constexpr std::chrono::milliseconds kBefore{300};
  constexpr std::chrono::seconds kDeath{20};
  constexpr std::chrono::seconds kStopPatience{10};
  const auto kill_at = steady_clock::now() + kBefore;
  bool killed = false;
  const Report report =
      workload.run(std::chrono::milliseconds(1000), std::chrono::seconds(20), [&](std::uint64_t) {
        if (killed || steady_clock::now() < kill_at) return;
        killed = true;
        shardbus_tools::Process& process = daemons.processes()[victim];
        workload.kill_is_sent();
        process.signal(arguments.signal == "kill" ? SIGKILL : SIGSTOP);
        // What it still answers before the signal takes effect is no recovery.
        if (arguments.signal == "kill") {
          if (!process.wait_closed(steady_clock::now() + kDeath))
            fail(Exit::failed, "a node did not end by SIGKILL");
        } else if (!shardbus_tools::wait_stopped(process.pid(), kStopPatience)) {
          fail(Exit::failed, "the node did not stop");
        }
        workload.death_is_confirmed(clients[(victim + 1) % clients.size()].messenger());
      });
  clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(victim));
  Run run;
  run.all_answered_ms = ms(report.all_answered);
  run.first_ms = ms(report.first_answered);
  run.stall_ms = ms(report.longest_silence);
  note_endings(report, run);
  const auto wrong = wrong_counters(entities, workload.death(), read_all(clients, entities));
  run.wrong = wrong.size();
  if (!wrong.empty() && shows_progress(globals)) print_progress("wrong: " + wrong.front());
  if (!wrong.empty()) run.first_wrong = wrong.front();
  daemons.kill();
  return run;
}

double largest(const std::vector<Run>& runs, double Run::*figure) {
  double found = 0;
  for (const Run& run : runs) found = std::max(found, run.*figure);
  return found;
}

double middle(const std::vector<Run>& runs, double Run::*figure) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const Run& run : runs) values.push_back(run.*figure);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::uint64_t sum(const std::vector<Run>& runs, std::uint64_t Run::*figure) {
  std::uint64_t total = 0;
  for (const Run& run : runs) total += run.*figure;
  return total;
}

Json to_json(const std::vector<Run>& runs, const Arguments& arguments) {
  return {{"bench", "failover"},
          {"runs", runs.size()},
          {"signal", arguments.signal},
          {"nodes", arguments.nodes},
          {"entities", arguments.entities},
          {"window", arguments.window},
          {"asks", sum(runs, &Run::asks)},
          {"p50_ms", middle(runs, &Run::all_answered_ms)},
          {"max_ms", largest(runs, &Run::all_answered_ms)},
          {"first_ack_ms", middle(runs, &Run::first_ms)},
          {"stall_ms", largest(runs, &Run::stall_ms)},
          {"max_ask_ms", largest(runs, &Run::slowest_ask_ms)},
          {"unknown_outcome", sum(runs, &Run::unknown)},
          {"other_errors", sum(runs, &Run::other_errors)},
          {"unanswered", sum(runs, &Run::unanswered)},
          {"lost_acknowledged", sum(runs, &Run::wrong)}};
}

std::string number(double ms) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", ms);
  return text;
}

std::string first_wrong(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (!run.first_wrong.empty()) return ": " + run.first_wrong;
  }
  return "";
}

void run(const Globals& globals, const Arguments& arguments) {
  std::vector<Run> runs;
  while (runs.size() < arguments.runs) {
    runs.push_back(run_once(globals, arguments));
    if (!shows_progress(globals)) continue;
    const Run& last = runs.back();
    print_progress("run " + std::to_string(runs.size()) + " of " + std::to_string(arguments.runs) +
                   ": all entities answered after " + number(last.all_answered_ms) +
                   " ms, longest silence " + number(last.stall_ms) + " ms, slowest ask " +
                   number(last.slowest_ask_ms) + " ms");
  }
  print(globals, to_json(runs, arguments), &render_figures);
  if (sum(runs, &Run::unanswered) + sum(runs, &Run::wrong) != 0)
    fail(Exit::not_met,
         std::string("a promise broke: an ask did not end, an entity never answered again, or a "
                     "counter is wrong") +
             first_wrong(runs));
}

}  // namespace

void add_failover(CLI::App& bench, const Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = bench.add_subcommand(
      "failover", "Kills one node under load: how long until every entity answers again.");
  command->fallthrough();
  const auto option = [&](const char* name, auto& value, const char* help, auto low, auto high) {
    command->add_option(name, value, help)->check(CLI::Range(low, high))->capture_default_str();
  };
  option("--runs", arguments->runs, "Runs, each with a cluster of its own.", 1, 10'000);
  option("--nodes", arguments->nodes, "Nodes to start.", 3, 64);
  option("--entities", arguments->entities, "Entities, asked at random.", 1, 1'000'000);
  option("--window", arguments->window, "Asks in flight through each node.", 1, 1024);
  command->add_option("--signal", arguments->signal, "What the node gets: SIGKILL or SIGSTOP.")
      ->check(CLI::IsMember({"kill", "stop"}))
      ->capture_default_str();
  command->callback([&globals, arguments] { run(globals, *arguments); });
}

}  // namespace shardbusctl::bench
