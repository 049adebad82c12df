// Commands that move shards, and that look at moves: plan, apply, move, unpin, cordon, uncordon,
// drain, rebalance, moves, history.
#pragma once

#include <CLI/CLI.hpp>

#include "ctl/session.hpp"

namespace shardbusctl {

void add_operate(CLI::App& app, const Globals& globals);

// Adds a subcommand that global flags may follow.
CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& help);

}  // namespace shardbusctl
