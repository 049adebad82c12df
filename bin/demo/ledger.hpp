// What the quickstart knows about each entity: what was added, what was acknowledged, and so what
// its counter may show. No clock and no socket in here.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace shardbus_demo {

using std::chrono::steady_clock;

// An ask adds 1 and a tell adds this, so that one number tells both counts.
inline constexpr std::uint64_t kTellAmount = std::uint64_t{1} << 32;

// How one kind of entity is called.
struct Kind {
  std::string type, add, get;
};

// When the broker died, as far as this process can know.
struct Death {
  steady_clock::time_point sent = steady_clock::time_point::max();       // SIGKILL
  steady_clock::time_point confirmed = steady_clock::time_point::max();  // the process is gone
  std::string node{};
  std::size_t lane = SIZE_MAX;  // whose way in it was
};

struct Entity {
  const Kind* kind = nullptr;
  std::string id{};
  std::string owner{};  // before the death

  std::uint64_t acknowledged = 0;  // asks that were answered
  std::uint64_t unknown = 0;       // asks that ended in "may have happened"
  std::uint64_t told = 0;          // tells that were accepted
  std::uint64_t told_safely = 0;   // of these, through a broker that lives
  // Of the acknowledged: sent after the owner was dead for certain, and answered after SIGKILL.
  std::uint64_t sent_after_death = 0;
  std::uint64_t answered_after_kill = 0;

  bool answered_again = false;  // an ask sent after the death was answered
  bool wanted = false;          // such an ask is under way
};

// Notes how an ask that was sent and has ended at those times changed what the counter may be.
void note_reply(Entity& entity, const Death& death, steady_clock::time_point sent,
                steady_clock::time_point ended);

// Says why `value` cannot be what the entity counted; empty if it can.
//
// Without a death every acknowledged ask and every tell counts exactly once. An entity whose owner
// lives has kept all that was acknowledged, and at most what may have happened on top. One whose
// owner died began again from zero.
std::string what_is_wrong(const Entity& entity, const Death& death, std::uint64_t value);

}  // namespace shardbus_demo
