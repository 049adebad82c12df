// Tells which peers can be heard, from the times at which they were heard (phi accrual, Hayashibara
// et al. 2004, with the logistic approximation of the normal distribution).
// It must not decide what follows from silence: that is downing's part.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/marks.hpp"
#include "base/time.hpp"

namespace shardbus::failure {

// With the defaults and digests every 200 ms a stopped peer is noticed 1.5 s after its last digest,
// and a hiccup of 1 s raises no alarm.
struct Config {
  double threshold = 8;  // phi; 8 means one false alarm in 10^8 at the measured distribution
  Duration expected_interval = std::chrono::milliseconds(200);  // lower bound of the mean
  Duration acceptable_pause = std::chrono::milliseconds(700);   // added to the mean
  Duration min_std_deviation = std::chrono::milliseconds(100);
  Duration max_std_deviation = std::chrono::milliseconds(200);  // bounds detection after hiccups
  std::size_t window = 100;                                     // intervals that are remembered
  Duration tick = std::chrono::milliseconds(200);          // the loop promises a step this often
  Duration hiccup = std::chrono::milliseconds(500);        // own lateness that resets all timers
  Duration pause_limit = std::chrono::milliseconds(1800);  // own lateness that is reported
};

enum class Reach : std::uint8_t { reachable, unreachable, dead };

// --- inputs ---
struct Watch {
  NodeKey peer;
};  // starts as if heard now
struct Forget {
  NodeKey peer;
};
struct Heard {
  NodeKey peer;
};  // a digest: also a sample of the interval
struct Traffic {
  NodeKey peer;
};  // data: alive, but no sample
struct LinkLost {
  NodeKey peer;
};  // a hint: no acceptable pause until it is heard again
struct ProofOfDeath {
  NodeKey peer;
};  // final
struct Tick {};
using Input = std::variant<Watch, Forget, Heard, Traffic, LinkLost, ProofOfDeath, Tick>;

// --- outputs ---
struct Changed {
  NodeKey peer;
  Reach reach;
};
struct SelfPaused {
  Duration late;
};  // own loop slept past the limit; all timers were reset
using Output = std::variant<Changed, SelfPaused>;

std::string to_text(const Output& output);

// Invariants: a dead peer stays dead until it is forgotten; silence never lowers suspicion; after
// an own pause nobody is suspected for what happened in it.
class Detector {
 public:
  explicit Detector(const Config& config);

  std::vector<Output> step(Time now, const Input& input);
  [[nodiscard]] Time next_deadline() const;
  [[nodiscard]] std::string state_text() const;

  [[nodiscard]] bool watches(NodeKey peer) const { return peers_.contains(peer); }
  [[nodiscard]] std::vector<NodeKey> watched() const;
  [[nodiscard]] Reach reach(NodeKey peer) const;  // of an unknown peer: unreachable
  [[nodiscard]] double phi(Time now, NodeKey peer) const;
  // Inputs about peers that are not watched.
  [[nodiscard]] std::uint64_t ignored_unknown() const { return ignored_unknown_; }
  [[nodiscard]] const Marks& marks() const { return rare_; }

 private:
  struct Peer {
    Reach reach = Reach::reachable;
    bool link_lost = false;
    Time last_heard;
    Time last_digest;
    std::deque<std::int64_t> intervals_us;
    std::int64_t sum_us = 0;
    std::int64_t sum_squares_us = 0;
  };

  Peer* find(NodeKey peer);
  void check_own_pause(Time now, std::vector<Output>& out);
  void watch(Time now, NodeKey key);
  void heard(Time now, NodeKey key, bool digest, std::vector<Output>& out);
  void suspect(Time now, std::vector<Output>& out);
  void note_alarm(const Peer& peer);
  static void add_interval(Peer& peer, std::int64_t interval_us, std::size_t window);
  [[nodiscard]] Duration mean(const Peer& peer) const;
  [[nodiscard]] Duration deviation(const Peer& peer) const;
  [[nodiscard]] Time alarm_at(const Peer& peer) const;

  Config config_;
  double alarm_deviations_;  // standard deviations past the mean at which phi is the threshold
  std::map<NodeKey, Peer> peers_;
  Time first_alarm_ = kNever;  // no peer's alarm is earlier
  Time last_step_{};
  bool stepped_ = false;
  std::uint64_t ignored_unknown_ = 0;
  Marks rare_;
};

}  // namespace shardbus::failure
