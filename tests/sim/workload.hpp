// Entities that count, and callers on every node that tell and ask them; what comes of it is in the
// ledger.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/model/allocation.hpp"
#include "base/random.hpp"
#include "shardbus/entity.hpp"
#include "sim/breaks.hpp"
#include "sim/ledger.hpp"
#include "sim/process.hpp"

namespace shardbus::sim {

struct WorkloadConfig {
  std::uint32_t entities = 0;  // 0: nobody calls
  Duration pace{};             // mean time between two bursts of one node
  bool patient = false;        // asks wait for as long as any fault could take
  bool threaded = false;       // handlers run in a pool, and take their time
};

class Workload {
 public:
  Workload(const WorkloadConfig& config, std::vector<HostedType> types, std::uint64_t seed,
           Ledger& ledger, const Breaks& breaks);

  // The types that `process` hosts.
  [[nodiscard]] std::vector<EntityType> types_for(Process& process);
  // Within a pass: a few messages, now and then many.
  void call(Process& process);
  // Within a pass: one ask to every entity, which nothing but a full buffer may keep from its
  // answer; there it waits to be told to go on.
  void ask_all(Process& process);
  void go_on(Process& process);
  [[nodiscard]] bool waits() const { return !stopped_at_.empty(); }
  [[nodiscard]] Duration pause();
  [[nodiscard]] bool threaded() const { return config_.threaded; }
  // Mostly short; where a message may be lost, now and then longer than a move waits for it.
  [[nodiscard]] Duration handler_length();
  // From now on only ask_all() sends.
  void quiet() { quiet_ = true; }
  [[nodiscard]] bool idle() const { return quiet_ || config_.entities == 0; }

  static std::vector<std::string> names(const WorkloadConfig& config,
                                        const std::vector<HostedType>& types);

 private:
  class Counter;
  struct Target {
    std::string type;
    std::string id;
  };

  using Line = std::shared_ptr<SimMessenger>;
  // Who sends: code that runs within passes, how deep in a chain of answers, and to whom.
  struct Call {
    bool inside = false;
    int depth = 0;
    std::uint32_t entity = 0;
    milliseconds timeout{};
    bool must = false;
  };
  void send(const Line& via, const Call& call, bool asks);
  void send_swapped(const Line& via, std::uint32_t entity);
  void transmit(const Line& via, const Ticket& ticket);
  void ask(const Line& via, const Call& call);
  void ask_from(const Line& via, std::uint32_t entity);
  Ticket blank(const Line& via, const Call& call);
  void ended(const Line& via, const Ticket& ticket, ReplyView reply, int depth);
  [[nodiscard]] milliseconds timeout();
  [[nodiscard]] std::uint32_t any_entity();
  [[nodiscard]] bool now_and_then(bool broken) { return broken && random_.chance(0.01); }

  WorkloadConfig config_;
  std::vector<HostedType> types_;
  std::vector<Target> targets_;
  Random random_;
  Ledger& ledger_;
  Breaks breaks_;
  bool quiet_ = false;
  std::map<NodeKey, std::uint32_t> stopped_at_;  // entity whose buffer was full, by caller
};

}  // namespace shardbus::sim
