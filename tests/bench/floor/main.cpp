// `shardbus-floor`: what bare ZeroMQ costs on this machine for the traffic of `shardbusctl bench
// throughput --layout processes`: see ../README.md.
#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/floor/client.hpp"
#include "bench/floor/server.hpp"

namespace shardbus_floor {
namespace {

std::chrono::nanoseconds cpu_of(const Servers& servers) {
  std::chrono::nanoseconds sum{};
  for (const auto& process : servers.processes()) sum += shardbus_tools::cpu_time(process.pid());
  return sum;
}

double rounded(double value, double steps_per_unit) {
  return std::round(value * steps_per_unit) / steps_per_unit;
}

nlohmann::ordered_json measure(const Options& options) {
  const Servers servers(options);
  Client client(options, servers.addresses());
  (void)client.run(std::min<std::uint64_t>(options.asks, 10'000));
  const auto before = cpu_of(servers);
  const Figures figures = client.run(options.asks);
  const auto cpu = figures.cpu + (cpu_of(servers) - before);
  const auto asks = static_cast<double>(figures.asks);
  const auto us = [&](double share) {
    return rounded(static_cast<double>(figures.latency_ns.quantile(share)) / 1e3, 10);
  };
  return {{"bench", "floor"},
          {"variant", std::string(options.batched ? "batched" : "single") +
                          (options.follow ? ", follow" : "")},
          {"servers", options.servers},
          {"window", options.window},
          {"payload", options.payload},
          {"asks", figures.asks},
          {"asks_per_s", std::round(asks / (static_cast<double>(figures.wall.count()) / 1e9))},
          {"cpu_us_per_ask", rounded(static_cast<double>(cpu.count()) / 1e3 / asks, 1000)},
          {"p50_us", us(0.5)},
          {"p99_us", us(0.99)}};
}

void print(const nlohmann::ordered_json& figures, bool json) {
  if (json) {
    std::cout << figures.dump() << std::endl;
    return;
  }
  for (const auto& [name, value] : figures.items()) {
    std::cout << name << ": " << (value.is_string() ? value.get<std::string>() : value.dump())
              << "\n";
  }
}

}  // namespace
}  // namespace shardbus_floor

int main(int argc, char** argv) {
  using namespace shardbus_floor;
  Options options;
  bool json = false;
  bool serves = false;
  CLI::App app(
      "Bare ZeroMQ: a client with one DEALER per ROUTER server, one frame per ask and reply.");
  app.add_option("--servers", options.servers, "Server processes.")
      ->check(CLI::Range(1U, 64U))
      ->capture_default_str();
  app.add_option("--asks", options.asks, "Asks in all.")
      ->check(CLI::Range(1U, 1U << 30))
      ->capture_default_str();
  app.add_option("--window", options.window, "Asks in flight.")
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str();
  app.add_option("--payload", options.payload, "Bytes per ask and reply.")
      ->check(CLI::Range(8U, 1U << 20))
      ->capture_default_str();
  app.add_flag("--batched", options.batched, "All asks of one pass to one server share a frame.");
  app.add_flag("--follow", options.follow, "I/O threads run on the core of the thread that polls.");
  app.add_flag("--json", json, "One JSON object.");
  app.add_flag("--serve", serves, "")->group("");
  CLI11_PARSE(app, argc, argv);
  if (serves) serve(options);
  print(measure(options), json);
}
