#include "ctl/bench/bench.hpp"

namespace shardbusctl::bench {

void add_bench(CLI::App& app, const Globals& globals) {
  CLI::App* bench = app.add_subcommand("bench", "Measure a cluster that it starts itself.");
  bench->fallthrough();
  bench->require_subcommand(1);
  add_throughput(*bench, globals);
  add_handoff(*bench, globals);
  add_failover(*bench, globals);
}

}  // namespace shardbusctl::bench
