// The effective configuration: flags win over the TOML file, the file over the environment, and
// the environment over the defaults. Every mistake in any of them is found in one pass.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "daemon/options.hpp"

namespace shardbusd {

// What one source says about one option, or a mistake in it.
struct Setting {
  std::string where;       // "orders.toml:3", "environment SHARDBUS_NAME", "flag --name"
  std::size_t option = 0;  // index into option_table()
  std::vector<std::string> texts;
  std::string mistake;  // if not empty, the two fields above mean nothing
  std::size_t line = 0;
};

// In the order in which the source says it.
using Source = std::vector<Setting>;

enum class Action : std::uint8_t { run, print_config, check_config, help, version };

// What the command line asks for besides options.
struct Request {
  Action action = Action::run;
  bool json = false;
  int ready_fd = -1;
  std::filesystem::path file;  // empty: none
  std::string help;            // set for Action::help
};

struct Config {
  DaemonOptions options;
  std::vector<std::string> origins;   // per option of the table
  std::vector<std::string> problems;  // empty: the configuration is usable
  Request request;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// The three sources, each by itself.
Source read_flags(const std::vector<std::string>& arguments, Request& request);
Source read_file(const std::filesystem::path& file);
Source read_environment(const Environment& environment);

// All of them together. `arguments` are without the program's name.
Config load_config(const std::vector<std::string>& arguments, const Environment& environment);

// The effective values as a TOML file whose comments, or as JSON whose fields, tell the origins.
std::string print_config(const Config& config);
std::string print_config_json(const Config& config);

}  // namespace shardbusd
