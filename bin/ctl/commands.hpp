// The commands of shardbusctl that look at a cluster or call an entity.
#pragma once

#include <CLI/CLI.hpp>

#include "ctl/session.hpp"

namespace shardbusctl {

// Takes flags and arguments that CLI11 is to convert to a duration ("5s").
CLI::Option* add_duration(CLI::App& app, const std::string& name, milliseconds& value,
                          const std::string& help);

// Who runs this: the variable USER.
std::string default_actor();

void add_commands(CLI::App& app, const Globals& globals);

}  // namespace shardbusctl
