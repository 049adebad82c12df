#include "sim/scenario.hpp"

#include <algorithm>

#include "base/model/text.hpp"
#include "sim/world.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSafetyPhase = 15s;
constexpr Duration kLivenessPhase = 30s;
// An operator notices that no cluster is left (every side downed itself) and starts one.
constexpr Duration kOperatorAfter = 3s;

// Of the quiet time before the last asks: whatever a silent link does not know yet, its pings tell.
constexpr Duration kCalmingDown = 2500ms;
constexpr Duration kLastPhase = 12s;

enum class Fault { crash, pause, split, one_way, isolate, reset, leave, hosts, down, clog, garble };
constexpr int kFaultKinds = 11;

class Scenario {
 public:
  explicit Scenario(const ScenarioOptions& options)
      : random_(options.seed * 2 + 1), world_(make_config(options)) {
    world_.network().configure(make_network());
  }

  ScenarioResult run() {
    world_.start(0, true);
    for (int i = 1; i < world_.machines(); ++i) {
      world_.after(milliseconds(0, 1500), [this, i] { world_.start(i, false); });
    }
    if (!kinds_.empty()) world_.after(milliseconds(500, 2500), [this] { next_fault(); });
    if (world_.run_for(kSafetyPhase)) recover();
    return finish();
  }

 private:
  // Swarm: each kind of fault is switched off in about half of the runs, so that rare mixtures and
  // pure kinds both occur. A quarter of the runs knows only what must not lose anything.
  WorldConfig make_config(const ScenarioOptions& options) {
    WorldConfig config;
    config.seed = options.seed;
    const auto drawn = static_cast<int>(random_.between(3, 7));
    config.machines = options.machines != 0 ? options.machines : drawn;
    const auto shards = static_cast<std::uint32_t>(random_.between(1, 24));
    types_ = {HostedType{"cart", shards}, HostedType{"user", 1 + shards / 3}};
    config.types = types_;
    config.lossless = random_.chance(0.25);
    for (int kind = 0; kind < kFaultKinds; ++kind) {
      const auto fault = static_cast<Fault>(kind);
      const bool moves_only = fault == Fault::leave || fault == Fault::hosts;
      if (random_.chance(0.5) && (moves_only || !config.lossless)) kinds_.push_back(fault);
    }
    // "Except when a crash or exit and a partition come together" (DESIGN section 3); a process
    // that stands still is cut off as well. Without partitions and mistakes of operators no two
    // owners.
    config.overlap_allowed = has(Fault::split) || has(Fault::one_way) || has(Fault::isolate) ||
                             has(Fault::down) ||
                             (has(Fault::pause) && (has(Fault::crash) || has(Fault::leave)));
    config.workload.entities = static_cast<std::uint32_t>(random_.between(4, 30));
    config.workload.pace = milliseconds(20, 120);
    config.workload.patient = config.lossless;
    if (!config.lossless && random_.chance(0.3)) narrow(config.data);
    config.breaks = breaks_named(options.break_name);
    config.downing = options.downing;
    const bool by_size = config.downing.policy == DowningPolicy::static_quorum;
    if (by_size && config.downing.quorum_size == 0) {
      config.downing.quorum_size = static_cast<std::uint32_t>(config.machines / 2 + 1);
    }
    config.hash_trace = options.hash_trace;
    config.trace = options.trace;
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
    return network;
  }

  bool has(Fault kind) const {
    return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end();
  }
  Duration milliseconds(std::uint64_t low, std::uint64_t high) {
    return std::chrono::milliseconds(random_.between(low, high));
  }
  int any() {
    return static_cast<int>(random_.below(static_cast<std::uint64_t>(world_.machines())));
  }
  int other_than(int machine) {
    const auto others = static_cast<std::uint64_t>(world_.machines() - 1);
    return (machine + 1 + static_cast<int>(random_.below(others))) % world_.machines();
  }

  void next_fault() {
    if (healed_) return;
    ++faults_;
    do_fault(kinds_[random_.below(kinds_.size())]);
    world_.after(milliseconds(20, 2500), [this] { next_fault(); });
  }

  void do_fault(Fault kind) {
    const int machine = any();
    const int other = other_than(machine);
    switch (kind) {
      case Fault::crash:
        world_.crash(machine);
        world_.after(milliseconds(5, 4000), [this, machine] { world_.start(machine, false); });
        return;
      case Fault::pause:
        world_.pause(machine);
        world_.after(milliseconds(100, 5000), [this, machine] { world_.resume(machine); });
        return;
      case Fault::split:
        return split();
      case Fault::isolate:
        return cut(1U << machine);
      case Fault::one_way:
        world_.block(machine, other);
        world_.after(milliseconds(100, 6000),
                     [this, machine, other] { world_.unblock(machine, other); });
        return;
      case Fault::clog:
        world_.clog(machine, other);
        world_.after(milliseconds(100, 4000),
                     [this, machine, other] { world_.release(machine, other); });
        return;
      case Fault::reset:
        return world_.reset_link(machine, other);
      case Fault::leave:
        return world_.leave(machine);
      case Fault::hosts:
        if (!world_.can_spare(machine)) return;
        world_.host(machine, random_.chance(0.5)
                                 ? std::vector<HostedType>{types_[random_.below(types_.size())]}
                                 : std::vector<HostedType>{});
        world_.after(milliseconds(100, 4000), [this, machine] { world_.host(machine, types_); });
        return;
      case Fault::garble:
        return world_.garble(machine, other, static_cast<Garble>(random_.between(1, 3)));
      case Fault::down:
        // Operators do this to what stands still; to a healthy node only by mistake.
        if (world_.node(other).paused || random_.chance(0.1)) world_.down(machine, other);
        return;
    }
  }

  void split() {
    const std::uint64_t all = (std::uint64_t{1} << world_.machines()) - 1;
    cut(static_cast<unsigned>(1 + random_.below(all - 1)));
  }

  void cut(unsigned side) {
    const auto each = [this, side](auto&& what) {
      for (int a = 0; a < world_.machines(); ++a) {
        for (int b = 0; b < world_.machines(); ++b) {
          if (((side >> a) & 1U) != ((side >> b) & 1U)) what(a, b);
        }
      }
    };
    each([this](int a, int b) { world_.block(a, b); });
    world_.after(milliseconds(100, 7000),
                 [this, each] { each([this](int a, int b) { world_.unblock(a, b); }); });
  }

  // Liveness: everything works again; within the time all must agree and everything be owned.
  void recover() {
    healed_ = true;
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
    if (!world_.run_for(kCalmingDown)) return;
    world_.ask_everything();
    const Time begin = world_.now();
    std::string unfinished = "nothing was asked";
    while (!unfinished.empty() && world_.now() < begin + kLastPhase && world_.run_for(100ms)) {
      unfinished = world_.ledger().unfinished();
    }
    if (!world_.broken()) unsettled_ = !unfinished.empty() ? unfinished : world_.unsettled();
  }

  ScenarioResult finish() {
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
    result.faults = faults_;
    result.messages = world_.ledger().sent();
    result.handled = world_.ledger().handled();
    result.answered = world_.ledger().answered();
    result.overlaps = world_.checker().overlaps();
    result.longest_overlap = world_.checker().longest_overlap();
    result.settled_after = settled_after_;
    result.trace_hash = world_.trace_hash();
    result.machines = world_.machines();
    return result;
  }

  // The world is made last: its configuration is drawn from what stands above it.
  Random random_;
  std::vector<HostedType> types_;
  std::vector<Fault> kinds_;
  World world_;
  bool healed_ = false;
  Time healed_at_{};
  std::uint64_t faults_ = 0;
  Duration settled_after_{};
  std::string unsettled_;
};

}  // namespace

ScenarioResult run_scenario(const ScenarioOptions& options) {
  return Scenario(options).run();
}

}  // namespace shardbus::sim
