// A data plane without sockets: frames go into queues, and time is what the test says.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "runtime/data/data_plane.hpp"

namespace shardbus::runtime {

using namespace std::chrono_literals;

inline constexpr std::uint32_t kShards = 4;

inline NodeKey key_of(int number) {
  return node_key("n" + std::to_string(number), 1);
}
inline NodeInfo info_of(int number) {
  return {"n" + std::to_string(number), 1, key_of(number), "front", "peer", "gossip"};
}

class FakeWire final : public WirePort {
 public:
  bool send_front(std::uint32_t connection, bool, std::string_view frame) override {
    if (full) return false;
    front[connection].emplace_back(frame);
    return true;
  }
  bool send_peer(std::uint32_t connection, std::string_view frame) override {
    peer.emplace_back(connection, frame);
    return true;
  }
  bool send_link(NodeKey node, std::string_view frame) override {
    link.emplace_back(node, frame);
    return true;
  }
  void open_link(const NodeInfo&) override {}
  void close_link(NodeKey) override {}
  void kick_front(std::uint32_t connection) override { kicked.push_back(connection); }
  [[nodiscard]] bool front_is_gone(std::uint32_t connection) const override {
    return gone.contains(connection);
  }

  bool full = false;  // no front takes anything
  std::map<std::uint32_t, std::vector<std::string>> front;
  std::deque<std::pair<std::uint32_t, std::string>> peer;  // answers on sessions that came in
  std::deque<std::pair<NodeKey, std::string>> link;
  std::vector<std::uint32_t> kicked;
  std::set<std::uint32_t> gone;  // connections that the peer has closed
};

class FakeListener final : public DataListener {
 public:
  void on_control(NodeKey, ControlMessage message) override { control.push_back(message); }
  void on_traffic(NodeKey) override {}
  void on_link_lost(NodeKey) override {}
  void on_hosted_types(std::vector<HostedType> types) override { hosted = std::move(types); }
  void on_admin(AdminCall) override {}
  void log(LogLevel, std::string_view event, std::string text) override {
    lines.push_back(std::string(event) + " " + text);
  }
  [[nodiscard]] bool awake(Time) const override { return looks; }

  bool looks = true;
  std::vector<std::string> lines;
  std::vector<ControlMessage> control;
  std::vector<HostedType> hosted;
};

// Answers of handlers go straight back into the plane.
class PlaneMessenger final : public NodeMessenger {
 public:
  Status tell(const Outgoing& message) override {
    return plane->tell(message) == Errc::ok ? Status() : Status(Errc::overloaded);
  }
  void ask(const Outgoing& message, milliseconds timeout, ReplyCallback done) override {
    plane->ask(message, timeout, std::move(done));
  }
  Result<std::string> ask_and_wait(const Outgoing&, milliseconds) override {
    return Status(Errc::would_deadlock);
  }
  Status answer(const ReplyAddress& to, const ReplyView& reply) override {
    plane->answer(to, reply);
    return {};
  }
  Status answer_by_right(const ReplyAddress& to, const ReplyView& reply) override {
    plane->answer_by_right(to, reply);
    return {};
  }
  DataPlane* plane = nullptr;
};

// Answers with its payload, or its sender for "sender"; keeps silent for the method "silence".
class Echo final : public Entity {
 public:
  void handle(Delivery& delivery) override {
    if (!delivery.port.valid()) return;
    if (delivery.method == "silence") return ports_.push_back(std::move(delivery.port));
    std::string payload(delivery.payload);
    if (delivery.method == "sender") payload = delivery.context->sender();
    if (delivery.method == "big") payload.assign(1'000'000, 'x');
    if (delivery.method == "large") payload.assign(2 << 20, 'x');
    (void)delivery.port.state()->answer({Errc::ok, {}, payload});
  }

 private:
  std::vector<AnyReplyPort> ports_;  // one that is dropped answers by itself
};

struct Outcome {
  int times = 0;
  Errc error = Errc::ok;
  std::string payload;
};

// Keeps what handlers should do elsewhere until the test runs it.
class LateExecutor final : public Executor {
 public:
  void post(std::uint32_t, UniqueFunction<void()> work, UniqueFunction<void()> done) override {
    jobs.emplace_back(std::move(work), std::move(done));
  }
  // Runs all handlers; the planes do not hear of it yet.
  void begin() {
    for (auto& [work, done] : jobs) std::exchange(work, [] {})();
  }
  void run() {
    while (!jobs.empty()) {
      auto [work, done] = std::move(jobs.front());
      jobs.pop_front();
      work();
      done();
    }
  }
  std::deque<std::pair<UniqueFunction<void()>, UniqueFunction<void()>>> jobs;
};

// Notes the payloads of what it handles; answers asks.
class Recorder final : public Entity {
 public:
  explicit Recorder(std::vector<std::string>& notes) : notes_(notes) {}
  void handle(Delivery& delivery) override {
    notes_.emplace_back(delivery.payload);
    if (delivery.port.valid()) (void)delivery.port.state()->answer({Errc::ok, {}, {}});
  }

 private:
  std::vector<std::string>& notes_;
};

// One node and what goes in and out of it.
struct TestNode {
  explicit TestNode(int number, DataConfig config = {}, Executor* executor = nullptr)
      : messenger(std::make_shared<PlaneMessenger>()) {
    config.self = info_of(number);
    config.cluster = "test";
    plane = std::make_unique<DataPlane>(config, wire, listener, messenger, executor);
    messenger->plane = plane.get();
  }
  void host(const std::string& name) {
    host_type(name, [](const Context&) { return std::make_unique<Echo>(); });
  }
  void host_type(const std::string& name,
                 std::function<std::unique_ptr<Entity>(const Context&)> create) {
    EntityType type;
    type.name = name;
    type.options.shard_count = kShards;
    type.create = std::move(create);
    EXPECT_EQ(plane->host(std::move(type)), Errc::ok);
  }
  // Owns every shard of the type, and knows it.
  void own(const std::string& name, std::uint64_t number = 1) {
    const NodeKey self = plane->config().self.key;
    for (std::uint32_t i = 0; i < kShards; ++i) {
      plane->dispatch().on_region_command(
          self, RehomeShard{{name, ShardId{i}}, kShards, generation(number), {}});
    }
    owner(name, self, number);
  }
  void owner(const std::string& name, NodeKey node, std::uint64_t number = 1) {
    TypeTable rows{name, kShards, {}};
    rows.entries.assign(kShards, TableEntry{node, generation(number)});
    plane->dispatch().on_table({TableVersion{Term{1}, NodeKey{9}, number}, {rows}});
  }
  static Generation generation(std::uint64_t number = 1) { return {Term{1}, NodeKey{9}, number}; }

  void ask(const Outgoing& message, milliseconds timeout, Outcome& outcome) {
    plane->ask(message, timeout, [&outcome](const ReplyView& reply) {
      ++outcome.times;
      outcome.error = reply.error;
      outcome.payload = std::string(reply.payload);
    });
  }

  FakeWire wire;
  FakeListener listener;
  std::shared_ptr<PlaneMessenger> messenger;
  std::unique_ptr<DataPlane> plane;
};

class PlaneTest : public testing::Test {
 protected:
  // One pass of the node.
  template <class F = void (*)()>
  void pass(
      TestNode& node, F&& body = [] {}) {
    node.plane->begin(now_);
    body();
    node.plane->end();
  }
  void later(Duration time) { now_ += time; }

  Time now_ = Time{} + 1h;
};

// Node B takes from node A what the test carries over, and the other way round.
class TwoPlanesTest : public PlaneTest {
 protected:
  explicit TwoPlanesTest(DataConfig a = {}) : a_(1, std::move(a)), b_(2) {
    pass(a_, [&] { a_.plane->connect(info_of(2)); });
    pass(b_, [&] { b_.plane->connect(info_of(1)); });
  }
  void connect() {
    pass(a_, [&] { a_.plane->links().on_connected(key_of(2)); });
    pass(b_, [&] { b_.plane->links().on_connected(key_of(1)); });
    exchange();
  }
  // B owns all shards of "echo".
  void b_owns() {
    pass(b_, [&] {
      b_.host("echo");
      b_.own("echo");
    });
    pass(a_, [&] { a_.owner("echo", key_of(2)); });
  }
  bool move(TestNode& from, TestNode& to) {
    const NodeKey sender = from.plane->config().self.key;
    const bool any = !from.wire.link.empty() || !from.wire.peer.empty();
    pass(to, [&] {
      for (const auto& [node, frame] : std::exchange(from.wire.link, {})) {
        to.plane->peers().on_frame(1, frame);
      }
      for (const auto& [node, frame] : std::exchange(from.wire.peer, {})) {
        to.plane->links().on_frame(sender, frame);
      }
    });
    return any;
  }
  void exchange() {
    for (int i = 0; i < 100; ++i) {
      const bool forth = move(a_, b_);
      if (!move(b_, a_) && !forth) return;
    }
    FAIL() << "the nodes never fall silent";
  }
  void ask_a(Outcome& outcome, std::string_view method = "say", milliseconds timeout = 1000ms) {
    pass(a_, [&] { a_.ask({"echo", "id", method, "hello"}, timeout, outcome); });
  }

  TestNode a_;
  TestNode b_;
};

// All envelopes of some frames, with the bytes that they point into.
class Envelopes {
 public:
  explicit Envelopes(std::vector<std::string> frames) : frames_(std::move(frames)) {
    for (const std::string& frame : frames_) {
      std::string_view rest = frame;
      wire::Envelope envelope;
      while (!rest.empty() && wire::next_envelope(rest, envelope) == Errc::ok) {
        all.push_back(envelope);
      }
    }
  }
  [[nodiscard]] std::vector<wire::Envelope> of(wire::Kind kind) const {
    std::vector<wire::Envelope> found;
    for (const wire::Envelope& envelope : all) {
      if (envelope.kind == kind) found.push_back(envelope);
    }
    return found;
  }
  std::vector<wire::Envelope> all;

 private:
  std::vector<std::string> frames_;
};

}  // namespace shardbus::runtime
