// One incarnation of a node: its control plane and its data plane, and what stands around the data
// plane: the wires, the notes for the control plane, and the messenger of entities and callers.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/control/control_plane.hpp"
#include "runtime/data/data_plane.hpp"
#include "sim/wires.hpp"

namespace shardbus::sim {

// The data plane's exit to the network. Clients are not simulated.
class SimWire final : public runtime::WirePort {
 public:
  using MachineOf = std::function<int(NodeKey)>;
  SimWire(int machine, Wires& wires, MachineOf machine_of)
      : machine_(machine), wires_(wires), machine_of_(std::move(machine_of)) {}

  bool send_front(std::uint32_t, bool, std::string_view) override { return false; }
  bool send_peer(std::uint32_t connection, std::string_view frame) override {
    return wires_.reply(machine_, connection, frame);
  }
  bool send_link(NodeKey node, std::string_view frame) override {
    return wires_.send(machine_, node, frame);
  }
  void open_link(const NodeInfo& node) override {
    wires_.open(machine_, node.key, machine_of_(node.key));
  }
  void close_link(NodeKey node) override { wires_.close(machine_, node); }
  void kick_front(std::uint32_t) override {}
  [[nodiscard]] bool front_is_gone(std::uint32_t) const override { return true; }

 private:
  int machine_;
  Wires& wires_;
  MachineOf machine_of_;
};

// What the data plane noted down for the control plane.
class Notes final : public runtime::DataListener {
 public:
  using Log = std::function<void(std::string_view event, const std::string& text)>;
  using Awake = std::function<bool(Time)>;
  Notes(Log log, Awake awake) : log_(std::move(log)), awake_(std::move(awake)) {}

  void on_control(NodeKey from, ControlMessage message) override {
    messages.emplace_back(from, std::move(message));
  }
  void on_traffic(NodeKey from) override { traffic.insert(from); }
  void on_link_lost(NodeKey node) override { lost.push_back(node); }
  void on_hosted_types(std::vector<HostedType> types) override { hosted = std::move(types); }
  void on_admin(runtime::AdminCall) override {}
  void log(LogLevel, std::string_view event, std::string text) override { log_(event, text); }
  // A machine that wakes up judges its pause before any frame is read (World::wake_up), so this
  // says no only where the control loop alone is late.
  [[nodiscard]] bool awake(Time now) const override { return awake_(now); }

  // Traffic alone does not wake the control loop.
  [[nodiscard]] bool wake() const { return !messages.empty() || !lost.empty() || !hosted.empty(); }

  std::vector<std::pair<NodeKey, ControlMessage>> messages;
  std::set<NodeKey> traffic;
  std::vector<NodeKey> lost;
  std::vector<HostedType> hosted;

 private:
  Log log_;
  Awake awake_;
};

// Of whatever runs on the node; says `stopped` once the plane is gone.
class SimMessenger final : public runtime::NodeMessenger {
 public:
  Status tell(const Outgoing& message) override {
    return Status(plane == nullptr ? Errc::stopped : plane->tell(message));
  }
  void ask(const Outgoing& message, milliseconds timeout, ReplyCallback done) override {
    if (plane != nullptr) return plane->ask(message, timeout, std::move(done));
    done({Errc::stopped, {}, {}});
  }
  Result<std::string> ask_and_wait(const Outgoing&, milliseconds) override {
    return Status(Errc::would_deadlock);
  }
  Status answer(const ReplyAddress& to, const ReplyView& reply) override {
    if (plane == nullptr) return Status(Errc::stopped);
    plane->answer(to, reply);
    return {};
  }
  Status answer_by_right(const ReplyAddress& to, const ReplyView& reply) override {
    if (plane == nullptr) return Status(Errc::stopped);
    plane->answer_by_right(to, reply);
    return {};
  }
  // Whoever calls now: the incarnation whose plane it is; 0: none any more.
  [[nodiscard]] NodeKey caller() const {
    return plane == nullptr ? kNoNode : plane->config().self.key;
  }
  runtime::DataPlane* plane = nullptr;
  std::function<Time()> now;  // of its machine
  bool calling = true;        // callers, handlers and callbacks still send something new
};

// Threads for handlers, as many as there are handlers: each one begins at once, and is done after a
// while.
class SimPool final : public runtime::Executor {
 public:
  // Runs something in a pass of this very process, if it still lives then.
  using Later = std::function<void(Duration delay, std::function<void()> what)>;
  SimPool(Later later, std::function<Duration()> length)
      : later_(std::move(later)), length_(std::move(length)) {}

  void post(std::uint32_t, UniqueFunction<void()> work, UniqueFunction<void()> done) override {
    auto job = std::make_shared<Job>(Job{std::move(work), std::move(done)});
    later_({}, [this, job] {
      job->work();
      later_(length_(), [job] { job->done(); });
    });
  }

 private:
  struct Job {
    UniqueFunction<void()> work;
    UniqueFunction<void()> done;
  };
  Later later_;
  std::function<Duration()> length_;
};

struct ProcessOptions {
  Notes::Log log;
  Notes::Awake awake;
  SimPool::Later later;
  std::function<Duration()> length;  // of a handler; empty: handlers run within the pass
};

struct Process {
  Process(Time now, control::ControlConfig control, runtime::DataConfig data, SimWire& wire,
          ProcessOptions options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] NodeKey key() const { return data.config().self.key; }
  // Runs `what` in a pass of the data plane.
  template <class F>
  void pass(Time now, F&& what) {
    data.begin(now);
    what();
    data.end();
  }
  [[nodiscard]] std::string state_text() const;
  [[nodiscard]] Marks marks() const;

  Notes notes;
  std::shared_ptr<SimMessenger> messenger = std::make_shared<SimMessenger>();
  std::unique_ptr<SimPool> pool;
  control::ControlPlane control;
  runtime::DataPlane data;
  std::uint64_t told_cluster = 0;
  Time right{};       // see ControlPlane::strict_until
  Time told_right{};  // what the data plane was told of it
};

}  // namespace shardbus::sim
