// The simulated network: gossip that may get lost or doubled, and links that keep order and wait
// while they are blocked. It carries opaque bytes and knows nothing of their meaning.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"

namespace shardbus::sim {

// One queue of everything that will happen, ordered by (time, sequence).
class Events {
 public:
  void at(Time when, std::function<void()> what) {
    queue_.push(Entry{std::max(when, now_), next_++, std::move(what)});
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  // Runs the next one if it is due by `until`; otherwise moves the time there.
  bool run_next(Time until);
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t count() const { return ran_; }

 private:
  struct Entry {
    Time when;
    std::uint64_t sequence = 0;
    std::function<void()> what;
    bool operator<(const Entry& other) const {
      return std::pair(when, sequence) > std::pair(other.when, other.sequence);
    }
  };
  std::priority_queue<Entry> queue_;
  Time now_ = Time{} + std::chrono::seconds(1);
  std::uint64_t next_ = 0;
  std::uint64_t ran_ = 0;
};

enum class Channel : std::uint8_t { gossip, control, region };

struct NetworkConfig {
  double gossip_drop = 0;
  double gossip_duplicate = 0;
  Duration delay_min = std::chrono::microseconds(200);
  Duration delay_max = std::chrono::microseconds(200);
  double tail = 0;  // share of messages that are delayed by up to tail_max
  Duration tail_max{};
};

// Between machines, which are numbered. Which life of a node gets a frame is the caller's matter.
class Network {
 public:
  using Deliver = std::function<void(int from, int to, Channel channel, const std::string& bytes)>;
  using LinkLost = std::function<void(int at, int other)>;

  Network(Events& events, Random& random, Deliver deliver, LinkLost lost)
      : events_(events), random_(random), deliver_(std::move(deliver)), lost_(std::move(lost)) {}

  void configure(const NetworkConfig& config) { config_ = config; }
  [[nodiscard]] const NetworkConfig& config() const { return config_; }

  void gossip(int from, int to, const std::string& bytes);
  void link(int from, int to, Channel channel, std::string bytes);
  void block(int from, int to) { blocked_.insert({from, to}); }
  // What waited is delivered, or lost together with the session.
  void unblock(int from, int to);
  // The link stands still, gossip goes on; what waited is delivered late, all of it.
  void clog(int from, int to) { clogged_.insert({from, to}); }
  void release(int from, int to);
  void reset(int a, int b);  // everything in flight between them is lost
  void forget(int machine);  // its process ended: what is in flight to and from it is lost
  [[nodiscard]] bool blocked(int from, int to) const { return blocked_.contains({from, to}); }
  [[nodiscard]] bool apart(int a, int b) const { return blocked(a, b) || blocked(b, a); }
  [[nodiscard]] const std::set<std::pair<int, int>>& blocks() const { return blocked_; }
  Duration delay();

 private:
  using Route = std::pair<int, int>;
  struct Session {
    std::uint64_t number = 0;
    Time last{};  // keeps order
    std::deque<std::pair<Channel, std::string>> waiting;
  };
  [[nodiscard]] bool stands(const Route& route) const {
    return blocked_.contains(route) || clogged_.contains(route);
  }
  void deliver_later(Route route, Channel channel, std::string bytes);

  Events& events_;
  Random& random_;
  Deliver deliver_;
  LinkLost lost_;
  NetworkConfig config_;
  std::map<Route, Session> sessions_;
  std::set<Route> blocked_;
  std::set<Route> clogged_;
};

}  // namespace shardbus::sim
