// `shardbusctl bench throughput`: closed loop, a fixed number of asks in flight per sender.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "ctl/bench/bench.hpp"
#include "ctl/bench/clusters.hpp"
#include "ctl/bench/sender.hpp"
#include "ctl/render.hpp"

namespace shardbusctl::bench {
namespace {

struct Arguments {
  std::uint32_t nodes = 3;
  std::uint64_t asks = 1'000'000;
  std::uint32_t entities = 1000;
  std::uint32_t window = 1024;
  std::string layout = "inprocess";
  std::string route = "smart";
  std::size_t payload = 40;
  std::uint32_t workers = 0;
};

struct Measured {
  Tally tally;
  std::chrono::nanoseconds wall{}, cpu{};
  std::uint64_t resident = 0;
};

using Senders = std::vector<std::unique_ptr<Sender>>;

Senders make_senders(const Cluster& cluster, const Arguments& arguments) {
  Senders senders;
  for (const auto& way : cluster.ways_in()) {
    const auto number = static_cast<std::uint32_t>(senders.size());
    senders.push_back(std::make_unique<Sender>(
        way, SenderOptions{cluster.type(), number, arguments.entities, arguments.window,
                           std::max(arguments.payload, sizeof(Stamp))}));
  }
  return senders;
}

void show_progress(const Senders& senders, std::uint64_t asks, steady_clock::duration since) {
  std::uint64_t ended = 0;
  for (const auto& sender : senders) ended += sender->ended();
  const double seconds = std::chrono::duration<double>(since).count();
  std::fprintf(stderr, "%3.0f%%  %llu of %llu asks  %.0f/s\n",
               100 * static_cast<double>(ended) / static_cast<double>(asks),
               static_cast<unsigned long long>(ended), static_cast<unsigned long long>(asks),
               static_cast<double>(ended) / seconds);
}

// Divides the asks among the senders and waits for all; a progress line every two seconds.
void send_all(const Senders& senders, std::uint64_t asks, bool progress) {
  constexpr std::chrono::seconds kBetweenLines{2};
  const auto begin = steady_clock::now();
  auto next_line = begin + kBetweenLines;
  std::uint64_t left = asks;
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const std::uint64_t share = left / (senders.size() - i);
    left -= share;
    senders[i]->start(share);
  }
  for (const auto& sender : senders) {
    while (!sender->wait_until(next_line)) {
      if (progress) show_progress(senders, asks, steady_clock::now() - begin);
      next_line += kBetweenLines;
    }
  }
}

Measured measure(const Cluster& cluster, const Arguments& arguments) {
  Senders senders = make_senders(cluster, arguments);
  // Starts every entity, and teaches a smart client where they are.
  send_all(senders, std::uint64_t{10} * arguments.entities * senders.size(), false);
  Measured measured;
  Tally warm_up;
  for (const auto& sender : senders) warm_up.add(sender->tally());
  if (!warm_up.clean()) fail(Exit::not_met, "the warm-up failed: " + warm_up.first_error);
  const auto cpu = cluster.cpu_time();
  const auto begin = steady_clock::now();
  send_all(senders, arguments.asks, ::isatty(STDERR_FILENO) == 1);
  measured.wall = steady_clock::now() - begin;
  measured.cpu = cluster.cpu_time() - cpu;
  measured.resident = cluster.resident_bytes();
  for (const auto& sender : senders) measured.tally.add(sender->tally());
  return measured;
}

double rounded(double value, double steps_per_unit) {
  return std::round(value * steps_per_unit) / steps_per_unit;
}

Json to_json(const Measured& measured, const Arguments& arguments, std::size_t senders) {
  const Tally& tally = measured.tally;
  const auto asks = static_cast<double>(tally.asks);
  const double wall_ns = static_cast<double>(measured.wall.count());
  const auto us = [&](double share) {
    return rounded(static_cast<double>(tally.latency_ns.quantile(share)) / 1e3, 10);
  };
  return {{"bench", "throughput"},
          {"layout", arguments.layout},
          {"route", arguments.layout == "processes" ? arguments.route : "node"},
          {"nodes", arguments.nodes},
          {"senders", senders},
          {"entities", arguments.entities},
          {"window", arguments.window},
          {"payload", std::max(arguments.payload, sizeof(Stamp))},
          {"workers", arguments.workers},
          {"asks", tally.asks},
          {"replies", tally.replies},
          {"errors", tally.errors},
          {"duplicates", tally.duplicates},
          {"out_of_order", tally.out_of_order},
          {"wall_ms", rounded(wall_ns / 1e6, 10)},
          {"asks_per_s", std::round(asks / (wall_ns / 1e9))},
          {"cpu_us_per_ask", rounded(static_cast<double>(measured.cpu.count()) / 1e3 / asks, 1000)},
          {"p50_us", us(0.5)},
          {"p99_us", us(0.99)},
          {"max_us", rounded(static_cast<double>(tally.latency_ns.max()) / 1e3, 10)},
          {"rss_mb", rounded(static_cast<double>(measured.resident) / 1048576.0, 10)}};
}

void run(const Globals& globals, const Arguments& arguments) {
  const bool in_process = arguments.layout == "inprocess";
  ClusterOptions options{arguments.nodes, arguments.workers, in_process ? arguments.nodes : 1,
                         arguments.window, arguments.route == "smart"};
  const auto cluster = in_process ? start_in_process(options) : start_processes(options);
  const Measured measured = measure(*cluster, arguments);
  cluster->stop();
  print(globals, to_json(measured, arguments, options.senders), &render_figures);
  if (!measured.tally.clean())
    fail(Exit::not_met, "the run failed its own checks; first error: " +
                            (measured.tally.first_error.empty() ? std::string("none")
                                                                : measured.tally.first_error));
}

}  // namespace

void add_throughput(CLI::App& bench, const Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = bench.add_subcommand(
      "throughput", "Asks as fast as they are answered, a fixed number of them in flight.");
  command->fallthrough();
  const auto positive = CLI::Range(1U, 1U << 30);
  command->add_option("--nodes", arguments->nodes, "Nodes to start.")
      ->check(CLI::Range(1U, 64U))
      ->capture_default_str();
  command->add_option("--asks", arguments->asks, "Asks in all.")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--entities", arguments->entities, "Entities, asked at random.")
      ->check(CLI::Range(1U, 10'000'000U))
      ->capture_default_str();
  command->add_option("--window", arguments->window, "Asks in flight per sender.")
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str();
  command
      ->add_option("--layout", arguments->layout,
                   "inprocess: nodes in this process, a sender on each; processes: shardbusd "
                   "processes and one client.")
      ->check(CLI::IsMember({"inprocess", "processes"}))
      ->capture_default_str();
  command
      ->add_option("--route", arguments->route,
                   "Of the client, with --layout processes: straight to the owner, or through "
                   "any one node.")
      ->check(CLI::IsMember({"smart", "any"}))
      ->capture_default_str();
  command->add_option("--payload", arguments->payload, "Bytes per ask and reply, 32 or more.")
      ->check(CLI::Range(32U, 1U << 20))
      ->capture_default_str();
  command->add_option("--workers", arguments->workers, "Handler threads per node.")
      ->check(CLI::Range(0U, 256U))
      ->capture_default_str();
  command->callback([&globals, arguments] { run(globals, *arguments); });
}

}  // namespace shardbusctl::bench
