// One shard on a few nodes in one process: a Region and a sending Route on each, FIFO links between
// them, and what a coordinator says. Every step is taken by the test, so any order can be tried.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/delivery/route.hpp"
#include "core/region/region.hpp"

namespace shardbus::handoff {

struct FenceAnswer {
  std::uint64_t sender = 0;
  std::uint64_t id = 0;
  NodeKey node;
  Generation generation;
  bool lost = false;
};
struct StreamAck {
  Generation generation;
};
using Packet =
    std::variant<core::Parked, core::PassingFence, FenceAnswer, core::SendItem, StreamAck>;

struct Answer {
  NodeKey node;
  RegionAnswerKind kind = RegionAnswerKind::owned;
  Generation generation;
};

// What became of one message.
struct Fate {
  bool handled = false;
  bool maybe_lost = false;  // was in a link that broke, or on a node that died
  Errc failed = Errc::ok;
};

struct Node {
  Node(NodeKey key, std::uint32_t limit) : region(key, limit) {}
  bool alive = true;
  core::Region region;
  core::Route route;
  std::deque<std::uint64_t> held;  // numbers of messages that wait for the route
  std::deque<core::Parked> mailbox;
  std::map<std::uint64_t, std::uint64_t> entity;  // sender -> last number handled
  bool stopping = false;                          // StopEntities came
  std::set<NodeKey> dead;                         // whose death it has acted on
  std::uint64_t sent = 0;
};

class World {
 public:
  explicit World(std::uint64_t nodes, std::uint32_t parked_limit = 10'000);

  // --- steps ---
  void send(NodeKey from);  // the next message of that node
  void deliver(NodeKey from, NodeKey to);
  void reset(NodeKey from, NodeKey to);  // what is in flight is gone; the sender is told
  void handle(NodeKey at);
  void finish_stop(NodeKey at);
  void timer(NodeKey at);
  void sweep(NodeKey at, Duration since_begin);
  void begin(NodeKey at, Generation generation, NodeKey next);
  void prepare(NodeKey at, Generation generation, NodeKey from);
  void freeze(NodeKey at, Generation generation);
  void rehome(NodeKey at, Generation generation, Generation frozen = {});
  void table(NodeKey at, const TableEntry& entry);
  void go_past(NodeKey at);  // the node that it passes things on to is about to leave
  void kill(NodeKey node);
  void note_death(NodeKey at, NodeKey dead);

  // --- views ---
  [[nodiscard]] Node& node(NodeKey key) { return nodes_.at(key); }
  [[nodiscard]] const std::map<NodeKey, Node>& nodes() const { return nodes_; }
  [[nodiscard]] const std::deque<Packet>& link(NodeKey from, NodeKey to) {
    return links_[{from, to}];
  }
  [[nodiscard]] const std::map<std::pair<NodeKey, NodeKey>, std::deque<Packet>>& links() const {
    return links_;
  }
  [[nodiscard]] std::deque<Answer>& answers() { return answers_; }
  [[nodiscard]] const std::map<std::pair<std::uint64_t, std::uint64_t>, Fate>& fates() const {
    return fates_;
  }
  [[nodiscard]] bool quiet() const;
  // First violation of a guarantee; empty: none.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  std::vector<std::string> take_trace() { return std::exchange(trace_, {}); }

 private:
  void transmit(NodeKey from, std::uint64_t number);
  void put(NodeKey from, NodeKey to, Packet packet);
  void take(NodeKey from, NodeKey to, Packet packet);
  void arrive(NodeKey at, core::Parked message);
  void fence(NodeKey at, const core::PassingFence& fence);
  void fence_answer(NodeKey at, const FenceAnswer& answer);
  void act(NodeKey at, core::Route::Step step);
  void send_fence(NodeKey at);
  void carry_out(NodeKey at, core::Region::Outputs& outputs);
  void fail(NodeKey at, const core::Parked& message, Errc code);
  void lose(const Packet& packet);
  void lose(const core::Parked& message);
  void check_owners();
  void violate(const std::string& what);
  void note(NodeKey at, const std::string& what);

  std::map<NodeKey, Node> nodes_;
  std::map<std::pair<NodeKey, NodeKey>, std::deque<Packet>> links_;
  std::deque<Answer> answers_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Fate> fates_;
  std::map<std::uint64_t, std::uint64_t> last_handled_;
  bool deaths_ = false;
  std::string violation_;
  std::vector<std::string> trace_;
};

std::string text_of(Generation generation);
std::string text_of(const Packet& packet);

}  // namespace shardbus::handoff
