// `shardbusctl bench handoff`: shards are moved and nodes come and go under load, and every message
// has to be handled once, in order.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>

#include "ctl/bench/bench.hpp"
#include "ctl/bench/flow.hpp"
#include "ctl/bench/frozen_clients.hpp"
#include "ctl/bench/handoff_cluster.hpp"
#include "ctl/bench/ledger.hpp"
#include "ctl/bench/sender.hpp"
#include "ctl/coordinator.hpp"
#include "ctl/render.hpp"

namespace shardbusctl::bench {
namespace {

struct Arguments {
  std::uint64_t messages = 1'000'000;
  std::uint32_t moves = 200;
  std::uint32_t joins = 20;
  std::uint32_t nodes = 3;
  std::uint32_t shards = 64;
  std::uint32_t entities = 1000;  // per shard
  std::uint32_t window = 256;
  std::uint32_t frozen_clients = 0;
  double rate = 50'000;
  std::uint64_t seed = 1;
  bool progress = true;
};

std::uint32_t all_entities(const Arguments& arguments) {
  return arguments.shards * arguments.entities;
}

// One on each node that stays, and a client that goes straight to owners.
class Load {
 public:
  Load(const HandoffCluster& cluster, const Arguments& arguments) {
    shardbus::ClientOptions options;
    options.nodes = {cluster.nodes().front().listen_address()};
    auto client = shardbus::Client::connect(options);
    if (!client) fail(client.error());
    client_ = std::make_unique<shardbus::Client>(std::move(*client));
    add(client_->messenger(), cluster, arguments);
    for (const shardbus::Node& node : cluster.nodes()) add(node.messenger(), cluster, arguments);
  }

  void start() {
    for (const auto& flow : flows_) flow->start();
  }
  void stop() {
    for (const auto& flow : flows_) flow->stop();
  }
  [[nodiscard]] std::uint64_t sent() const {
    std::uint64_t sum = 0;
    for (const auto& flow : flows_) sum += flow->sent();
    return sum;
  }
  [[nodiscard]] const std::vector<std::unique_ptr<Flow>>& flows() const { return flows_; }

 private:
  void add(std::shared_ptr<shardbus::Messenger> way, const HandoffCluster& cluster,
           const Arguments& arguments) {
    const auto senders = static_cast<double>(cluster.nodes().size() + 1);
    flows_.push_back(std::make_unique<Flow>(
        std::move(way),
        FlowOptions{kLedgerType, static_cast<std::uint32_t>(flows_.size()), all_entities(arguments),
                    arguments.window, arguments.rate / senders}));
  }

  std::unique_ptr<shardbus::Client> client_;
  std::vector<std::unique_ptr<Flow>> flows_;
};

// What operators do: random shards to random nodes of those that stay.
class Mover {
 public:
  Mover(const HandoffCluster& cluster, const Arguments& arguments)
      : globals_{{cluster.nodes().front().listen_address()}, false, milliseconds(30'000)},
        session_(globals_),
        arguments_(arguments),
        random_(arguments.seed) {
    for (const shardbus::Node& node : cluster.nodes()) names_.push_back(node.name());
  }

  void move_one() {
    const std::uint32_t shard = below(arguments_.shards);
    const std::string owner = owner_of(shard);
    std::string target = names_[below(static_cast<std::uint32_t>(names_.size()))];
    if (target == owner) target = names_[(index_of(target) + 1) % names_.size()];
    (void)ask_coordinator(session_, "order",
                          {{"order", "move"},
                           {"type", kLedgerType},
                           {"shard", shard},
                           {"node", target},
                           {"actor", "bench"}});
    // A join may move it on at once: that it has left its owner is what counts.
    const auto done = [&] { return owner_of(shard) != owner; };
    if (!wait_until(globals_.timeout, done, {}))
      fail(Exit::not_met, "shard " + std::to_string(shard) + " did not leave " + owner);
  }

 private:
  std::uint32_t below(std::uint32_t limit) {
    return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random_);
  }
  std::size_t index_of(const std::string& name) const {
    return static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
  }
  std::string owner_of(std::uint32_t shard) {
    const Json types = session_.ask_node("", "shards", {{"type", kLedgerType}});
    return cell(types.at(0).at("shards").at(shard).at(1));
  }

  Globals globals_;
  Session session_;
  const Arguments& arguments_;
  std::mt19937_64 random_;
  std::vector<std::string> names_;
};

struct Measured {
  Totals totals;
  std::uint64_t sent = 0, asks = 0, replies = 0, errors = 0;
  std::uint32_t moves = 0, joins = 0, leaves = 0;
  std::uint64_t moved_entities = 0;
  std::string first_error;
  shardbus_tools::Histogram pauses_ns;
  std::chrono::nanoseconds wall{};

  [[nodiscard]] bool clean() const {
    return errors == 0 && replies == asks && totals.lost == 0 && totals.duplicates == 0 &&
           totals.out_of_order == 0 && totals.handled == sent;
  }
};

// Keeps an exception of a thread for the one that waits for it.
class Task {
 public:
  template <class Work>
  explicit Task(Work work)
      : thread_([this, work] {
          try {
            work();
          } catch (...) {
            error_ = std::current_exception();
          }
          done_ = true;
        }) {}
  [[nodiscard]] bool done() const { return done_; }
  void join() {
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> done_{false};
  std::exception_ptr error_;
  std::thread thread_;
};

// The moves and the joins, each at its own pace, spread over the time that the messages take.
void disturb(HandoffCluster& cluster, Load& load, const Arguments& arguments, Measured& measured) {
  constexpr std::chrono::milliseconds kBetweenLooks{1};
  const auto wait_for_share = [&](std::uint32_t done, std::uint32_t all) {
    const std::uint64_t wanted = arguments.messages / all * done;
    while (load.sent() < wanted) std::this_thread::sleep_for(kBetweenLooks);
  };
  Mover mover(cluster, arguments);
  std::atomic<std::uint32_t> moves{0};
  std::atomic<std::uint32_t> joins{0};
  Task moving([&] {
    for (; moves < arguments.moves; ++moves) {
      wait_for_share(moves, arguments.moves);
      mover.move_one();
    }
  });
  Task joining([&] {
    for (; joins < arguments.joins; ++joins) {
      wait_for_share(joins, arguments.joins);
      cluster.join();
      cluster.leave();
    }
  });
  const auto done = [&] {
    return moving.done() && joining.done() && load.sent() >= arguments.messages;
  };
  const auto progress = [&] {
    return std::to_string(load.sent()) + " of " + std::to_string(arguments.messages) +
           " messages, " + std::to_string(moves) + " of " + std::to_string(arguments.moves) +
           " moves, " + std::to_string(joins) + " of " + std::to_string(arguments.joins) +
           " joins and leaves";
  };
  (void)wait_until(std::chrono::hours(1), done,
                   arguments.progress ? progress : std::function<std::string()>());
  moving.join();
  joining.join();
  measured.moves = moves;
  measured.joins = measured.leaves = joins;
}

// Asks every entity what it has seen, and holds it against what was sent.
void audit(const HandoffCluster& cluster, const Load& load, const Arguments& arguments,
           Measured& measured) {
  using State = std::tuple<std::int64_t, std::vector<Account>>;
  for (std::uint32_t i = 0; i < all_entities(arguments); ++i) {
    const std::string id = entity_id(i);
    const auto reply = cluster.nodes().front().messenger()->ask_and_wait(
        {kLedgerType, id, "accounts", ""}, milliseconds(5000));
    if (!reply) fail(reply.error());
    auto [unused, accounts] = msgpack::unpack(reply->data(), reply->size()).get().as<State>();
    accounts.resize(load.flows().size());
    for (std::size_t sender = 0; sender < accounts.size(); ++sender)
      measured.totals.add(accounts[sender], load.flows()[sender]->sent_to(i));
  }
  for (const auto& flow : load.flows()) {
    measured.sent += flow->sent();
    measured.asks += flow->asks();
    measured.replies += flow->replies();
    measured.errors += flow->errors();
    if (measured.first_error.empty()) measured.first_error = flow->first_error();
  }
}

Measured measure(const Arguments& arguments) {
  HandoffCluster cluster(arguments.nodes, arguments.shards);
  Measured measured;
  {
    const FrozenClients frozen(arguments.frozen_clients, cluster.nodes().front().listen_address(),
                               all_entities(arguments));
    Load load(cluster, arguments);
    const auto begin = steady_clock::now();
    load.start();
    disturb(cluster, load, arguments, measured);
    load.stop();
    measured.wall = steady_clock::now() - begin;
    audit(cluster, load, arguments, measured);
  }
  {
    Pauses& pauses = cluster.pauses();
    const std::lock_guard lock(pauses.mutex);
    measured.pauses_ns = pauses.ns;
    measured.moved_entities = pauses.moved;
  }
  cluster.stop();
  return measured;
}

double ms(std::uint64_t ns) {
  return std::round(static_cast<double>(ns) / 1e3) / 1e3;
}

Json to_json(const Measured& measured, const Arguments& arguments) {
  return {{"bench", "handoff"},
          {"nodes", arguments.nodes},
          {"shards", arguments.shards},
          {"entities_per_shard", arguments.entities},
          {"frozen_clients", arguments.frozen_clients},
          {"messages", measured.sent},
          {"asks", measured.asks},
          {"replies", measured.replies},
          {"errors", measured.errors},
          {"moves", measured.moves},
          {"joins", measured.joins},
          {"leaves", measured.leaves},
          {"moved_entities", measured.moved_entities},
          {"lost", measured.totals.lost},
          {"duplicates", measured.totals.duplicates},
          {"out_of_order", measured.totals.out_of_order},
          {"pauses", measured.pauses_ns.total()},
          {"pause_p50_ms", ms(measured.pauses_ns.quantile(0.5))},
          {"pause_p99_ms", ms(measured.pauses_ns.quantile(0.99))},
          {"pause_max_ms", ms(measured.pauses_ns.max())},
          {"wall_ms", std::round(static_cast<double>(measured.wall.count()) / 1e6)}};
}

void run(const Globals& globals, const Arguments& arguments) {
  const Measured measured = measure(arguments);
  print(globals, to_json(measured, arguments), &render_figures);
  if (measured.clean()) return;
  fail(Exit::not_met,
       "a promise broke: of " + std::to_string(measured.sent) + " messages " +
           std::to_string(measured.totals.handled) + " were handled; first error: " +
           (measured.first_error.empty() ? std::string("none") : measured.first_error));
}

}  // namespace

void add_handoff(CLI::App& bench, const Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = bench.add_subcommand(
      "handoff",
      "Moves shards, and lets nodes come and go, under load; every message has to be "
      "handled once and in order.");
  command->fallthrough();
  const auto option = [&](const char* name, auto& value, const char* help, auto low, auto high) {
    command->add_option(name, value, help)->check(CLI::Range(low, high))->capture_default_str();
  };
  option("--messages", arguments->messages, "Tells and asks in all, at least.", 1, 1'000'000'000);
  option("--moves", arguments->moves, "Moves that are ordered, one after the other.", 0, 1'000'000);
  option("--joins", arguments->joins, "Nodes that join and leave, one after the other.", 0, 10'000);
  option("--nodes", arguments->nodes, "Nodes that stay.", 2, 64);
  option("--shards", arguments->shards, "Shards of the entity type.", 1, 65'536);
  option("--entities", arguments->entities, "Entities per shard, about.", 1, 1'000'000);
  option("--window", arguments->window, "Asks in flight per sender.", 1, 1'000'000);
  option("--frozen-clients", arguments->frozen_clients,
         "Client processes that stand still with asks under way.", 0, 64);
  option("--rate", arguments->rate, "Messages per second, of all senders.", 1.0, 1e7);
  option("--seed", arguments->seed, "Of the choice of moves.", 0, 1'000'000'000);
  command->callback([&globals, arguments] {
    arguments->progress = shows_progress(globals);
    run(globals, *arguments);
  });
}

}  // namespace shardbusctl::bench
