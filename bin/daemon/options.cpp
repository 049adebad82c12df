#include "daemon/options.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/duration.hpp"
#include "common/nearest.hpp"

namespace shardbusd {
namespace {

constexpr std::uint64_t kSecond = 1000;
constexpr std::uint64_t kMaxCredit = 1U << 20;

std::vector<Option> identity_options() {
  using O = DaemonOptions;
  return {
      {"cluster", [](O& o) -> Field { return &o.node.cluster; },
       "Name of the cluster; nodes of another one are refused.", 1, 64},
      {"name", [](O& o) -> Field { return &o.node.name; },
       "Name of this node; empty: host:port of its listen address.", 0, 64, Form::node_name},
      {"listen", [](O& o) -> Field { return &o.node.listen; },
       "Address for clients and workers; port 0 takes a free one.", 0, 256, Form::address},
      {"peer_listen", [](O& o) -> Field { return &o.node.peer_listen; },
       "Address for other nodes; empty: the port after listen's.", 0, 256, Form::optional_address},
      {"gossip_listen", [](O& o) -> Field { return &o.node.gossip_listen; },
       "Address for gossip; empty: the second port after listen's.", 0, 256,
       Form::optional_address},
      {"advertise", [](O& o) -> Field { return &o.node.advertise; },
       "Host under which others reach this node; empty: the host of listen.", 0, 253, Form::host},
      {"seeds", [](O& o) -> Field { return &o.node.seeds; },
       "Listen addresses of nodes to join; empty: a cluster of its own.", 0, 256, Form::seed},
      {"bootstrap", [](O& o) -> Field { return &o.node.bootstrap; },
       "May found the cluster without being the first seed; for one node."},
      {"min_members", [](O& o) -> Field { return &o.node.min_members; },
       "Members that must be up before shards are given out at first.", 1, 1024},
      {"builtin_types", [](O& o) -> Field { return &o.builtin_types; },
       "Host the entity types echo, counter and kv."},
      {"workers", [](O& o) -> Field { return &o.node.workers; },
       "Threads for handlers; 0 runs them on the polling thread.", 0, 256},
      {"placement",
       [](O& o) -> Field { return &o.node.placement; },
       "Whether the I/O thread follows the core of the polling thread.",
       0,
       0,
       Form::any,
       {"follow", "none"}},
  };
}

std::vector<Option> placement_options() {
  using O = DaemonOptions;
  return {
      {"zone", [](O& o) -> Field { return &o.node.zone; },
       "Part of the installation that may fail as a whole, such as a rack or a site.", 0, 64,
       Form::node_name},
      {"roles", [](O& o) -> Field { return &o.node.roles; },
       "What this node is for; a type may ask for a role.", 1, 64, Form::node_name},
      {"capacity", [](O& o) -> Field { return &o.node.capacity; },
       "Share of the shards, in proportion to other nodes.", 1, 1000},
      {"proxy", [](O& o) -> Field { return &o.node.proxy; },
       "Only route: run no entities and take no workers."},
      {"builtin_placement",
       [](O& o) -> Field { return &o.builtin.placement; },
       "Which node gets which shard of the built-in types.",
       0,
       0,
       Form::any,
       {"least-shards", "rendezvous", "weighted", "ring"}},
      {"builtin_role", [](O& o) -> Field { return &o.builtin.role; },
       "Role of the nodes that run the built-in types; empty: all.", 0, 64, Form::node_name},
      {"builtin_spread_zones", [](O& o) -> Field { return &o.builtin.spread_zones; },
       "Spread the shards of the built-in types over the zones."},
      {"builtin_consistency",
       [](O& o) -> Field { return &o.builtin.consistency; },
       "Whether the built-in types run without a majority.",
       0,
       0,
       Form::any,
       {"available", "strict"}},
  };
}

std::vector<Option> time_options() {
  using O = DaemonOptions;
  return {
      {"gossip_interval", [](O& o) -> Field { return &o.node.gossip_interval; },
       "Time between two digests of this node.", 20, 300},
      {"failure_timeout", [](O& o) -> Field { return &o.node.failure_timeout; },
       "Silence after which a node is held for unreachable, at least; as a rule a quarter of a "
       "second more.",
       500, 60 * kSecond},
      {"stable_after", [](O& o) -> Field { return &o.node.stable_after; },
       "How long nodes stay unreachable before the majority removes them.", 100, 300 * kSecond},
      {"downing",
       [](O& o) -> Field { return &o.node.downing; },
       "Which side of a split goes on; the same on all nodes.",
       0,
       0,
       Form::any,
       {"keep-majority", "static-quorum", "keep-oldest", "down-all", "lease-majority"}},
      {"quorum_size", [](O& o) -> Field { return &o.node.quorum_size; },
       "Members that must reach each other; for static-quorum only.", 0, 1024},
      {"down_if_alone", [](O& o) -> Field { return &o.node.down_if_alone; },
       "With keep-oldest: the oldest goes if all others are cut off."},
      {"death_proof", [](O& o) -> Field { return &o.node.death_proof; },
       "Whether a refused connection proves a death; off behind proxies."},
      {"handoff_timeout", [](O& o) -> Field { return &o.node.handoff_timeout; },
       "Longest planned move of one shard.", 100, 600 * kSecond},
      {"leave_timeout", [](O& o) -> Field { return &o.leave_timeout; },
       "How long SIGTERM or SIGINT may take to hand all shards over.", 100, 3600 * kSecond},
      {"ping_interval", [](O& o) -> Field { return &o.node.ping_interval; },
       "Silence of a session before a PING; four of them end it.", 100, 60 * kSecond},
  };
}

std::vector<Option> bound_options() {
  using O = DaemonOptions;
  return {
      {"client_credit", [](O& o) -> Field { return &o.node.client_credit; },
       "Envelopes in flight per client.", 1, kMaxCredit},
      {"peer_credit", [](O& o) -> Field { return &o.node.peer_credit; },
       "Envelopes in flight per node and direction.", 64, kMaxCredit},
      {"buffered_messages", [](O& o) -> Field { return &o.node.buffered_messages; },
       "Messages held for shards without an owner.", 1, 1U << 24},
      {"sessions", [](O& o) -> Field { return &o.node.sessions; }, "Clients and workers at a time.",
       1, 1U << 20},
      {"pending_asks", [](O& o) -> Field { return &o.node.pending_asks; },
       "Asks of this node that wait for their reply.", 1, (1U << 24) - 1},
      {"log.level",
       [](O& o) -> Field { return &o.log_level; },
       "Least level that is written to stderr.",
       0,
       0,
       Form::any,
       {"debug", "info", "warn", "error"}},
      {"log.format",
       [](O& o) -> Field { return &o.log_format; },
       "Form of a log line.",
       0,
       0,
       Form::any,
       {"text", "json"}},
  };
}

std::string in_words(const std::vector<std::string_view>& words, std::string_view between) {
  std::string text;
  for (std::string_view word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

milliseconds as_duration(std::uint64_t ms) {
  return milliseconds(static_cast<milliseconds::rep>(ms));
}

// A number without sign, point or exponent; nothing else counts as one.
std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return {};
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return {};
  return value;
}

std::string range_error(const Option& option, std::string_view shown) {
  return std::string(shown) + " is out of range; use " + describe_values(option);
}

bool is_node_name(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) {
    return c < 128 && (std::isalnum(c) != 0 || std::string_view("._:-").find(
                                                   static_cast<char>(c)) != std::string_view::npos);
  });
}

bool is_host(std::string_view text) {
  return std::ranges::none_of(
      text, [](unsigned char c) { return c <= ' ' || c == '/' || c == ',' || c == 127; });
}

bool is_address(std::string_view text) {
  constexpr std::string_view kScheme = "tcp://";
  if (!text.starts_with(kScheme)) return false;
  text.remove_prefix(kScheme.size());
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto port = parse_digits(text.substr(colon + 1));
  return port && *port <= 65535 && is_host(text.substr(0, colon));
}

bool is_seed(std::string_view text) {
  constexpr std::string_view kFile = "file:///";
  constexpr std::string_view kName = "dns://";
  if (text.starts_with(kFile)) return text.size() > kFile.size();
  if (text.starts_with(kName)) return is_address("tcp://" + std::string(text.substr(6)));
  return is_address(text);
}

std::string check_form(const Option& option, std::string_view text) {
  if (text.size() < option.min || text.size() > option.max)
    return range_error(option, in_quotes(text) + " (" + std::to_string(text.size()) + " bytes)");
  bool right = true;
  if (option.form == Form::node_name) right = is_node_name(text);
  if (option.form == Form::host) right = is_host(text);
  if (option.form == Form::address) right = is_address(text);
  if (option.form == Form::seed) right = is_seed(text);
  if (option.form == Form::optional_address) right = text.empty() || is_address(text);
  return right ? "" : in_quotes(text) + " does not fit; use " + describe_values(option);
}

std::string set(const Option& option, std::string_view text, std::string* value) {
  std::string problem = check_form(option, text);
  if (problem.empty()) *value = text;
  return problem;
}

std::string set(const Option& option, std::string_view text, std::uint32_t* value) {
  const auto number = parse_digits(text);
  if (!number) return in_quotes(text) + " is not a whole number; use " + describe_values(option);
  if (*number < option.min || *number > option.max) return range_error(option, text);
  *value = static_cast<std::uint32_t>(*number);
  return "";
}

std::string set(const Option& option, std::string_view text, milliseconds* value) {
  if (parse_digits(text))
    return in_quotes(text) + " needs a unit, such as \"" + std::string(text) + "s\" or \"" +
           std::string(text) + "ms\"";
  const auto duration = shardbus_tools::parse_duration(text);
  if (!duration)
    return in_quotes(text) + " is not a duration; use " + describe_values(option) +
           ", written as \"5s\" or \"200ms\"";
  if (*duration < as_duration(option.min) || *duration > as_duration(option.max))
    return range_error(option, text);
  *value = *duration;
  return "";
}

std::string set(const Option& option, std::string_view text, bool* value) {
  if (text != "true" && text != "on" && text != "false" && text != "off")
    return in_quotes(text) + " is neither true nor false; use " + describe_values(option);
  *value = text == "true" || text == "on";
  return "";
}

template <class Enum>
std::string set(const Option& option, std::string_view text, Enum* value) {
  const auto found = std::ranges::find(option.choices, text);
  if (found == option.choices.end()) {
    const std::vector<std::string> names(option.choices.begin(), option.choices.end());
    const std::string near = shardbus_tools::nearest(text, names);
    return in_quotes(text) + " is not one of " + in_words(option.choices, ", ") +
           (near.empty() ? "" : "; did you mean \"" + near + "\"?");
  }
  *value = static_cast<Enum>(found - option.choices.begin());
  return "";
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::string set_list(const Option& option, const std::vector<std::string>& texts,
                     std::vector<std::string>* value) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) {
    for (std::string& part : split(text)) {
      if (std::string problem = check_form(option, part); !problem.empty()) return problem;
      parts.push_back(std::move(part));
    }
  }
  *value = std::move(parts);
  return "";
}

std::string name_from_key(std::string_view prefix, std::string_view key, char between,
                          int (*convert)(int)) {
  std::string name(prefix);
  for (char c : key) {
    const bool gap = c == '.' || c == '_';
    name += gap ? between : static_cast<char>(convert(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string show(const Option&, const std::string* value) {
  return in_quotes(*value);
}
std::string show(const Option&, const std::vector<std::string>* value) {
  std::string text;
  for (const std::string& one : *value) text += (text.empty() ? "" : ", ") + in_quotes(one);
  return "[" + text + "]";
}
std::string show(const Option&, const std::uint32_t* value) {
  return std::to_string(*value);
}
std::string show(const Option&, const milliseconds* value) {
  return in_quotes(shardbus_tools::format_duration(*value));
}
std::string show(const Option&, const bool* value) {
  return *value ? "true" : "false";
}
template <class Enum>
std::string show(const Option& option, const Enum* value) {
  return in_quotes(option.choices.at(static_cast<std::size_t>(*value)));
}

std::string describe_text(const Option& option) {
  switch (option.form) {
    case Form::node_name:
      return "up to 64 of A-Z a-z 0-9 . _ : -";
    case Form::host:
      return "a host name or an IP address";
    case Form::address:
    case Form::optional_address:
      return "tcp://HOST:PORT";
    case Form::seed:
      return "tcp://HOST:PORT, dns://NAME:PORT or file:///PATH";
    case Form::any:
      break;
  }
  return "text of " + std::to_string(option.min) + ".." + std::to_string(option.max) + " bytes";
}

}  // namespace

const std::vector<Option>& option_table() {
  static const std::vector<Option> kTable = [] {
    std::vector<Option> all = identity_options();
    for (std::vector<Option>& more :
         std::vector{placement_options(), time_options(), bound_options()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kTable;
}

std::string flag_name(const Option& option) {
  return name_from_key("--", option.key, '-', [](int c) { return c; });
}

std::string environment_name(const Option& option) {
  return name_from_key("SHARDBUS_", option.key, '_', &std::toupper);
}

std::string describe_values(const Option& option) {
  DaemonOptions any;
  const Field field = option.field(any);
  const std::string min = std::to_string(option.min), max = std::to_string(option.max);
  if (std::holds_alternative<bool*>(field)) return "true or false";
  if (std::holds_alternative<std::uint32_t*>(field)) return "number " + min + ".." + max;
  if (std::holds_alternative<milliseconds*>(field))
    return "duration " + shardbus_tools::format_duration(as_duration(option.min)) + ".." +
           shardbus_tools::format_duration(as_duration(option.max));
  if (std::holds_alternative<std::vector<std::string>*>(field))
    return "list of " + describe_text(option);
  if (!option.choices.empty()) return in_words(option.choices, " or ");
  return describe_text(option);
}

std::string assign(const Option& option, const std::vector<std::string>& texts,
                   DaemonOptions& options) {
  const Field field = option.field(options);
  if (const auto* list = std::get_if<std::vector<std::string>*>(&field))
    return set_list(option, texts, *list);
  if (texts.size() != 1) return "is given " + std::to_string(texts.size()) + " times";
  return std::visit(
      [&](auto* value) -> std::string {
        if constexpr (std::is_same_v<decltype(value), std::vector<std::string>*>) {
          return "";  // Done above.
        } else {
          return set(option, texts.front(), value);
        }
      },
      field);
}

std::string to_toml(const Option& option, const DaemonOptions& options) {
  DaemonOptions copy = options;
  return std::visit([&](auto* value) { return show(option, value); }, option.field(copy));
}

std::string in_quotes(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace shardbusd
