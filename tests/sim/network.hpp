// What the simulated network does to everything that passes it: delays, blocks, and gossip that may
// get lost, doubled or overtaken, everywhere or on one bad link. Connections between nodes are in
// wires.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "base/time.hpp"
#include "sim/events.hpp"

namespace shardbus::sim {

struct NetworkConfig {
  double gossip_drop = 0;
  double gossip_duplicate = 0;
  Duration delay_min = std::chrono::microseconds(200);
  Duration delay_max = std::chrono::microseconds(200);
  double tail = 0;  // share of messages that are delayed by up to tail_max
  Duration tail_max{};
  double refusal = 0;  // share of frames at which a socket begins to take none for a while
};

// What one link does for a while, in one direction, beyond what the network does to all of them.
struct LinkWeather {
  double drop = 0;       // of gossip
  double duplicate = 0;  // of gossip
  Duration delay_max{};  // of everything; gossip is reordered by it, a connection keeps its order
  double reset = 0;      // share of a connection's frames that end it
};

// Between machines, which are numbered. Which life of a node gets something is the caller's matter.
class Network {
 public:
  using Deliver = std::function<void(int from, int to, const std::string& bytes)>;

  Network(Events& events, Random& random, Deliver gossip)
      : events_(events), random_(random), deliver_(std::move(gossip)) {}

  void configure(const NetworkConfig& config) { config_ = config; }
  [[nodiscard]] const NetworkConfig& config() const { return config_; }

  void gossip(int from, int to, const std::string& bytes);
  void block(int from, int to) { blocked_.insert({from, to}); }
  bool unblock(int from, int to) { return blocked_.erase({from, to}) > 0; }
  // Connections stand still, gossip goes on.
  void clog(int from, int to) { clogged_.insert({from, to}); }
  bool release(int from, int to) { return clogged_.erase({from, to}) > 0; }
  [[nodiscard]] bool blocked(int from, int to) const { return blocked_.contains({from, to}); }
  [[nodiscard]] bool apart(int a, int b) const { return blocked(a, b) || blocked(b, a); }
  // Nothing of a connection passes from one to the other.
  [[nodiscard]] bool stands(int from, int to) const {
    return blocked(from, to) || clogged_.contains({from, to});
  }
  void set_weather(int from, int to, const LinkWeather& weather) { links_[{from, to}] = weather; }
  void clear_weather() { links_.clear(); }
  [[nodiscard]] const std::set<std::pair<int, int>>& blocks() const { return blocked_; }
  Duration delay();
  Duration delay(int from, int to);
  // Whether the frame that goes there now ends its connection.
  bool breaks(int from, int to);

 private:
  [[nodiscard]] const LinkWeather* weather(int from, int to) const {
    const auto found = links_.find({from, to});
    return found == links_.end() ? nullptr : &found->second;
  }

  Events& events_;
  Random& random_;
  Deliver deliver_;
  NetworkConfig config_;
  std::set<std::pair<int, int>> blocked_;
  std::set<std::pair<int, int>> clogged_;
  std::map<std::pair<int, int>, LinkWeather> links_;
};

}  // namespace shardbus::sim
