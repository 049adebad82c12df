#include <cstdio>
#include <cstring>

#include "ctl/bench/bench.hpp"
#include "ctl/bench/clusters.hpp"
#include "ctl/bench/sender.hpp"
#include "ctl/session.hpp"

namespace shardbusctl::bench {
namespace {

constexpr shardbus::milliseconds kStartTimeout{20'000};

// Answers with the stamp and notes whether each sender's asks come in order, without a gap.
class CheckingEcho final : public shardbus::Entity {
 public:
  explicit CheckingEcho(std::uint32_t senders) : expected_(senders, 0) {}

  void handle(shardbus::Delivery& delivery) override {
    Stamp stamp;
    if (delivery.payload.size() < sizeof stamp) {
      (void)delivery.port.fail(shardbus::Errc::decode_failed, "no stamp");
      return;
    }
    std::memcpy(&stamp, delivery.payload.data(), sizeof stamp);
    if (stamp.sender >= expected_.size() || stamp.sequence != expected_[stamp.sender]++)
      stamp.in_order = 0;
    buffer_.assign(delivery.payload);
    std::memcpy(buffer_.data(), &stamp, sizeof stamp);
    if (delivery.port.valid())
      (void)delivery.port.state()->answer({shardbus::Errc::ok, {}, buffer_});
  }

 private:
  std::vector<std::uint64_t> expected_;
  std::string buffer_;
};

class InProcess final : public Cluster {
 public:
  explicit InProcess(const ClusterOptions& options) {
    for (std::uint32_t i = 0; i < options.nodes; ++i) nodes_.push_back(start_node(i, options));
    for (const shardbus::Node& node : nodes_) {
      if (const auto ready = node.wait_ready(kStartTimeout, options.nodes); !ready) fail(ready);
    }
  }

  [[nodiscard]] std::vector<std::shared_ptr<shardbus::Messenger>> ways_in() const override {
    std::vector<std::shared_ptr<shardbus::Messenger>> ways;
    for (const shardbus::Node& node : nodes_) ways.push_back(node.messenger());
    return ways;
  }
  [[nodiscard]] std::string type() const override { return "bench"; }
  [[nodiscard]] std::chrono::nanoseconds cpu_time() const override {
    return shardbus_tools::cpu_time(0);
  }
  [[nodiscard]] std::uint64_t resident_bytes() const override {
    return shardbus_tools::resident_bytes(0);
  }
  void stop() override {
    for (shardbus::Node& node : nodes_) node.stop();
  }

 private:
  shardbus::Node start_node(std::uint32_t index, const ClusterOptions& options) {
    shardbus::NodeOptions node_options;
    node_options.cluster = "bench";
    node_options.name = "n" + std::to_string(index);
    node_options.listen = "tcp://127.0.0.1:0";
    node_options.workers = options.workers;
    node_options.log = &log_errors;
    if (!nodes_.empty()) node_options.seeds = {nodes_.front().listen_address()};
    auto node = shardbus::Node::start(std::move(node_options));
    if (!node) fail(node.error());
    shardbus::EntityType type{"bench", {}, [senders = options.senders](const shardbus::Context&) {
                                return std::make_unique<CheckingEcho>(senders);
                              }};
    if (const auto hosted = node->host(std::move(type)); !hosted) fail(hosted);
    return std::move(*node);
  }

  std::vector<shardbus::Node> nodes_;
};

}  // namespace

std::unique_ptr<Cluster> start_in_process(const ClusterOptions& options) {
  return std::make_unique<InProcess>(options);
}

}  // namespace shardbusctl::bench
