#include "ctl/bench/bench.hpp"

#include <cstdio>

#include "ctl/bench/frozen_clients.hpp"
#include "ctl/render.hpp"

namespace shardbusctl::bench {

void add_bench(CLI::App& app, const Globals& globals) {
  CLI::App* bench = app.add_subcommand("bench", "Measure a cluster that it starts itself.");
  bench->fallthrough();
  bench->require_subcommand(1);
  add_throughput(*bench, globals);
  add_handoff(*bench, globals);
  add_failover(*bench, globals);
  add_frozen_client(*bench, globals);
}

std::string render_figures(const Json& result) {
  std::vector<std::vector<std::string>> rows{{"FIGURE", "VALUE"}};
  for (const auto& [name, value] : result.items()) rows.push_back({name, cell(value)});
  return table(rows);
}

void log_errors(shardbus::LogLevel level, std::string_view event, std::string_view text) {
  if (level < shardbus::LogLevel::error) return;
  std::fprintf(stderr, "shardbus error %.*s %.*s\n", static_cast<int>(event.size()), event.data(),
               static_cast<int>(text.size()), text.data());
}

}  // namespace shardbusctl::bench
