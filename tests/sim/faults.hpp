// What is done to a simulated cluster: a plan, drawn before the run begins, and who carries it out.
//
// Each fault has an index and randomness of its own, so leaving one out changes no other one.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sim/world.hpp"

namespace shardbus::sim {

enum class Fault : std::uint8_t {
  crash,         // started again later
  restart,       // started again at once, under the same name
  pause,         // stands still
  slow,          // each pass comes late
  late_control,  // only the control loop comes late
  clock_jump,    // the wall clock jumps, mostly around a restart
  drift,         // the monotonic clock runs too fast or too slow
  split,
  one_way,
  isolate,
  lossy,     // a link that loses, doubles, delays and reorders a part
  bad_link,  // one that hardly works, and breaks its connections
  clog,
  reset,
  garble,
  leave,
  hosts,
  down,
  stuck,  // cut off, and its control loop comes late
  moves,  // an operator moves one shard, or several, about
  drain,  // and empties a node
  count_of_faults,
};

const char* name_of(Fault kind);

struct PlannedFault {
  int index = 0;
  Fault kind = Fault::crash;
  Duration at{};  // since the start of the run
  Duration lasts{};
  int machine = 0;
  int other = 0;
  bool at_decider = false;  // at whoever decides then, instead of `machine`
  std::uint64_t seed = 0;   // of what else there is to draw
};

std::string describe(const PlannedFault& fault);

struct FaultMix {
  std::vector<Fault> kinds;
  bool lossless = false;  // only what must not lose a message

  [[nodiscard]] bool has(Fault kind) const;
  // Two nodes may run one shard at a time: "except when a crash or exit and a partition come
  // together" (DESIGN section 3). A process that stands still is cut off as well.
  [[nodiscard]] bool overlap_allowed() const;
};

// Swarm: each kind is switched off in about half of the runs, so that rare mixtures and pure kinds
// both occur.
FaultMix draw_mix(Random& random, bool lossless);
std::vector<PlannedFault> draw_faults(std::uint64_t seed, const FaultMix& mix, int machines,
                                      Duration until);
// Operators' orders in most runs, with faults right behind them: what moves is what breaks.
void add_orders(std::uint64_t seed, const FaultMix& mix, int machines, Duration until,
                std::vector<PlannedFault>& plan);

class FaultDriver {
 public:
  FaultDriver(World& world, std::vector<HostedType> types, bool lossless)
      : world_(world), types_(std::move(types)), lossless_(lossless) {}

  // Skips those of `without`.
  void schedule(const std::vector<PlannedFault>& plan, const std::set<int>& without);
  // Nothing begins any more.
  void end() { over_ = true; }
  [[nodiscard]] std::uint64_t begun() const { return begun_; }

 private:
  void begin(const PlannedFault& fault);
  void of_process(const PlannedFault& fault);
  void of_clock(const PlannedFault& fault);
  void of_link(const PlannedFault& fault);
  void of_cluster(const PlannedFault& fault);
  void of_operator(const PlannedFault& fault);
  void cut(std::uint64_t side, Duration lasts);

  World& world_;
  std::vector<HostedType> types_;
  bool lossless_;
  bool over_ = false;
  std::uint64_t begun_ = 0;
};

}  // namespace shardbus::sim
