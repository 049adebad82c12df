// shardbusd: one node of a cluster as a process of its own. bin/README.md is its manual.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <shardbus/shardbus.hpp>
#include <string>
#include <vector>

#include "daemon/builtin_types.hpp"
#include "daemon/config.hpp"
#include "daemon/exit_codes.hpp"
#include "daemon/log.hpp"
#include "daemon/resources.hpp"
#include "daemon/signals.hpp"

namespace shardbusd {
namespace {

using shardbus::Errc;
using shardbus::Node;
using shardbus::Status;

// A node that never became ready owns nothing that a hand-over could save.
constexpr milliseconds kLeaveBeforeReady{1000};

Environment environment_of(char** variables) {
  Environment all;
  for (char** variable = variables; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::size_t equals = std::min(text.find('='), text.size());
    all.emplace_back(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  return all;
}

Exit fail(Exit code, const std::string& text) {
  std::fprintf(stderr, "shardbusd: error: %s\n", text.c_str());
  return code;
}

Exit exit_of(const Status& status) {
  switch (status.code()) {
    case Errc::bad_address:
    case Errc::address_in_use:
      return Exit::address;
    case Errc::exhausted:
      return Exit::resources;
    case Errc::invalid_argument:
      return Exit::usage;
    default:
      return Exit::runtime_failure;
  }
}

// What the ready line tells; the rest of the status is for shardbusctl.
struct Addresses {
  std::string peer, gossip;
  MSGPACK_DEFINE_MAP(peer, gossip)
};

std::string ready_line(const Node& node, const DaemonOptions& options) {
  std::string line = "ready name=" + node.name() + " listen=" + node.listen_address();
  const auto addresses =
      node.entity("$node", "").ask<Addresses>("status", msgpack::type::nil_t(), milliseconds(1000));
  if (addresses) line += " peer=" + addresses->peer + " gossip=" + addresses->gossip;
  return line + " cluster=" + options.node.cluster + " pid=" + std::to_string(::getpid()) + "\n";
}

Exit say(const std::string& text) {
  return std::fputs(text.c_str(), stdout) < 0 ? Exit::runtime_failure : Exit::ok;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Waits until the node takes part in a cluster, then says so once.
void announce_when_ready(const Node& node, const Config& config, std::atomic<bool>& ready) {
  Status up;
  do up = node.wait_ready(milliseconds(60'000));
  while (up.code() == Errc::timeout);
  if (!up) return;
  ready = true;
  const std::string line = ready_line(node, config.options);
  // A closed stdout is no reason to stop serving.
  (void)write_all(STDOUT_FILENO, line);
  if (config.request.ready_fd >= 0 && !write_all(config.request.ready_fd, line))
    config.options.node.log(
        shardbus::LogLevel::warn, "daemon.ready_fd",
        "descriptor " + std::to_string(config.request.ready_fd) + " cannot be written");
}

void log_signal(const DaemonOptions& options, int signal, const char* what) {
  options.node.log(shardbus::LogLevel::info, "daemon.signal",
                   std::string("name=") + (signal == SIGINT ? "SIGINT" : "SIGTERM") + " " + what);
}

// Hands everything over, unless a second signal comes.
Exit leave(Node& node, Signals& signals, const DaemonOptions& options, milliseconds deadline) {
  Status left;
  std::optional<Background> leaving(std::in_place, [&] { left = node.leave(deadline); });
  if (const int second = signals.wait(&*leaving); second != 0) {
    log_signal(options, second, "second signal: stopping at once");
    std::_Exit(static_cast<int>(Exit::second_signal));
  }
  leaving.reset();  // joins: a readable descriptor alone does not order what the thread wrote
  if (left) return Exit::ok;
  return fail(left.code() == Errc::timeout ? Exit::leave_timeout : Exit::runtime_failure,
              "leaving the cluster: " + left.message());
}

Exit serve(Node& node, Signals& signals, const Config& config) {
  const DaemonOptions& options = config.options;
  std::atomic<bool> ready = false;
  // Ends at latest when the node stops, as wait_ready() does.
  const Background announcing([&] { announce_when_ready(node, config, ready); });
  int signal = signals.wait(&announcing);
  if (signal == 0 && !ready)
    return fail(Exit::runtime_failure, "the node stopped before it was ready");
  if (signal == 0) signal = signals.wait();
  log_signal(options, signal, ready ? "leaving the cluster" : "not ready yet: stopping");
  const milliseconds deadline =
      ready ? options.leave_timeout : std::min(kLeaveBeforeReady, options.leave_timeout);
  const Exit end = leave(node, signals, options, deadline);
  node.stop();
  if (!ready || end == Exit::ok)
    options.node.log(shardbus::LogLevel::info, "daemon.stopped", "name=" + node.name());
  return ready ? end : Exit::ok;
}

Exit run(Config& config, Signals& signals) {
  DaemonOptions& options = config.options;
  options.node.log = stderr_sink(options.log_format, options.log_level);
  if (const std::string missing = raise_descriptor_limit(options.node.sessions); !missing.empty())
    return fail(Exit::resources, missing);
  shardbus::Result<Node> node = Node::start(options.node);
  if (!node) return fail(exit_of(node.error()), node.error().message());
  options.node.log(shardbus::LogLevel::info, "daemon.started",
                   "name=" + node->name() + " listen=" + node->listen_address());
  if (options.builtin_types) {
    if (const Status hosted = host_builtin_types(*node, options.builtin); !hosted)
      return fail(exit_of(hosted), "built-in entity types: " + hosted.message());
  }
  return serve(*node, signals, config);
}

Exit refuse(const Config& config) {
  for (const std::string& problem : config.problems) fail(Exit::usage, problem);
  return Exit::usage;
}

// The start needs them, too; an address is tried only by binding it.
Exit check_resources(const Config& config) {
  constexpr std::string_view kFile = "file://";
  for (const std::string& seed : config.options.node.seeds) {
    // It may come later: a node that waits for it goes on trying.
    const bool absent = seed.starts_with(kFile) && ::access(seed.c_str() + kFile.size(), R_OK) != 0;
    if (absent)
      std::fprintf(stderr, "shardbusd: warning: seeds: %s cannot be read: %s\n", seed.c_str(),
                   std::strerror(errno));
  }
  const std::string missing = raise_descriptor_limit(config.options.node.sessions);
  return missing.empty() ? Exit::ok : fail(Exit::resources, missing);
}

Exit main_with(const std::vector<std::string>& arguments, const Environment& environment) {
  Config config = load_config(arguments, environment);
  const Request& request = config.request;
  if (request.action == Action::help) return say(request.help);
  if (request.action == Action::version)
    return say(std::string("shardbusd ") + shardbus::kVersion + "\n");
  if (!config.problems.empty()) return refuse(config);
  if (request.action == Action::check_config) return check_resources(config);
  if (request.action == Action::print_config)
    return say(request.json ? print_config_json(config) : print_config(config));
  Signals signals;
  return run(config, signals);
}

}  // namespace
}  // namespace shardbusd

int main(int count, char** arguments) {
  try {
    return static_cast<int>(shardbusd::main_with({arguments + 1, arguments + count},
                                                 shardbusd::environment_of(::environ)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shardbusd: error: %s\n", error.what());
    return static_cast<int>(shardbusd::Exit::runtime_failure);
  }
}
