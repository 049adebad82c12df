// What shardbusd can be told, as one table: the TOML file, the environment, the flags, --help,
// --print-config and the table of bin/README.md are all read off it.
#pragma once

#include <chrono>
#include <cstdint>
#include <shardbus/entity.hpp>
#include <shardbus/options.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardbusd {

using std::chrono::milliseconds;

enum class LogFormat : std::uint8_t { text, json };

struct DaemonOptions {
  shardbus::NodeOptions node;
  bool builtin_types = true;
  shardbus::TypeOptions builtin;  // of all built-in types
  milliseconds leave_timeout{10'000};
  shardbus::LogLevel log_level = shardbus::LogLevel::info;
  LogFormat log_format = LogFormat::text;
};

// Where an option's value lives; its type decides how the value is written.
using Field =
    std::variant<std::string*, std::vector<std::string>*, std::uint32_t*, milliseconds*, bool*,
                 shardbus::ThreadPlacement*, shardbus::Placement*, shardbus::Consistency*,
                 shardbus::DowningPolicy*, shardbus::LogLevel*, LogFormat*>;

// What a text value must look like.
enum class Form : std::uint8_t { any, node_name, host, address, optional_address, seed };

struct Option {
  std::string_view key;  // in TOML; "log.level" is level in [log]
  Field (*field)(DaemonOptions&);
  std::string_view help;
  // Smallest and largest number, milliseconds, or bytes of a text.
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  Form form = Form::any;
  // Names of an enumeration's values, in its order.
  std::vector<std::string_view> choices{};
};

const std::vector<Option>& option_table();

// "log.level" -> "--log-level" and "SHARDBUS_LOG_LEVEL".
std::string flag_name(const Option& option);
std::string environment_name(const Option& option);
// What a value looks like, for --help and messages: "duration 20ms..10s".
std::string describe_values(const Option& option);

// Sets the option from texts: one, or for a list any number, each of which may hold several values
// with commas between. Gives an empty string, or what is
// wrong with the value and what would be right; `options` is then unchanged.
std::string assign(const Option& option, const std::vector<std::string>& texts,
                   DaemonOptions& options);

// The value as TOML writes it.
std::string to_toml(const Option& option, const DaemonOptions& options);
// A TOML (and JSON) string literal of `text`.
std::string in_quotes(std::string_view text);

}  // namespace shardbusd
