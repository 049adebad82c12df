#include "ctl/bench/handoff_cluster.hpp"

#include <cstdio>
#include <cstring>
#include <utility>

#include "ctl/bench/bench.hpp"
#include "ctl/bench/flow.hpp"
#include "ctl/bench/ledger.hpp"
#include "ctl/session.hpp"

namespace shardbusctl::bench {
namespace {

constexpr shardbus::milliseconds kPatience{30'000};

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

class LedgerEntity final : public shardbus::Entity {
 public:
  explicit LedgerEntity(std::shared_ptr<Pauses> pauses) : pauses_(std::move(pauses)) {}

  void handle(shardbus::Delivery& delivery) override {
    if (delivery.method == "accounts") return answer(delivery, ledger_.save(0));
    Numbered numbered;
    if (delivery.payload.size() != sizeof numbered) {
      (void)delivery.port.fail(shardbus::Errc::decode_failed, "no numbered message");
      return;
    }
    std::memcpy(&numbered, delivery.payload.data(), sizeof numbered);
    const std::int64_t pause = ledger_.take_pause(numbered.sent, now_ns());
    if (pause >= 0) {
      const std::lock_guard lock(pauses_->mutex);
      pauses_->ns.add(static_cast<std::uint64_t>(pause));
    }
    ledger_.note(numbered.sender, numbered.number);
    answer(delivery, delivery.payload);
  }

  bool save(std::string& state) override {
    state = ledger_.save(now_ns());
    return true;
  }

  shardbus::Status load(std::string_view state) override {
    if (auto loaded = ledger_.load(state, now_ns()); !loaded) return loaded;
    const std::lock_guard lock(pauses_->mutex);
    ++pauses_->moved;
    return {};
  }

 private:
  static void answer(shardbus::Delivery& delivery, std::string_view payload) {
    if (!delivery.port.valid()) return;
    (void)delivery.port.state()->answer({shardbus::Errc::ok, {}, payload});
  }

  std::shared_ptr<Pauses> pauses_;
  Ledger ledger_;
};

}  // namespace

HandoffCluster::HandoffCluster(std::uint32_t nodes, std::uint32_t shards) : shards_(shards) {
  for (std::uint32_t i = 0; i < nodes; ++i) start_node();
  for (const shardbus::Node& node : nodes_) {
    if (const auto ready = node.wait_ready(kPatience, nodes); !ready) fail(ready);
  }
}

void HandoffCluster::start_node() {
  shardbus::NodeOptions options;
  options.cluster = "bench-handoff";
  options.name = "n" + std::to_string(started_++);
  options.listen = "tcp://127.0.0.1:0";
  options.log = &log_errors;
  if (!nodes_.empty()) options.seeds = {nodes_.front().listen_address()};
  auto node = shardbus::Node::start(std::move(options));
  if (!node) fail(node.error());
  shardbus::TypeOptions type;
  type.shard_count = shards_;
  const auto hosted = node->host({kLedgerType, type, [pauses = pauses_](const shardbus::Context&) {
                                    return std::make_unique<LedgerEntity>(pauses);
                                  }});
  if (!hosted) fail(hosted);
  nodes_.push_back(std::move(*node));
}

void HandoffCluster::join() {
  start_node();
  const auto ready = nodes_.back().wait_ready(kPatience, static_cast<std::uint32_t>(nodes_.size()));
  if (!ready) fail(ready);
}

void HandoffCluster::leave() {
  shardbus::Node node = std::move(nodes_.back());
  nodes_.pop_back();
  if (const auto left = node.leave(kPatience); !left) fail(left);
}

void HandoffCluster::stop() {
  for (shardbus::Node& node : nodes_) node.stop();
}

}  // namespace shardbusctl::bench
