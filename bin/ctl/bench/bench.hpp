// `shardbusctl bench ...`: measurements that check themselves.
#pragma once

#include <CLI/CLI.hpp>
#include <shardbus/options.hpp>
#include <string>
#include <string_view>

#include "ctl/session.hpp"

namespace shardbusctl::bench {

// Each benchmark is a command below "bench".
void add_bench(CLI::App& app, const Globals& globals);
void add_throughput(CLI::App& bench, const Globals& globals);
void add_handoff(CLI::App& bench, const Globals& globals);
void add_failover(CLI::App& bench, const Globals& globals);

// A figure per row, in the order of the object.
std::string render_figures(const Json& result);
// A log sink for nodes in this process: only what makes the figures worthless, as nodes that stop
// one after the other warn of each other.
void log_errors(shardbus::LogLevel level, std::string_view event, std::string_view text);

}  // namespace shardbusctl::bench
