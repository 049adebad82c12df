#include "ctl/commands.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <thread>

#include "common/duration.hpp"
#include "ctl/operate.hpp"
#include "ctl/render.hpp"

namespace shardbusctl {

CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& help) {
  CLI::App* command = app.add_subcommand(name, help);
  command->fallthrough();  // Global flags may follow the command.
  return *command;
}

namespace {

// Keeps arguments alive as long as the callback that uses them.
template <class Arguments, class Run>
void on_parsed(CLI::App& command, std::shared_ptr<Arguments> arguments, Run run) {
  command.callback([arguments = std::move(arguments), run] { run(*arguments); });
}

void add_status(CLI::App& app, const Globals& globals) {
  struct Arguments {
    std::string node;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = add_command(app, "status", "What one node knows and does.");
  command.add_option("NODE", arguments->node, "Name of the node; default: the one contacted.");
  on_parsed(command, arguments, [&globals](const Arguments& given) {
    Session session(globals);
    print(globals, session.ask_node(given.node, "status", nullptr), &render_status);
  });
}

void add_members(CLI::App& app, const Globals& globals) {
  CLI::App& command = add_command(app, "members", "The nodes of the cluster.");
  command.callback([&globals] {
    Session session(globals);
    const Json members = session.ask_node("", "members", nullptr);
    if (members.empty()) require_cluster(session);
    print(globals, members, &render_members);
  });
}

void add_shards(CLI::App& app, const Globals& globals) {
  struct Arguments {
    std::string type;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = add_command(app, "shards", "Which node owns how many shards of which type.");
  command.add_option("--type", arguments->type, "Only this type, with one row per shard.");
  on_parsed(command, arguments, [&globals](const Arguments& given) {
    Session session(globals);
    const Json type = given.type.empty() ? Json(nullptr) : Json(given.type);
    const Json found = session.ask_node("", "shards", {{"type", type}});
    if (found.empty()) require_cluster(session);
    if (found.empty() && !given.type.empty()) fail_no_such_type(session, given.type);
    print(globals, found,
          [&](const Json& types) { return render_shards(types, !given.type.empty()); });
  });
}

struct EntityArguments {
  std::string type, id, method, json = "null";
  milliseconds timeout{5000};
};

void add_entity(CLI::App& command, EntityArguments& arguments) {
  command.add_option("TYPE", arguments.type, "Entity type.")->required();
  command.add_option("ID", arguments.id, "Entity id.")->required();
}

void add_message(CLI::App& command, EntityArguments& arguments) {
  add_entity(command, arguments);
  command.add_option("METHOD", arguments.method, "Method of the entity.")->required();
  command.add_option("JSON", arguments.json, "Payload; - reads it from stdin; default: null.");
}

std::string payload_of(const EntityArguments& arguments) {
  std::string json = arguments.json;
  if (json == "-") json.assign(std::istreambuf_iterator<char>(std::cin), {});
  const auto payload = json_to_msgpack(json);
  if (!payload) fail(Exit::usage, "JSON: " + payload.error().text());
  return *payload;
}

std::string hex_of(std::string_view text) {
  std::string hex;
  for (const char c : text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

// Ids are bytes; most are text, and then a person wants to read it.
void show_as_text(Json& object, const std::string& name) {
  if (!object.is_object() || !object.contains(name) || !object[name].contains("$bin")) return;
  const auto packed = json_to_msgpack(Json{{"$str", object[name]["$bin"]}}.dump());
  if (!packed) return;
  if (const auto text = msgpack_to_json(*packed); text && text->is_string()) object[name] = *text;
}

void add_where(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<EntityArguments>();
  CLI::App& command = add_command(app, "where", "Hash, shard and owner of an entity, and why.");
  add_entity(command, *arguments);
  on_parsed(command, arguments, [&globals](const EntityArguments& given) {
    Session session(globals);
    Json where =
        session.ask_node("", "where", {{"type", given.type}, {"id", {{"$bin", hex_of(given.id)}}}});
    if (!where.contains("shard")) fail_no_such_type(session, given.type);
    if (where.value("owner", Json()).is_null()) require_cluster(session);
    show_as_text(where, "tag");
    where["id"] = given.id;
    print(globals, where, &render_where);
  });
}

void add_tell(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<EntityArguments>();
  CLI::App& command = add_command(app, "tell", "Send a message; nothing comes back.");
  add_message(command, *arguments);
  on_parsed(command, arguments, [&globals](const EntityArguments& given) {
    const std::string payload = payload_of(given);
    Session session(globals);
    session.tell({given.type, given.id, given.method, payload});
    // A tell is only handed over. An answer to a later question to the same node shows that it
    // has left this process, which is about to end.
    (void)session.ask_node("", "status", nullptr);
    if (globals.json) print_json({{"told", true}});
  });
}

// The built-in types look at a payload before they do anything with it.
[[noreturn]] void refuse_ask(const EntityArguments& given, const shardbus::Status& error) {
  const bool builtin = given.type == "counter" || given.type == "kv" || given.type == "echo";
  if (error.code() != shardbus::Errc::decode_failed || !builtin) fail(error);
  fail(Exit::failed, error.message() + "; it had no effect");
}

void add_ask(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<EntityArguments>();
  CLI::App& command = add_command(app, "ask", "Send a message and print the reply as JSON.");
  add_message(command, *arguments);
  on_parsed(command, arguments, [&globals](const EntityArguments& given) {
    const std::string payload = payload_of(given);
    Session session(globals);
    const auto answer =
        session.try_ask({given.type, given.id, given.method, payload}, globals.timeout);
    if (!answer) refuse_ask(given, answer.error());
    const Json& reply = *answer;
    print_json(globals.json ? Json{{"reply", reply}} : reply);
  });
}

// What a person loses by removing a node that lives.
std::string cost_of_removing(Session& session, const std::string& node) {
  constexpr milliseconds kPatience{1000};
  std::string entities = "its entities";
  const auto payload = json_to_msgpack("null");
  if (const auto status = session.try_ask({kNodeType, node, "status", *payload}, kPatience)) {
    entities = "its " + cell(status->value("entities", Json())) + " entities (in " +
               cell(status->value("shards_owned", Json())) + " shards)";
  }
  return node + " is reachable: " + entities +
         " would lose their state and the asks that they work on; stop it with SIGTERM, which "
         "hands "
         "them over, or repeat with --force. A node that has just died is seen as unreachable in "
         "a few seconds: see `shardbusctl members`";
}

// `down` is for a node that nobody can ask any more; one that can be asked should leave by itself.
void refuse_living(Session& session, const std::string& node) {
  for (const Json& one : session.ask_node("", "members", nullptr)) {
    if (one.value("name", "") == node && one.value("reachable", false))
      fail(Exit::failed, cost_of_removing(session, node));
  }
}

void add_down(CLI::App& app, const Globals& globals) {
  struct Arguments {
    std::string node;
    bool force = false;
    std::string actor = default_actor();
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command =
      add_command(app, "down", "Remove a node that is gone for good; its shards are re-homed.");
  command.add_option("NODE", arguments->node, "Name of the node.")->required();
  command.add_flag("--force", arguments->force)
      ->description("Also a node that is reachable; the state of its entities is lost.");
  command.add_option("--actor", arguments->actor, "Who the log of the node contacted says it was.")
      ->capture_default_str();
  on_parsed(command, arguments, [&globals](const Arguments& given) {
    Session session(globals);
    if (!given.force) refuse_living(session, given.node);
    (void)session.ask_node("", "down", {{"node", given.node}, {"actor", given.actor}});
    print(globals, {{"down", given.node}},
          [&](const Json&) { return given.node + " is marked down\n"; });
  });
}

struct WaitArguments {
  std::size_t members = 1;
  std::vector<std::string> types;
};

// Gives an empty text, and in `count` the members, once all that was asked for is true on each.
std::string what_is_missing(Session& session, const WaitArguments& wanted, std::size_t& count) {
  const Json members = session.ask_node("", "members", nullptr);
  std::vector<std::string> up;
  for (const Json& one : members) {
    if (one.value("state", "") == "up" && one.value("reachable", false))
      up.push_back(one.value("name", ""));
  }
  if (up.size() < wanted.members || up.size() != members.size()) {
    const Json status = session.ask_node("", "status", nullptr);
    const std::string why = status.value("why", "");
    return std::to_string(up.size()) + " of " +
           std::to_string(std::max(wanted.members, members.size())) + " members are up" +
           (why.empty() ? "" : "; the node contacted: " + why);
  }
  count = up.size();
  for (const std::string& name : up) {
    const Json status = session.ask_node(name, "status", nullptr);
    if (!status.value("ready", false))
      return name + " is not ready: " + status.value("why", std::string("no reason given"));
    if (status.value("up", std::size_t{0}) != up.size())
      return name + " sees " + cell(status.value("up", Json())) + " members";
  }
  const Json types = session.ask_node("", "shards", {{"type", nullptr}});
  const auto unowned = [](const Json& shard) { return shard.at(1).is_null(); };
  for (const std::string& type : wanted.types) {
    const auto hosted = std::ranges::any_of(types, [&](const Json& one) {
      return one.value("type", "") == type && !std::ranges::all_of(one.at("shards"), unowned);
    });
    if (!hosted) return "nobody hosts the type " + type;
  }
  for (const Json& type : types) {
    // Of a type that lost its last host nobody owns anything: that holds up nobody else.
    const Json& shards = type.at("shards");
    if (std::ranges::any_of(shards, unowned) && !std::ranges::all_of(shards, unowned))
      return "shards of " + cell(type["type"]) + " have no owner";
  }
  return "";
}

void add_wait(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<WaitArguments>();
  CLI::App& command =
      add_command(app, "wait", "Wait (--timeout) until all members agree and are ready.");
  command.add_option("--members", arguments->members, "At least so many members.")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000}));
  command.add_option("--type", arguments->types, "An entity type that is hosted. Repeatable.");
  on_parsed(command, arguments, [&globals](const WaitArguments& wanted) {
    constexpr milliseconds kBetweenLooks{25};
    const auto deadline = std::chrono::steady_clock::now() + globals.timeout;
    std::string missing;
    std::size_t count = 0;
    while (std::chrono::steady_clock::now() < deadline) {
      try {
        Session session(globals);
        for (; !(missing = what_is_missing(session, wanted, count)).empty() &&
               std::chrono::steady_clock::now() < deadline;)
          std::this_thread::sleep_for(kBetweenLooks);
        if (missing.empty()) {
          print(globals, {{"ready", true}, {"members", count}},
                [&](const Json&) { return "ready members=" + std::to_string(count) + "\n"; });
          return;
        }
      } catch (const Failure& failure) {
        missing = failure.text;  // A node that starts or dies is what waiting is for.
        std::this_thread::sleep_for(kBetweenLooks);
      }
    }
    fail(Exit::not_met, "not ready in time: " + missing);
  });
}

}  // namespace

std::string default_actor() {
  const char* user = std::getenv("USER");
  return user != nullptr && *user != '\0' ? user : "operator";
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, milliseconds& value,
                          const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const auto duration = shardbus_tools::parse_duration(text);
            if (!duration)
              throw CLI::ValidationError(name,
                                         "'" + text + "' is not a duration such as 5s, 200ms");
            value = *duration;
          },
          help + " (default " + shardbus_tools::format_duration(value) + ")")
      ->type_name("DURATION");
}

void add_commands(CLI::App& app, const Globals& globals) {
  add_status(app, globals);
  add_members(app, globals);
  add_shards(app, globals);
  add_where(app, globals);
  add_tell(app, globals);
  add_ask(app, globals);
  add_down(app, globals);
  add_wait(app, globals);
  add_operate(app, globals);
}

}  // namespace shardbusctl
