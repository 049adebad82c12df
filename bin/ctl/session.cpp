#include "ctl/session.hpp"

#include <netdb.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace shardbusctl {
namespace {

using shardbus::Errc;
using shardbus::Status;

Exit exit_of(const Status& status) {
  switch (status.code()) {
    case Errc::unreachable:
    case Errc::cluster_mismatch:
    case Errc::version_mismatch:
      return Exit::unreachable;
    case Errc::bad_address:  // what --node says is no address; nothing was tried
    case Errc::invalid_argument:
      return Exit::usage;
    default:
      return shardbus::error_info(status.code()).may_have_happened ? Exit::unknown_outcome
                                                                   : Exit::failed;
  }
}

// What a person can do about the error.
std::string way_out(const Status& status) {
  switch (status.code()) {
    case Errc::unreachable:
      return "check that shardbusd runs there, and that this is its listen port, not that for "
             "peers or gossip; name other nodes with --node or SHARDBUS_NODE";
    case Errc::no_such_type:
      return "`shardbusctl shards` lists the entity types";
    case Errc::no_such_node:
      return "`shardbusctl members` lists the names of the nodes";
    case Errc::stale_plan:
      return "it had no effect; `shardbusctl plan` gives a new one";
    case Errc::not_ready:
      return "`shardbusctl status` tells what the node waits for";
    default:
      break;
  }
  const shardbus::ErrorInfo& info = shardbus::error_info(status.code());
  if (info.may_have_happened)
    return "it may have had its effect: repeat it only if that does no harm";
  if (info.retry == shardbus::Retry::no) return "";
  return "it had no effect and may be repeated";
}

// Says of every node whose host has no address that it has none; empty if all have one.
std::string unresolvable(const std::vector<std::string>& nodes) {
  std::string text;
  for (const std::string& node : nodes) {
    const std::size_t begin = node.find("//") + 2;
    const std::string host = node.substr(begin, node.rfind(':') - begin);
    addrinfo hints{};
    hints.ai_family = AF_INET;  // as the sockets are
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
    if (error == 0) ::freeaddrinfo(found);
    if (error == 0 || host.starts_with('[')) continue;
    if (!text.empty()) text += "; ";
    text.append(node).append(": the name ").append(host);
    text.append(" cannot be resolved: ").append(::gai_strerror(error));
  }
  return text;
}

}  // namespace

void fail(Exit code, std::string text) {
  throw Failure{code, std::move(text), {}};
}

void fail(const Status& status) {
  throw Failure{exit_of(status), status.message(), status};
}

void require_cluster(Session& session) {
  const Json status = session.ask_node("", "status", nullptr);
  if (status.value("members", 1) == 0) fail(Status(Errc::not_ready, status.value("why", "")));
}

void fail_no_such_type(Session& session, const std::string& type) {
  require_cluster(session);
  const Json status = session.ask_node("", "status", nullptr);
  // Who has just come may not have heard of the types yet.
  if (!status.value("ready", true)) {
    fail(Status(Errc::not_ready,
                "it does not know the type " + type + ", and " + status.value("why", "")));
  }
  fail(Status(Errc::no_such_type, type));
}

void print_failure(const Failure& failure, bool json) {
  const std::string hint = failure.status ? way_out(*failure.status) : "";
  if (!json) {
    const std::string tail = hint.empty() ? "" : " (" + hint + ")";
    std::fprintf(stderr, "shardbusctl: error: %s%s\n", failure.text.c_str(), tail.c_str());
    return;
  }
  Json error = {{"exit_code", static_cast<int>(failure.code)}, {"text", failure.text}};
  if (failure.status) {
    const shardbus::ErrorInfo& info = shardbus::error_info(failure.status->code());
    error["number"] = static_cast<int>(failure.status->code());
    error["name"] = info.name;
    error["may_have_happened"] = info.may_have_happened;
    error["hint"] = hint;
  }
  const std::string line =
      Json{{"error", error}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::fprintf(stderr, "%s\n", line.c_str());
}

Session::Session(const Globals& globals) : globals_(globals), client_(connect(globals)) {}

shardbus::Client Session::connect(const Globals& globals) {
  shardbus::ClientOptions options;
  options.nodes = globals.nodes;
  // What is asked here is about the node that was named, so nothing may go round it.
  options.smart = false;
  options.connect_timeout = globals.timeout;
  // The error tells all that a log would; a second text would be noise.
  options.log = [](shardbus::LogLevel, std::string_view, std::string_view) {};
  auto client = shardbus::Client::connect(options);
  if (!client) {
    const std::string unknown = unresolvable(globals.nodes);
    if (client.error().code() != Errc::unreachable || unknown.empty()) fail(client.error());
    fail(Status(Errc::unreachable, unknown));
  }
  return std::move(*client);
}

Json Session::ask_node(const std::string& node, std::string_view method, const Json& arguments) {
  const auto payload = json_to_msgpack(arguments.dump());
  if (!payload) fail(payload.error());
  auto reply = try_ask({kNodeType, node, method, *payload}, globals_.timeout);
  if (reply) return std::move(*reply);
  // Who refuses knows the entity type only, which says nothing to a person.
  if (reply.error().code() == Errc::no_such_node && !node.empty())
    fail(Status(Errc::no_such_node, "no member has the name " + node));
  fail(reply.error());
}

shardbus::Result<Json> Session::try_ask(const shardbus::Outgoing& message, milliseconds timeout) {
  const auto reply = client_.messenger()->ask_and_wait(message, timeout);
  if (!reply) return reply.error();
  return msgpack_to_json(*reply);
}

Json Session::ask(const shardbus::Outgoing& message, milliseconds timeout) {
  auto reply = try_ask(message, timeout);
  if (!reply) fail(reply.error());
  return std::move(*reply);
}

void Session::tell(const shardbus::Outgoing& message) {
  if (const Status told = client_.messenger()->tell(message); !told) fail(told);
}

bool shows_progress(const Globals& globals) {
  return !globals.json || ::isatty(STDERR_FILENO) == 1;
}

void print_progress(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

void print_json(const Json& json) {
  print_text(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail(Exit::failed, "stdout cannot be written");
}

}  // namespace shardbusctl
