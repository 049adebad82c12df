#include "ctl/operate.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <regex>

#include "ctl/commands.hpp"
#include "ctl/coordinator.hpp"
#include "ctl/render.hpp"
#include "ctl/render_moves.hpp"

namespace shardbusctl {
namespace {

using Clock = std::chrono::steady_clock;

struct OperateArguments {
  std::string node;
  std::string shard;
  std::string plan;
  std::string actor;
  bool pin = false;
  bool suspend = false;
  bool resume = false;
  bool undo = false;
  CLI::Option* deadline_given = nullptr;
  milliseconds deadline{60'000};
};

void add_actor(CLI::App& command, OperateArguments& arguments) {
  arguments.actor = default_actor();
  command.add_option("--actor", arguments.actor, "Who the history says it was.")
      ->capture_default_str();
}

struct ShardArgument {
  std::string type;
  std::uint32_t number = 0;
};

ShardArgument parse_shard(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  ShardArgument shard;
  if (colon != std::string::npos && colon != 0) {
    shard.type = text.substr(0, colon);
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, shard.number);
    if (parsed.ec == std::errc{} && parsed.ptr == end) return shard;
  }
  fail(Exit::usage, "'" + text + "' is no shard; give TYPE:NUMBER, such as counter:17 (see " +
                        "`shardbusctl shards --type TYPE`)");
}

Json order(const std::string& name, const OperateArguments& given) {
  Json order = {{"order", name}, {"actor", given.actor}};
  if (!given.node.empty()) order["node"] = given.node;
  if (!given.plan.empty()) order["plan"] = given.plan;
  if (!given.shard.empty()) {
    const ShardArgument shard = parse_shard(given.shard);
    order["type"] = shard.type;
    order["shard"] = shard.number;
  }
  return order;
}

bool has(const Json& names, const std::string& name) {
  return std::ranges::any_of(names, [&](const Json& one) { return one == name; });
}

// An order that is in the table of the node contacted, too, outlives the coordinator.
void order_and_see(Session& session, const std::string& name, const OperateArguments& given,
                   const std::function<bool(const Json&)>& seen) {
  (void)ask_coordinator(session, "order", order(name, given));
  const auto done = [&] { return seen(session.ask_node("", "moves", nullptr)); };
  if (!wait_until(session.globals().timeout, done, {}))
    fail(Exit::not_met, name + " was taken, but " + "the node contacted has not heard of it yet");
}

// The rows of a type's shards; empty: the node contacted knows of none, as it may have just come.
Json rows_of(Session& session, const std::string& type) {
  const Json types = session.ask_node("", "shards", {{"type", type}});
  return types.empty() ? Json::array() : types.at(0).at("shards");
}

// Ends the command unless the type is hosted and has that shard. Gives its row.
Json existing(Session& session, const ShardArgument& shard) {
  const Json rows = rows_of(session, shard.type);
  if (rows.empty()) fail_no_such_type(session, shard.type);
  if (shard.number >= rows.size())
    fail(Exit::failed, "there is no shard " + shard.type + ":" + std::to_string(shard.number) +
                           ": " + shard.type + " has " + std::to_string(rows.size()) +
                           " shards, 0.." + std::to_string(rows.size() - 1));
  return rows.at(shard.number);
}

void add_cordon(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<OperateArguments>();
  CLI::App& command = add_command(app, "cordon", "Give a node no more shards; it keeps its own.");
  command.add_option("NODE", arguments->node, "Name of the node.")->required();
  add_actor(command, *arguments);
  command.callback([&globals, arguments] {
    Session session(globals);
    order_and_see(session, "cordon", *arguments,
                  [&](const Json& moves) { return has(moves.at("cordoned"), arguments->node); });
    print(globals, {{"cordoned", arguments->node}},
          [&](const Json&) { return arguments->node + " is cordoned\n"; });
  });
}

void add_uncordon(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<OperateArguments>();
  CLI::App& command = add_command(app, "uncordon", "Undo `cordon` and `drain`.");
  command.add_option("NODE", arguments->node, "Name of the node.")->required();
  add_actor(command, *arguments);
  command.callback([&globals, arguments] {
    Session session(globals);
    order_and_see(session, "uncordon", *arguments, [&](const Json& moves) {
      return !has(moves.at("cordoned"), arguments->node) &&
             !has(moves.at("draining"), arguments->node);
    });
    print(globals, {{"uncordoned", arguments->node}},
          [&](const Json&) { return arguments->node + " may have shards again\n"; });
  });
}

// Shards that a node owns, or owned when it died, by type.
using Owned = std::map<std::string, std::size_t>;

// Nothing: the node contacted knows of no type, as it may have just come.
std::optional<Owned> owned_by(Session& session, const std::string& node) {
  Owned owned;
  const Json types = session.ask_node("", "shards", {{"type", nullptr}});
  if (types.empty()) return std::nullopt;
  for (const Json& type : types) {
    for (const Json& shard : type.at("shards")) {
      if (shard.at(1) == node || shard.at(1) == node + " (gone)") ++owned[type.value("type", "")];
    }
  }
  return owned;
}

std::size_t sum(const Owned& owned) {
  std::size_t total = 0;
  for (const auto& [type, count] : owned) total += count;
  return total;
}

// What is in the way of a drain, for a person.
std::string why_left(Session& session, const Owned& left) {
  std::string text;
  for (const auto& [type, count] : left)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " of " + type;
  const Json moves = ask_coordinator(session, "moves", nullptr);
  const Json& open = moves.at("open");
  if (open.empty()) return text + "; no move is under way: does another node host these types?";
  text += "; " + std::to_string(open.size()) + " moves under way, the longest since ";
  std::uint64_t longest = 0;
  for (const Json& move : open) longest = std::max(longest, move.value("for_ms", std::uint64_t{0}));
  return text + std::to_string(longest) + " ms";
}

// As `members` tells it; null: it is none. Nothing: the node contacted is in no cluster.
std::optional<Json> member(Session& session, const std::string& node) {
  const Json members = session.ask_node("", "members", nullptr);
  if (members.empty()) return std::nullopt;
  for (const Json& one : members) {
    if (one.value("name", "") == node) return one;
  }
  return Json();
}

// Looks whether somebody still moves shards off a node.
class DrainWatch {
 public:
  DrainWatch(Session& session, std::string node)
      : session_(session),
        node_(std::move(node)),
        before_(incarnation(member(session_, node_).value_or(Json()))) {}

  // Why nobody does any more; empty: somebody does, or the node is empty.
  std::string why_over(bool empty) {
    const std::optional<Json> found = member(session_, node_);
    reachable_ = false;
    if (!found) return "";
    const Json& now = *found;
    if (incarnation(now) != before_) {
      return node_ + " ended while it was drained; if it did not leave in order, `shardbusctl " +
             "history` names the shards that were `lost` with it; a node of that name gets no " +
             "shards until `uncordon`";
    }
    reachable_ = !now.is_null() && now.value("reachable", false);
    const bool draining = !now.is_null() && now.value("draining", false);
    const bool taken_back = seen_ && !draining && !empty;
    seen_ = seen_ || draining;
    return taken_back ? "somebody took the drain of " + node_ + " back" : "";
  }
  // At the last look: the table of a node that died may name no owner before anybody removed it.
  [[nodiscard]] bool reachable() const { return reachable_; }

 private:
  static std::string incarnation(const Json& member) {
    return member.is_null() ? "" : cell(member.at("incarnation"));
  }

  Session& session_;
  std::string node_;
  std::string before_;
  bool reachable_ = false;
  bool seen_ = false;  // the node that is asked may hear of the order later than the coordinator
};

void drain(const Globals& globals, const OperateArguments& given) {
  if (given.undo && given.deadline_given->count() == 0)
    fail(Exit::usage,
         "--undo-if-late needs --deadline, as it takes the drain back when that passes; to take "
         "one back now: shardbusctl uncordon " +
             given.node);
  Session session(globals);
  const auto begin = Clock::now();
  const std::optional<Owned> had = owned_by(session, given.node);
  const std::size_t before = sum(had.value_or(Owned()));
  DrainWatch watch(session, given.node);
  (void)ask_coordinator(session, "order", order("drain", given));
  Owned left = had.value_or(Owned());
  std::string over;
  const auto done = [&] {
    const std::optional<Owned> now = owned_by(session, given.node);
    if (had && !now) return false;
    left = now.value_or(Owned());
    over = watch.why_over(left.empty());
    return (left.empty() && watch.reachable()) || !over.empty();
  };
  const auto progress = [&] {
    return "drain " + given.node + ": " + std::to_string(before - std::min(before, sum(left))) +
           " of " + std::to_string(before) + " shards moved";
  };
  if (shows_progress(globals))
    print_progress("drain " + given.node + ": 0 of " + std::to_string(before) + " shards moved");
  if (!wait_until(given.deadline, done, progress_of(globals, progress))) {
    const std::string why = why_left(session, left);
    if (given.undo) (void)ask_coordinator(session, "order", order("uncordon", given));
    fail(Exit::not_met, given.node + " is not drained in time: " + why +
                            (given.undo ? "; undone, moves under way come to their end"
                                        : "; it goes on, `uncordon` undoes it"));
  }
  if (!over.empty()) fail(Exit::not_met, over);
  const auto ms = std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count();
  print(globals, {{"drained", given.node}, {"shards", before}, {"ms", ms}}, [&](const Json&) {
    return given.node + " is drained: " + std::to_string(before) + " shards moved in " +
           std::to_string(ms) + " ms\n";
  });
}

void add_drain(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<OperateArguments>();
  CLI::App& command = add_command(app, "drain", "Move all shards off a node, and give it no more.");
  command.add_option("NODE", arguments->node, "Name of the node.")->required();
  arguments->deadline_given =
      add_duration(command, "--deadline", arguments->deadline, "How long to wait for it");
  command.add_flag("--undo-if-late,--undo", arguments->undo)
      ->description(
          "Uncordon the node if it is not drained by the --deadline. To take a drain back: "
          "`uncordon`.");
  add_actor(command, *arguments);
  command.callback([&globals, arguments] { drain(globals, *arguments); });
}

bool is_member(Session& session, const std::string& node) {
  return std::ranges::any_of(session.ask_node("", "members", nullptr),
                             [&](const Json& one) { return one.value("name", "") == node; });
}

void move(const Globals& globals, const OperateArguments& given) {
  const ShardArgument shard = parse_shard(given.shard);
  Session session(globals);
  const auto begin = Clock::now();
  const Json before = existing(session, shard);
  (void)ask_coordinator(session, "order", order(given.pin ? "pin" : "move", given));
  Json result = {
      {"shard", given.shard}, {"from", before.at(1)}, {"to", given.node}, {"pinned", given.pin}};
  // A pin may name a node that has yet to join: there is nothing to wait for.
  if (given.pin && !is_member(session, given.node)) {
    result["waits_for_node"] = true;
    return print(globals, result, [&](const Json&) {
      return given.shard + " is pinned: it goes to " + given.node +
             " when that node joins; until then it is placed as any other\n";
    });
  }
  Json now = before;
  const auto done = [&] {
    const Json rows = rows_of(session, shard.type);
    if (shard.number < rows.size()) now = rows.at(shard.number);
    return now.at(1) == given.node;
  };
  if (!wait_until(globals.timeout, done, {})) {
    const bool waits = given.pin;
    fail(Exit::not_met, given.shard + " is still owned by " + cell(now.at(1)) +
                            (waits ? "; it goes to " + given.node + " once that node may have it"
                                   : "; see `shardbusctl moves`"));
  }
  const auto ms = std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count();
  result["generation"] = now.at(2);
  result["ms"] = ms;
  print(globals, result, [&](const Json&) {
    if (before.at(1) == given.node)
      return given.shard + " is already there, on " + given.node + "\n";
    return given.shard + " moved from " + cell(before.at(1)) + " to " + given.node + " in " +
           std::to_string(ms) + " ms\n";
  });
}

void add_move(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<OperateArguments>();
  CLI::App& command = add_command(app, "move", "Move one shard to a node.");
  command.add_option("SHARD", arguments->shard, "TYPE:NUMBER, such as counter:17.")->required();
  command.add_option("NODE", arguments->node, "Name of the node.")->required();
  command.add_flag("--pin", arguments->pin)
      ->description("It stays there, and comes back when the node does, until `unpin`.");
  add_actor(command, *arguments);
  command.callback([&globals, arguments] { move(globals, *arguments); });
}

void add_unpin(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<OperateArguments>();
  CLI::App& command = add_command(app, "unpin", "Undo `move --pin`.");
  command.add_option("SHARD", arguments->shard, "TYPE:NUMBER, such as counter:17.")->required();
  add_actor(command, *arguments);
  command.callback([&globals, arguments] {
    const ShardArgument shard = parse_shard(arguments->shard);
    Session session(globals);
    (void)existing(session, shard);
    order_and_see(session, "unpin", *arguments, [&](const Json& moves) {
      return std::ranges::none_of(moves.at("pins"), [&](const Json& pin) {
        return pin.at("type") == shard.type && pin.at("shard") == shard.number;
      });
    });
    print(globals, {{"unpinned", arguments->shard}},
          [&](const Json&) { return arguments->shard + " may be moved again\n"; });
  });
}

void add_rebalance(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<OperateArguments>();
  CLI::App& command =
      add_command(app, "rebalance", "Whether shards are moved for balance; suspend or resume it.");
  CLI::Option* suspend = command.add_flag("--suspend", arguments->suspend)
                             ->description("No more moves for balance, in the whole cluster.");
  command.add_flag("--resume", arguments->resume)
      ->description("Moves for balance again.")
      ->excludes(suspend);
  add_actor(command, *arguments);
  command.callback([&globals, arguments] {
    Session session(globals);
    if (arguments->suspend || arguments->resume) {
      order_and_see(session, arguments->suspend ? "suspend" : "resume", *arguments,
                    [&](const Json& moves) { return moves.at("suspended") == arguments->suspend; });
    }
    const Json moves = session.ask_node("", "moves", nullptr);
    print(globals, {{"suspended", moves.at("suspended")}}, [&](const Json& state) {
      return std::string("moves for balance are ") +
             (state.at("suspended") == true ? "suspended\n" : "made\n");
    });
  });
}

// Entities and bytes of every shard that a plan moves, as its owner counts them.
void add_cost(Session& session, Json& plan) {
  std::map<std::pair<std::string, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> loads;
  std::map<std::string, bool> asked;
  const auto payload = json_to_msgpack(R"({"type": null})");
  for (Json& move : plan.at("moves")) {
    const std::string owner = move.value("from", "");
    if (!asked.emplace(owner, true).second) continue;
    const auto load =
        session.try_ask({kNodeType, owner, "load", *payload}, session.globals().timeout);
    if (!load) {
      asked[owner] = false;
      continue;
    }
    for (const Json& row : *load) loads[{row.at(0), row.at(1)}] = {row.at(2), row.at(3)};
  }
  for (Json& move : plan.at("moves")) {
    const bool known = asked[move.value("from", "")];
    const auto load = loads[{move.at("type"), move.at("shard")}];
    move["entities"] = known ? Json(load.first) : Json(nullptr);
    move["bytes"] = known ? Json(load.second) : Json(nullptr);
    move["pause_ms"] = plan.at("move_ms");
  }
}

void add_plan(CLI::App& app, const Globals& globals) {
  CLI::App& command =
      add_command(app, "plan", "Which shards would be moved for balance, and what that costs.");
  command.callback([&globals] {
    Session session(globals);
    Json plan = ask_coordinator(session, "plan", nullptr);
    add_cost(session, plan);
    print(globals, plan, &render_plan);
  });
}

void add_apply(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<OperateArguments>();
  CLI::App& command = add_command(app, "apply", "Make the moves of a plan, if it still is one.");
  command.add_option("PLAN_ID", arguments->plan, "As `plan` printed it.")->required();
  add_duration(command, "--deadline", arguments->deadline, "How long to wait for them");
  add_actor(command, *arguments);
  command.callback([&globals, arguments] {
    static const std::regex kPlanId("[0-9]+-[0-9]+-[0-9]+");
    if (!std::regex_match(arguments->plan, kPlanId))
      fail(Exit::usage, "'" + arguments->plan +
                            "' is no plan id, such as 3-17-5214391; `shardbusctl plan` prints it");
    Session session(globals);
    const Json taken = ask_coordinator(session, "order", order("apply", *arguments));
    std::size_t open = 0;
    const auto done = [&] {
      const Json moves = ask_coordinator(session, "moves", nullptr);
      open = moves.at("open").size() + moves.at("waiting").get<std::size_t>();
      return open == 0;
    };
    const auto progress = [&] { return "apply: " + std::to_string(open) + " moves left"; };
    if (!wait_until(arguments->deadline, done, progress_of(globals, progress)))
      fail(Exit::not_met, std::to_string(open) + " moves are not done in time; they go on");
    print(globals, {{"applied", arguments->plan}, {"moves", taken.at("moves")}},
          [&](const Json&) { return cell(taken.at("moves")) + " shards moved\n"; });
  });
}

void add_confirm(CLI::App& app, const Globals& globals) {
  auto arguments = std::make_shared<OperateArguments>();
  CLI::App& command = add_command(
      app, "confirm", "Say that whoever was removed by evidence alone is gone for good.");
  add_actor(command, *arguments);
  command.callback([&globals, arguments] {
    Session session(globals);
    (void)ask_coordinator(session, "order", order("confirm", *arguments));
    const auto done = [&] {
      return session.ask_node("", "status", nullptr).value("evidence", false) == false;
    };
    if (!wait_until(globals.timeout, done, {}))
      fail(Exit::not_met, "it is taken, but a majority of the members has not repeated it yet");
    print(globals, {{"confirmed", true}},
          [](const Json&) { return std::string("confirmed: strict types run again\n"); });
  });
}

void add_moves(CLI::App& app, const Globals& globals) {
  CLI::App& command = add_command(app, "moves", "Moves under way, and what operators ordered.");
  command.callback([&globals] {
    Session session(globals);
    print(globals, ask_coordinator(session, "moves", nullptr), &render_moves);
  });
}

void add_history(CLI::App& app, const Globals& globals) {
  struct Arguments {
    std::string type;
    std::string shard;
    std::uint64_t limit = 100;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command =
      add_command(app, "history", "The last changes of owners, with cause and actor.");
  command.add_option("--type", arguments->type, "Only this type.");
  command.add_option("--shard", arguments->shard, "Only this shard: TYPE:NUMBER.");
  command.add_option("--limit", arguments->limit, "The last so many.")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000}))
      ->capture_default_str();
  command.callback([&globals, arguments] {
    Json query = {{"limit", arguments->limit}};
    std::optional<std::uint32_t> number;
    if (!arguments->type.empty()) query["type"] = arguments->type;
    if (!arguments->shard.empty()) {
      const ShardArgument shard = parse_shard(arguments->shard);
      query["type"] = shard.type;
      query["shard"] = shard.number;
      number = shard.number;
    }
    Session session(globals);
    if (query.contains("type")) (void)existing(session, {query["type"], number.value_or(0)});
    print(globals, session.ask_node("", "history", query), &render_history);
  });
}

}  // namespace

void add_operate(CLI::App& app, const Globals& globals) {
  add_plan(app, globals);
  add_apply(app, globals);
  add_move(app, globals);
  add_unpin(app, globals);
  add_cordon(app, globals);
  add_uncordon(app, globals);
  add_drain(app, globals);
  add_rebalance(app, globals);
  add_confirm(app, globals);
  add_moves(app, globals);
  add_history(app, globals);
}

}  // namespace shardbusctl
