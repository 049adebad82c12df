// `shardbusctl bench throughput`: closed loop, a fixed number of asks in flight per sender.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "ctl/bench/bench.hpp"
#include "ctl/bench/clusters.hpp"
#include "ctl/bench/floor.hpp"
#include "ctl/bench/sender.hpp"
#include "ctl/render.hpp"

namespace shardbusctl::bench {
namespace {

constexpr std::uint32_t kFloorRounds = 5;

struct Arguments {
  std::uint32_t nodes = 3;
  std::uint64_t asks = 1'000'000;
  std::uint32_t entities = 1000;
  std::uint32_t window = 1024;
  std::string layout = "inprocess";
  std::string route = "smart";
  std::size_t payload = 40;
  std::uint32_t workers = 0;
  std::uint32_t rounds = 1;
  bool floor = false;
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

// Starts every entity, and teaches a smart client where they are.
void warm_up(const Senders& senders, std::uint32_t entities) {
  send_all(senders, std::uint64_t{10} * entities * senders.size(), false);
  Tally tally;
  for (const auto& sender : senders) tally.add(sender->tally());
  if (!tally.clean()) fail(Exit::not_met, "the warm-up failed: " + tally.first_error);
}

Measured measure(const Cluster& cluster, const Senders& senders, std::uint64_t asks) {
  Measured measured;
  const auto cpu = cluster.cpu_time();
  const auto begin = steady_clock::now();
  send_all(senders, asks, ::isatty(STDERR_FILENO) == 1);
  measured.wall = steady_clock::now() - begin;
  measured.cpu = cluster.cpu_time() - cpu;
  measured.resident = cluster.resident_bytes();
  for (const auto& sender : senders) measured.tally.add(sender->tally());
  return measured;
}

struct Round {
  Measured ours;
  std::optional<Figures> floor;
};

double rounded(double value, double steps_per_unit) {
  return std::round(value * steps_per_unit) / steps_per_unit;
}

Figures figures_of(const Measured& measured) {
  const auto asks = static_cast<double>(measured.tally.asks);
  const auto us = [&](double share) {
    return static_cast<double>(measured.tally.latency_ns.quantile(share)) / 1e3;
  };
  return {asks / (static_cast<double>(measured.wall.count()) / 1e9),
          static_cast<double>(measured.cpu.count()) / 1e3 / asks, us(0.5), us(0.99)};
}

// Of one figure over all rounds.
template <class Figure>
std::vector<double> sorted(const std::vector<Round>& rounds, Figure figure) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const Round& round : rounds) values.push_back(figure(round));
  std::sort(values.begin(), values.end());
  return values;
}

template <class Figure>
double median(const std::vector<Round>& rounds, Figure figure) {
  return sorted(rounds, figure)[rounds.size() / 2];
}

// Ratios within one round: the machine does not stay the same between two of them.
void add_floor(const std::vector<Round>& rounds, Json& json) {
  const auto floor = [&](double Figures::*figure) {
    return median(rounds, [figure](const Round& round) { return (*round.floor).*figure; });
  };
  json["floor_asks_per_s"] = std::round(floor(&Figures::asks_per_s));
  json["floor_cpu_us"] = rounded(floor(&Figures::cpu_us_per_ask), 1000);
  json["floor_p50_us"] = rounded(floor(&Figures::p50_us), 10);
  json["floor_p99_us"] = rounded(floor(&Figures::p99_us), 10);
  const auto ratio = [&](const std::string& name, double Figures::*figure) {
    const std::vector<double> all = sorted(rounds, [figure](const Round& round) {
      return figures_of(round.ours).*figure / (*round.floor).*figure;
    });
    json[name] = rounded(all[all.size() / 2], 1000);
    json[name + "_min"] = rounded(all.front(), 1000);
    json[name + "_max"] = rounded(all.back(), 1000);
  };
  ratio("cpu_ratio_to_floor", &Figures::cpu_us_per_ask);
  ratio("rate_ratio_to_floor", &Figures::asks_per_s);
  ratio("p50_ratio_to_floor", &Figures::p50_us);
  ratio("p99_ratio_to_floor", &Figures::p99_us);
}

Json to_json(const std::vector<Round>& rounds, const Tally& tally, const Arguments& arguments,
             std::size_t senders) {
  const auto ours = [&](double Figures::*figure) {
    return median(rounds, [figure](const Round& round) { return figures_of(round.ours).*figure; });
  };
  const double wall_ns = median(
      rounds, [](const Round& round) { return static_cast<double>(round.ours.wall.count()); });
  Json json = {
      {"bench", "throughput"},
      {"layout", arguments.layout},
      {"route", arguments.layout == "processes" ? arguments.route : "node"},
      {"nodes", arguments.nodes},
      {"senders", senders},
      {"entities", arguments.entities},
      {"window", arguments.window},
      {"payload", std::max(arguments.payload, sizeof(Stamp))},
      {"workers", arguments.workers},
      {"rounds", rounds.size()},
      {"asks", tally.asks},
      {"replies", tally.replies},
      {"errors", tally.errors},
      {"duplicates", tally.duplicates},
      {"out_of_order", tally.out_of_order},
      {"wall_ms", rounded(wall_ns / 1e6, 10)},
      {"asks_per_s", std::round(ours(&Figures::asks_per_s))},
      {"cpu_us_per_ask", rounded(ours(&Figures::cpu_us_per_ask), 1000)},
      {"p50_us", rounded(ours(&Figures::p50_us), 10)},
      {"p99_us", rounded(ours(&Figures::p99_us), 10)},
      {"max_us", rounded(static_cast<double>(tally.latency_ns.max()) / 1e3, 10)},
      {"rss_mb",
       rounded(median(rounds,
                      [](const Round& round) { return static_cast<double>(round.ours.resident); }) /
                   1048576.0,
               10)}};
  if (rounds.front().floor) add_floor(rounds, json);
  return json;
}

void run(const Globals& globals, const Arguments& arguments) {
  const bool in_process = arguments.layout == "inprocess";
  ClusterOptions options{arguments.nodes, arguments.workers, in_process ? arguments.nodes : 1,
                         arguments.window, arguments.route == "smart"};
  const auto cluster = in_process ? start_in_process(options) : start_processes(options);
  Tally tally;
  std::vector<Round> rounds;
  {
    const Senders senders = make_senders(*cluster, arguments);
    warm_up(senders, arguments.entities);
    while (rounds.size() < arguments.rounds) {
      Round round;
      if (arguments.floor) {
        round.floor = measure_floor(arguments.nodes, arguments.asks,
                                    std::uint64_t{arguments.window} * senders.size(),
                                    std::max(arguments.payload, sizeof(Stamp)));
      }
      round.ours = measure(*cluster, senders, arguments.asks);
      tally.add(round.ours.tally);
      rounds.push_back(std::move(round));
    }
  }
  cluster->stop();
  print(globals, to_json(rounds, tally, arguments, options.senders), &render_figures);
  if (!tally.clean())
    fail(Exit::not_met, "the run failed its own checks; first error: " +
                            (tally.first_error.empty() ? std::string("none") : tally.first_error));
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
  CLI::Option* rounds =
      command->add_option("--rounds", arguments->rounds, "Runs of --asks; figures are medians.")
          ->check(CLI::Range(1U, 1000U))
          ->default_str("1, or 5 with --floor");
  command->add_flag("--floor", arguments->floor,
                    "Before each round bare ZeroMQ does the same: figures also as ratios to it.");
  command->callback([&globals, arguments, rounds] {
    if (arguments->floor && rounds->count() == 0) arguments->rounds = kFloorRounds;
    run(globals, *arguments);
  });
}

}  // namespace shardbusctl::bench
