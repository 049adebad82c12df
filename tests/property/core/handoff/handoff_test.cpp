// Thousands of random orders of sends, moves, broken links, deaths and changes of coordinator, each
// from a seed. SHARDBUS_SEED=n replays one with its trace; SHARDBUS_RUNS=n tries n times as many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "base/random.hpp"
#include "scripted_coordinator.hpp"
#include "support/handoff_world.hpp"

namespace shardbus::handoff {
namespace {

// Which kinds of trouble one run may meet.
struct Faults {
  bool resets = false;
  bool deaths = false;
  bool undos = false;
  bool take_overs = false;
  bool leavers = false;  // forwarders go past the next node
};

class Run {
 public:
  Run(std::uint64_t seed, Faults faults)
      : random_(seed), faults_(faults), world_(2 + random_.below(3)), coordinator_(world_) {
    coordinator_.move(any());
  }

  void play() {
    const std::uint64_t steps = 50 + random_.below(400);
    for (std::uint64_t i = 0; i < steps && world_.violation().empty(); ++i) step();
    settle();
  }

  [[nodiscard]] std::string failure() {
    if (!world_.violation().empty()) return world_.violation();
    if (!settled_) return "does not settle";
    for (const auto& [id, fate] : world_.fates()) {
      const std::string name = "m" + std::to_string(id.first) + "." + std::to_string(id.second);
      const bool clean = !trouble_ && !coordinator_.undid();
      if (clean && !fate.handled) return "lost: " + name;
      if (clean && fate.failed != Errc::ok) return "failed without a fault: " + name;
      if (!fate.handled && fate.failed == Errc::ok && !fate.maybe_lost) return "vanished: " + name;
    }
    return {};
  }

  std::string trace() {
    std::string text;
    for (const std::string& line : world_.take_trace()) text += line + "\n";
    for (const auto& [key, node] : world_.nodes()) {
      text += std::to_string(key.value) + (node.alive ? " " : " dead ") + node.region.state_text() +
              " via=" + std::to_string(node.route.via().value) +
              " fence=" + std::to_string(node.route.fence_id()) +
              " held=" + std::to_string(node.held.size()) + "\n";
    }
    return text;
  }

 private:
  NodeKey any() { return NodeKey{1 + random_.below(world_.nodes().size())}; }

  void step() {
    switch (random_.below(12)) {
      case 0:
      case 1:
        return world_.send(any());
      case 2:
      case 3:
      case 4:
      case 5:
        return world_.deliver(any(), any());
      case 6:
        return world_.handle(any());
      case 7:
        return random_.chance(0.5) ? world_.finish_stop(any()) : coordinator_.tick();
      case 8:
      case 9:
        return coordinator_.deliver(any());
      case 10:
        if (random_.chance(0.4)) return coordinator_.move(any());
        if (faults_.leavers) world_.go_past(any());
        return;
      default:
        return trouble();
    }
  }

  void trouble() {
    const double what = static_cast<double>(random_.below(1000)) / 1000;
    if (what < 0.3) return world_.timer(any());
    if (what < 0.5) return coordinator_.drop(any());
    if (what < 0.7) {
      if (!faults_.resets) return;
      trouble_ = true;
      return world_.reset(any(), any());
    }
    if (what < 0.8) {
      if (faults_.undos) coordinator_.give_up();
      return;
    }
    if (what < 0.9) {
      if (faults_.take_overs) coordinator_.take_over();
      return;
    }
    if (!faults_.deaths) return;
    return random_.chance(0.3) ? kill() : hear(any(), any());
  }

  void kill() {
    std::uint64_t alive = 0;
    for (const auto& [key, node] : world_.nodes()) alive += node.alive ? 1 : 0;
    if (alive < 3) return;
    trouble_ = true;
    world_.kill(any());
  }

  void hear(NodeKey at, NodeKey dead) {
    if (world_.node(dead).alive) return;
    coordinator_.note_death(dead);
    world_.note_death(at, dead);
  }

  void settle() {
    for (int round = 0; round < 300 && world_.violation().empty() && !settled_; ++round) {
      for (const auto& [from, node] : world_.nodes()) {
        for (const auto& [to, other] : world_.nodes()) {
          hear(from, to);
          while (!world_.link(from, to).empty()) world_.deliver(from, to);
        }
        for (int i = 0; i < 30; ++i) coordinator_.deliver(from);
        world_.finish_stop(from);
        while (world_.violation().empty() && node.alive && !node.stopping &&
               !node.mailbox.empty()) {
          world_.handle(from);
        }
        if (round % 3 == 2) world_.timer(from);
      }
      coordinator_.tick();
      // An owner that lost the shard with a dead next one never answers its BEGIN.
      if (trouble_ && round % 50 == 49) coordinator_.give_up();
      if (coordinator_.idle() || round % 3 == 1) {
        settled_ = coordinator_.idle() && world_.quiet();
        if (settled_) return;
        if (coordinator_.owner() == kNoNode) coordinator_.move(any());
        coordinator_.publish();
      }
    }
  }

  Random random_;
  Faults faults_;
  World world_;
  ScriptedCoordinator coordinator_;
  bool trouble_ = false;
  bool settled_ = false;
};

void check(std::uint64_t first, std::uint64_t runs, Faults faults) {
  const char* times = std::getenv("SHARDBUS_RUNS");
  if (times != nullptr) runs *= std::strtoull(times, nullptr, 10);
  const char* replay = std::getenv("SHARDBUS_SEED");
  if (replay != nullptr) {
    first = std::strtoull(replay, nullptr, 10);
    runs = 1;
  }
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    Run run(seed, faults);
    run.play();
    const std::string failure = run.failure();
    if (failure.empty() && replay == nullptr) continue;
    std::cout << run.trace();
    ASSERT_EQ(failure, "") << "SHARDBUS_SEED=" << seed;
  }
}

TEST(Handoff, PlannedMovesLoseRepeatAndReorderNothing) {
  check(1, 4000, {});
}

TEST(Handoff, BrokenLinksRepeatAndReorderNothing) {
  check(10'001, 4000, {.resets = true});
}

TEST(Handoff, UndoneMovesKeepOneOwner) {
  check(20'001, 4000, {.undos = true});
}

TEST(Handoff, ANewCoordinatorKeepsOneOwner) {
  check(30'001, 4000, {.undos = true, .take_overs = true});
}

TEST(Handoff, DeathsKeepOneOwner) {
  check(40'001, 4000, {.deaths = true});
}

TEST(Handoff, EverythingAtOnceKeepsOneOwner) {
  check(50'001, 6000, {true, true, true, true});
}

TEST(Handoff, GoingPastALeaverLosesRepeatsAndReordersNothing) {
  check(60'001, 4000, {.leavers = true});
}

TEST(Handoff, GoingPastALeaverOverBrokenLinksReordersNothing) {
  check(70'001, 4000, {.resets = true, .leavers = true});
}

}  // namespace
}  // namespace shardbus::handoff
