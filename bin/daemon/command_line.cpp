// Reads the flags. CLI11 splits and explains them; values are checked where all sources' are.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/nearest.hpp"
#include "daemon/config.hpp"
#include "daemon/exit_codes.hpp"

namespace shardbusd {
namespace {

// Takes the raw words of one flag, whatever they are.
CLI::Option* add_raw(CLI::App& app, const std::string& name, const std::string& help) {
  // One word per use, or none, which is reported with the other mistakes instead of thrown.
  return app
      .add_option(
          name, [](const CLI::results_t&) { return true; }, help)
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Stands for an empty text that was given, as CLI11 writes one for a value that is left out.
constexpr const char* kGivenEmpty = "\x01";

// CLI11 takes them from the end.
std::vector<std::string> reversed(std::vector<std::string> arguments) {
  for (std::string& word : arguments) {
    const bool empty_value = word.starts_with("--") && word.find('=') == word.size() - 1;
    if (word.empty() || empty_value) word += kGivenEmpty;
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

std::vector<std::string> words_of(const CLI::Option& flag) {
  std::vector<std::string> words = flag.results();
  std::replace(words.begin(), words.end(), std::string(kGivenEmpty), std::string());
  return words;
}

// A flag at the end of a line, or before another one, is more likely a slip than an empty text.
std::string missing_value(const Option& option, const CLI::Option& flag) {
  const std::vector<std::string>& words = flag.results();
  if (std::find(words.begin(), words.end(), "") == words.end()) return "";
  DaemonOptions scratch;
  const bool may_be_empty = assign(option, {""}, scratch).empty();
  return "needs a value" + (may_be_empty ? "; " + flag_name(option) + "= for the empty one" : "");
}

std::string footer() {
  std::string text =
      "Every option can also stand in the TOML file (--name-of-it is name_of_it, --log-level is\n"
      "level in [log]) and in the environment (SHARDBUS_NAME_OF_IT). Flags win over the file, the\n"
      "file over the environment.\n\nExit codes:\n";
  for (const ExitRow& row : kExitTable)
    text +=
        "  " + std::to_string(static_cast<int>(row.code)) + "  " + std::string(row.meaning) + "\n";
  text +=
      "\nThe first SIGTERM or SIGINT hands all shards over and leaves the cluster; a second one\n"
      "stops at once.";
  return text;
}

struct Flags {
  std::vector<CLI::Option*> options;  // per option of the table
  CLI::Option *config, *ready_fd, *print, *check, *json, *help, *version;
};

Flags declare(CLI::App& app) {
  Flags flags{};
  for (const Option& option : option_table()) {
    DaemonOptions defaults;
    const bool list = std::holds_alternative<std::vector<std::string>*>(option.field(defaults));
    const std::string help = std::string(option.help) + (list ? " Repeatable." : "") + " (" +
                             describe_values(option) + "; default " + to_toml(option, defaults) +
                             ")";
    flags.options.push_back(
        add_raw(app, flag_name(option), help)->type_name("VALUE")->group("Options"));
  }
  flags.config = add_raw(app, "--config", "TOML file with options.")->type_name("FILE");
  flags.ready_fd =
      add_raw(app, "--ready-fd", "Write the ready line to this descriptor, too.")->type_name("N");
  flags.print =
      app.add_flag("--print-config")->description("Print each option with its origin, and exit.");
  flags.check = app.add_flag("--check-config")
                    ->description("Check the configuration, start nothing, and exit.");
  flags.json = app.add_flag("--json")->description("With --print-config: as JSON.");
  flags.help = app.add_flag("-h,--help")->description("Print this text, and exit.");
  flags.version = app.add_flag("--version")->description("Print the version, and exit.");
  return flags;
}

std::string unknown_flag(const std::string& name) {
  std::vector<std::string> names = {"--config", "--ready-fd", "--print-config", "--check-config",
                                    "--json",   "--help",     "--version"};
  for (const Option& option : option_table()) names.push_back(flag_name(option));
  const std::string near = shardbus_tools::nearest(name, names);
  return near.empty() ? "no such flag; see shardbusd --help"
                      : "no such flag; did you mean " + near + "?";
}

void report_extras(const CLI::App& app, Source& source) {
  bool after_flag = false;
  for (std::string word : app.remaining()) {
    if (word == kGivenEmpty) word.clear();
    const bool is_flag = word.size() > 1 && word[0] == '-';
    const std::string name = word.substr(0, word.find('='));
    if (is_flag) source.push_back({"flag " + name, 0, {}, unknown_flag(name)});
    // A plain word behind an unknown flag is most likely its value.
    if (!is_flag && !after_flag)
      source.push_back({"argument " + in_quotes(word), 0, {}, "shardbusd takes flags only"});
    after_flag = is_flag && word.find('=') == std::string::npos;
  }
}

void read_request(const Flags& flags, Request& request, Source& source) {
  if (flags.print->count() > 0) request.action = Action::print_config;
  if (flags.check->count() > 0) request.action = Action::check_config;
  if (flags.version->count() > 0) request.action = Action::version;
  if (flags.help->count() > 0) request.action = Action::help;
  request.json = flags.json->count() > 0;
  if (flags.config->count() > 0) {
    const std::vector<std::string> files = words_of(*flags.config);
    request.file = files.front();
    if (files.size() > 1 || files.front().empty())
      source.push_back({"flag --config", 0, {}, "takes one file"});
  }
  if (flags.ready_fd->count() > 0) {
    const std::vector<std::string> words = words_of(*flags.ready_fd);
    if (words.size() != 1 || !CLI::detail::lexical_cast(words.front(), request.ready_fd) ||
        request.ready_fd < 0)
      source.push_back({"flag --ready-fd", 0, {}, "takes the number of an open descriptor"});
  }
}

}  // namespace

Source read_flags(const std::vector<std::string>& arguments, Request& request) {
  Source source;
  CLI::App app("shardbusd: a node of a shardbus cluster as a process of its own", "shardbusd");
  app.set_help_flag();  // Ours is read with the other flags, so that it can be combined.
  app.allow_extras();
  app.get_formatter()->column_width(28);
  app.footer(footer());
  const Flags flags = declare(app);
  try {
    app.parse(reversed(arguments));
  } catch (const CLI::ParseError& error) {
    source.push_back({"flags", 0, {}, error.what()});
    return source;
  }
  for (std::size_t i = 0; i < flags.options.size(); ++i) {
    if (flags.options[i]->count() == 0) continue;
    const Option& option = option_table()[i];
    source.push_back({"flag " + flag_name(option), i, words_of(*flags.options[i]),
                      missing_value(option, *flags.options[i])});
  }
  report_extras(app, source);
  read_request(flags, request, source);
  if (request.action == Action::help) request.help = app.help();
  return source;
}

}  // namespace shardbusd
