// What every command of shardbusctl shares: the global flags, the connection, output and errors.
#pragma once

#include <chrono>
#include <optional>
#include <shardbus/client.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/exit_codes.hpp"
#include "ctl/payload_json.hpp"

namespace shardbusctl {

using std::chrono::milliseconds;

// The entity type under which nodes answer questions about themselves and their cluster.
inline constexpr const char* kNodeType = "$node";

struct Globals {
  std::vector<std::string> nodes;
  bool json = false;
  milliseconds timeout{5000};
};

// Ends the command; thrown where a command cannot go on, caught in main().
struct Failure {
  Exit code;
  std::string text;
  std::optional<shardbus::Status> status{};
};

[[noreturn]] void fail(Exit code, std::string text);
// Picks the exit code that the error's registry row calls for.
[[noreturn]] void fail(const shardbus::Status& status);
class Session;
// The error of an entity type that nobody hosts, or that a node which has just come does not know.
[[noreturn]] void fail_no_such_type(Session& session, const std::string& type);
// A node that is in no cluster knows of nothing: that is no answer.
void require_cluster(Session& session);
// Prints one line to stderr, or with --json one object: name, text, and the way out.
void print_failure(const Failure& failure, bool json);

// A client of one node of the cluster: answers about the cluster come from the node that was asked.
//
// Errors: all calls end the command by a Failure, except try_ask().
class Session {
 public:
  explicit Session(const Globals& globals);

  // An administrative ask: to the node contacted if `node` is empty.
  Json ask_node(const std::string& node, std::string_view method, const Json& arguments);
  shardbus::Result<Json> try_ask(const shardbus::Outgoing& message, milliseconds timeout);
  Json ask(const shardbus::Outgoing& message, milliseconds timeout);
  void tell(const shardbus::Outgoing& message);

  [[nodiscard]] const Globals& globals() const { return globals_; }

 private:
  static shardbus::Client connect(const Globals& globals);

  const Globals& globals_;
  shardbus::Client client_;
};

// Prints `json` on one line where --json was given, else what `render` makes of it.
template <class Render>
void print(const Globals& globals, const Json& json, Render render);

// Whether lines about what goes on may be written to stderr: with --json that holds one object, so
// only where a person watches.
bool shows_progress(const Globals& globals);
void print_progress(const std::string& line);
void print_json(const Json& json);
void print_text(std::string_view text);

template <class Render>
void print(const Globals& globals, const Json& json, Render render) {
  if (globals.json) {
    print_json(json);
  } else {
    print_text(render(json));
  }
}

}  // namespace shardbusctl
