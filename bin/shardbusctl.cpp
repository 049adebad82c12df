// shardbusctl: looks at a cluster, calls entities, measures. bin/README.md is its manual.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <shardbus/version.hpp>
#include <string>

#include "ctl/bench/bench.hpp"
#include "ctl/commands.hpp"
#include "ctl/session.hpp"

namespace shardbusctl {
namespace {

std::string footer() {
  std::string text = "Exit codes:\n";
  for (const ExitRow& row : kExitTable)
    text +=
        "  " + std::to_string(static_cast<int>(row.code)) + "  " + std::string(row.meaning) + "\n";
  text +=
      "\nJSON payloads: {\"$bin\": \"00ff\"} is binary; 64-bit integers are exact. `shardbusctl\n"
      "COMMAND --help` tells the arguments of a command.";
  return text;
}

void add_globals(CLI::App& app, Globals& globals) {
  globals.nodes = {"tcp://127.0.0.1:7400"};
  app.add_option("--node", globals.nodes,
                 "Listen address of a node; repeatable, tried in turn (default " +
                     globals.nodes.front() + ")")
      ->envname("SHARDBUS_NODE")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("tcp://HOST:PORT");
  app.add_flag("--json", globals.json)->description("One JSON value on stdout instead of a table.");
  add_duration(app, "--timeout", globals.timeout, "Longest wait for a connection or a reply");
  app.set_version_flag("--version", std::string("shardbusctl ") + shardbus::kVersion);
}

int run(int count, char** arguments) {
  CLI::App app("shardbusctl: looks at a shardbus cluster, calls its entities, and measures it",
               "shardbusctl");
  Globals globals;
  try {
    add_globals(app, globals);
    add_commands(app, globals);
    bench::add_bench(app, globals);
    app.require_subcommand(1);
    app.footer(footer());
    app.parse(count, arguments);  // Runs the command.
    return static_cast<int>(Exit::ok);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    print_failure({Exit::usage, std::string(error.what()) + "; see shardbusctl --help", {}},
                  globals.json);
    return static_cast<int>(Exit::usage);
  } catch (const Failure& failure) {
    print_failure(failure, globals.json);
    return static_cast<int>(failure.code);
  }
}

}  // namespace
}  // namespace shardbusctl

int main(int count, char** arguments) {
  try {
    return shardbusctl::run(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shardbusctl: error: %s\n", error.what());
    return static_cast<int>(shardbusctl::Exit::failed);
  }
}
