#include "daemon/config.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/nearest.hpp"

namespace shardbusd {
namespace {

constexpr std::string_view kPrefix = "SHARDBUS_";

// Set by others for good reasons: shardbusctl's own variable, and what Kubernetes puts into every
// container beside a service called "shardbus".
bool belongs_to_others(std::string_view name) {
  return name == "SHARDBUS_NODE" || name == "SHARDBUS_PORT" || name.starts_with("SHARDBUS_PORT_") ||
         name.starts_with("SHARDBUS_SERVICE_");
}

std::string unknown_variable(const std::string& name) {
  std::vector<std::string> names;
  for (const Option& option : option_table()) names.push_back(environment_name(option));
  const std::string near = shardbus_tools::nearest(name, names);
  return near.empty() ? "no such option; see shardbusd --help"
                      : "no such option; did you mean " + near + "?";
}

// Sources come from the weakest to the strongest, so that a later setting replaces an earlier one.
// A value that is overridden is checked all the same: it would bite when the flag goes away.
void apply_source(const Source& source, Config& config) {
  for (const Setting& setting : source) {
    std::string problem = setting.mistake;
    if (problem.empty()) {
      const Option& option = option_table()[setting.option];
      problem = assign(option, setting.texts, config.options);
      if (!problem.empty()) problem.insert(0, std::string(option.key) + ": ");
      config.origins[setting.option] = setting.where;
    }
    if (!problem.empty()) config.problems.push_back(setting.where + ": " + problem);
  }
}

// The strongest source of an option, for mistakes that only two options together make.
std::string origin_of(const Config& config, std::string_view key) {
  const auto found = std::ranges::find(option_table(), key, &Option::key);
  return config.origins[static_cast<std::size_t>(found - option_table().begin())];
}

struct HostAndPort {
  std::string_view host;
  std::uint32_t port = 0;
};

// Of an address whose form was checked.
HostAndPort split_address(std::string_view address) {
  const std::size_t begin = address.find("//") + 2;
  const std::size_t colon = address.rfind(':');
  HostAndPort parts{address.substr(begin, colon - begin)};
  for (const char digit : address.substr(colon + 1))
    parts.port = parts.port * 10 + static_cast<std::uint32_t>(digit - '0');
  return parts;
}

// What Node::start would refuse although each option by itself is right.
void check_together(Config& config) {
  const shardbus::NodeOptions& node = config.options.node;
  const HostAndPort listen = split_address(node.listen);
  const auto refuse = [&](const std::string& problem) {
    config.problems.push_back(origin_of(config, "listen") + ": listen: " + problem);
  };
  const bool wildcard = listen.host == "0.0.0.0" || listen.host == "*" || listen.host == "[::]" ||
                        listen.host == "::";
  if (wildcard && node.advertise.empty())
    refuse(in_quotes(node.listen) + " needs advertise: the host that others dial");
  const auto refuse_policy = [&](const std::string& key, const std::string& problem) {
    config.problems.push_back(origin_of(config, key) + ": " + key + ": " + problem);
  };
  const bool by_size = node.downing == shardbus::DowningPolicy::static_quorum;
  if (by_size && node.quorum_size == 0)
    refuse_policy("downing",
                  "static-quorum needs quorum_size: how many members must reach each other");
  if (!by_size && node.quorum_size != 0)
    refuse_policy("quorum_size", "belongs to downing = static-quorum alone");
  if (node.downing != shardbus::DowningPolicy::keep_oldest && !node.down_if_alone)
    refuse_policy("down_if_alone", "belongs to downing = keep-oldest alone");
  if (node.downing == shardbus::DowningPolicy::lease_majority)
    refuse_policy("downing", "lease-majority needs a lease store, not available yet");
  for (const std::string& seed : node.seeds) {
    const bool address = !seed.starts_with("file://");
    if (address && split_address(seed).port == 0)
      refuse_policy("seeds", in_quotes(seed) + ": nobody can be reached at port 0");
  }
  constexpr std::uint32_t kLastWithTwoAfter = 65533;
  const bool follows = node.peer_listen.empty() || node.gossip_listen.empty();
  if (follows && listen.port > kLastWithTwoAfter)
    refuse("the ports after " + std::to_string(listen.port) +
           " are for peer_listen and gossip_listen; choose one below 65534, or set both");
}

}  // namespace

Source read_environment(const Environment& environment) {
  Source source;
  const std::vector<Option>& table = option_table();
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kPrefix)) continue;
    const auto found = std::ranges::find(table, name, &environment_name);
    if (found != table.end()) {
      const auto index = static_cast<std::size_t>(found - table.begin());
      source.push_back({"environment " + name, index, {value}, ""});
    } else if (!belongs_to_others(name)) {
      source.push_back({"environment " + name, 0, {}, unknown_variable(name)});
    }
  }
  return source;
}

Config load_config(const std::vector<std::string>& arguments, const Environment& environment) {
  Config config;
  config.origins.assign(option_table().size(), "default");
  const Source flags = read_flags(arguments, config.request);
  apply_source(read_environment(environment), config);
  if (!config.request.file.empty()) apply_source(read_file(config.request.file), config);
  apply_source(flags, config);
  check_together(config);
  return config;
}

std::string print_config(const Config& config) {
  std::string text, section;
  for (std::size_t i = 0; i < option_table().size(); ++i) {
    const Option& option = option_table()[i];
    std::string key(option.key);
    if (const std::size_t dot = key.find('.'); dot != std::string::npos) {
      if (section != key.substr(0, dot)) {
        section = key.substr(0, dot);
        text += "\n[" + section + "]\n";
      }
      key = key.substr(dot + 1);
    }
    std::string line = key + " = " + to_toml(option, config.options);
    line.resize(std::max<std::size_t>(line.size() + 2, 48), ' ');
    text += line + "# " + config.origins[i] + "\n";
  }
  return text;
}

std::string print_config_json(const Config& config) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < option_table().size(); ++i) {
    const Option& option = option_table()[i];
    // Every value that TOML writes for an option is JSON, too.
    all[std::string(option.key)] = {
        {"value", nlohmann::ordered_json::parse(to_toml(option, config.options))},
        {"origin", config.origins[i]}};
  }
  return all.dump(2) + "\n";
}

}  // namespace shardbusd
