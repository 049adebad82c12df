#include "sim/scenario.hpp"

#include <algorithm>

#include "base/model/text.hpp"
#include "sim/faults.hpp"
#include "sim/world.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSafetyPhase = 15s;
constexpr Duration kLivenessPhase = 30s;
// An operator notices that no cluster is left (every side downed itself) and starts one.
constexpr Duration kOperatorAfter = 3s;
constexpr Duration kSidesAfter = 15s;
constexpr std::uint64_t kStrictSalt = 0x57121c7;
constexpr std::uint64_t kOrdersSalt = 0x08de85;

// Of the quiet time before the last asks: whatever a silent link does not know yet, its pings tell.
constexpr Duration kCalmingDown = 2500ms;
// And handlers that were begun before come to their end.
constexpr Duration kLastHandlers = 6s;
constexpr Duration kLastPhase = 12s;

class Scenario {
 public:
  explicit Scenario(const ScenarioOptions& options)
      : options_(options), random_(options.seed * 2 + 1), world_(make_config()) {
    world_.network().configure(make_network());
  }

  ScenarioResult run() {
    FaultDriver faults(world_, types_, mix_.lossless);
    plan_ = draw_faults(random_.next(), mix_, world_.machines(), kSafetyPhase);
    add_orders(options_.seed ^ kOrdersSalt, mix_, world_.machines(), kSafetyPhase, plan_);
    world_.start(0, true);
    for (int i = 1; i < world_.machines(); ++i) {
      world_.after(milliseconds(0, 1500), [this, i] { world_.start(i, false); });
    }
    faults.schedule(plan_, options_.without);
    const bool held = world_.run_for(kSafetyPhase);
    faults.end();
    if (held) recover();
    return finish(faults.begun());
  }

 private:
  WorldConfig make_config() {
    WorldConfig config;
    config.seed = options_.seed;
    const auto drawn = static_cast<int>(random_.between(3, 7));
    config.machines = options_.machines != 0 ? options_.machines : drawn;
    const auto shards = static_cast<std::uint32_t>(random_.between(1, 24));
    types_ = {HostedType{"cart", shards}, HostedType{"user", 1 + shards / 3}};
    // Drawn apart, so that it changes nothing else of a seed.
    types_.front().placement.strict = Random(options_.seed ^ kStrictSalt).chance(0.4);
    config.types = types_;
    config.lossless = random_.chance(0.25);
    mix_ = draw_mix(random_, config.lossless);
    config.overlap_allowed = mix_.overlap_allowed();
    config.workload.entities = static_cast<std::uint32_t>(random_.between(4, 30));
    config.workload.pace = milliseconds(20, 120);
    config.workload.patient = config.lossless;
    config.workload.threaded = random_.chance(0.3);
    if (!config.lossless && random_.chance(0.3)) narrow(config.data);
    if (options_.entities != 0) config.workload.entities = options_.entities;
    config.breaks = breaks_named(options_.break_name);
    config.downing = options_.downing;
    const bool by_size = config.downing.policy == DowningPolicy::static_quorum;
    if (by_size && config.downing.quorum_size == 0) {
      config.downing.quorum_size = static_cast<std::uint32_t>(config.machines / 2 + 1);
    }
    config.hash_trace = options_.hash_trace;
    config.trace = options_.trace;
    return config;
  }

  // Limits that a few messages reach.
  void narrow(runtime::DataConfig& data) {
    data.buffered_messages = static_cast<std::uint32_t>(random_.between(10, 60));
    data.peer_credit = static_cast<std::uint32_t>(random_.between(8, 64));
    data.pending_asks = static_cast<std::uint32_t>(random_.between(30, 120));
  }

  NetworkConfig make_network() {
    NetworkConfig network;
    network.delay_min = 100us;
    network.delay_max = std::chrono::microseconds(random_.between(200, 3000));
    if (random_.chance(0.5)) network.gossip_drop = static_cast<double>(random_.below(20)) / 100;
    if (random_.chance(0.5)) network.gossip_duplicate = 0.05;
    if (random_.chance(0.5)) {
      network.tail = 0.01;
      network.tail_max = milliseconds(10, 400);
    }
    if (random_.chance(0.5)) network.refusal = 0.003;
    if (options_.calm) return NetworkConfig{};
    return network;
  }

  Duration milliseconds(std::uint64_t low, std::uint64_t high) {
    return std::chrono::milliseconds(random_.between(low, high));
  }
  // Liveness: everything works again; within the time all must agree and everything be owned.
  void recover() {
    healed_at_ = world_.now();
    world_.heal();
    NetworkConfig calm = world_.network().config();
    calm.gossip_drop = std::min(calm.gossip_drop, 0.05);
    world_.network().configure(calm);
    for (int i = 0; i < world_.machines(); ++i) {
      world_.resume(i);
      world_.host(i, types_);
      world_.start(i, false);
    }
    const Time begin = world_.now();
    while (world_.now() < begin + kLivenessPhase && world_.run_for(100ms)) {
      if (world_.unsettled().empty()) {
        settled_after_ = world_.now() - begin;
        return finish_work();
      }
      const bool late = world_.now() - begin > kOperatorAfter;
      world_.confirm();
      for (int i = 0; i < world_.machines(); ++i) {
        world_.order({coordinator::OrderKind::uncordon, world_.node(i).name, {}, {}, {}});
      }
      // Two sides that both went on by evidence do not find each other: bin/README.md.
      if (world_.now() - begin > kSidesAfter) {
        for (const int machine : world_.beside_the_largest()) {
          world_.crash(machine);
          world_.start(machine, false);
        }
      }
      if (late && !world_.anybody_in_cluster()) {
        world_.crash(0);
        world_.start(0, true);
      }
      // Pauses and restarts that were under way.
      for (int i = 0; i < world_.machines(); ++i) world_.resume(i);
    }
    if (!world_.broken()) unsettled_ = world_.unsettled();
  }

  // Every entity answers every node, and everything that was sent has come to its end.
  void finish_work() {
    world_.quiet();
    if (!world_.run_for(kCalmingDown + kLastHandlers)) return;
    world_.ask_everything();
    const Time begin = world_.now();
    std::string unfinished = "nothing was asked";
    while (!unfinished.empty() && world_.now() < begin + kLastPhase && world_.run_for(100ms)) {
      unfinished = world_.waits_to_ask() ? "a buffer stays full" : world_.ledger().unfinished();
      world_.go_on_asking();
      // What rested after a move may be moved for balance only now.
      if (unfinished.empty()) unfinished = world_.unsettled();
    }
    if (!world_.broken()) unsettled_ = unfinished;
  }

  ScenarioResult finish(std::uint64_t faults) {
    ScenarioResult result;
    result.broken = world_.broken();
    if (!unsettled_.empty()) {
      result.broken = world_.readable("not settled " + to_text(world_.now() - healed_at_) +
                                      " after healing: " + unsettled_);
    }
    if (result.broken) {
      *result.broken += "\nat " + to_text(world_.now().time_since_epoch() - Duration(1s)) + "\n" +
                        world_.state_text();
    }
    result.events = world_.events();
    result.faults = faults;
    result.plan = plan_;
    result.messages = world_.ledger().sent();
    result.handled = world_.ledger().handled();
    result.answered = world_.ledger().answered();
    result.overlaps = world_.checker().overlaps();
    result.longest_overlap = world_.checker().longest_overlap();
    result.settled_after = settled_after_;
    result.trace_hash = world_.trace_hash();
    result.marks = world_.marks();
    result.machines = world_.machines();
    return result;
  }

  ScenarioOptions options_;
  // The world is made last: its configuration is drawn from what stands above it.
  Random random_;
  std::vector<HostedType> types_;
  FaultMix mix_;
  World world_;
  std::vector<PlannedFault> plan_;
  Time healed_at_{};
  Duration settled_after_{};
  std::string unsettled_;
};

}  // namespace

ScenarioResult run_scenario(const ScenarioOptions& options) {
  return Scenario(options).run();
}

}  // namespace shardbus::sim
