// `shardbusctl bench ...`: measurements that check themselves.
#pragma once

#include <CLI/CLI.hpp>

#include "ctl/session.hpp"

namespace shardbusctl::bench {

// Each benchmark is a command below "bench".
void add_bench(CLI::App& app, const Globals& globals);
void add_throughput(CLI::App& bench, const Globals& globals);
void add_handoff(CLI::App& bench, const Globals& globals);
void add_failover(CLI::App& bench, const Globals& globals);

}  // namespace shardbusctl::bench
