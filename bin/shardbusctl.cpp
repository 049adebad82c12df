// shardbusctl: looks at a cluster, calls entities, measures. bin/README.md is its manual.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <shardbus/version.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/nearest.hpp"
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
                 "Listen address of a node; repeatable, any of them is used (default " +
                     globals.nodes.front() + ")")
      ->envname("SHARDBUS_NODE")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("tcp://HOST:PORT");
  app.add_flag("--json", globals.json)->description("One JSON value on stdout instead of a table.");
  add_duration(app, "--timeout", globals.timeout, "Longest wait for a connection or a reply");
  app.set_version_flag("--version", std::string("shardbusctl ") + shardbus::kVersion);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = shardbus_tools::nearest(word, candidates);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

// What is wrong with the first word that neither the program nor its command knows, and whether it
// is near one that they do; empty: all are known. The parser may say that something else is
// missing.
std::string unknown_word(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* command = &program;
  std::map<std::string, bool> takes_value;  // of each flag that may stand here
  std::vector<std::string> flags;
  const auto add_flags = [&](const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        flags.push_back("--" + name);
        takes_value["--" + name] = option->get_items_expected_max() > 0;
      }
    }
  };
  add_flags(program);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("--")) {
      const std::string name = words[i].substr(0, words[i].find('='));
      const auto known = takes_value.find(name);
      if (known == takes_value.end()) return name + " is no flag here" + did_you_mean(name, flags);
      if (known->second && name == words[i]) ++i;
      continue;
    }
    std::vector<std::string> commands;
    for (const CLI::App* one : command->get_subcommands({})) commands.push_back(one->get_name());
    if (commands.empty()) continue;  // an argument of the command
    if (std::ranges::find(commands, words[i]) == commands.end())
      return "a command is required; '" + words[i] + "' is none" + did_you_mean(words[i], commands);
    command = command->get_subcommand(words[i]);
    add_flags(*command);
  }
  return "";
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
    std::string wrong = unknown_word(app, {arguments + 1, arguments + count});
    if (wrong.empty()) wrong = error.what();
    print_failure({Exit::usage, wrong + "; see shardbusctl --help", {}}, globals.json);
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
