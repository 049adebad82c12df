#include "ctl/bench/clusters.hpp"
#include "ctl/bench/daemons.hpp"
#include "ctl/session.hpp"

namespace shardbusctl::bench {
namespace {

class Processes final : public Cluster {
 public:
  explicit Processes(const ClusterOptions& options)
      : daemons_(
            options.nodes,
            {"--workers=" + std::to_string(options.workers),
             "--client-credit=" + std::to_string(std::max<std::uint32_t>(options.credit, 1024))}) {
    shardbus::ClientOptions client_options;
    client_options.nodes = daemons_.addresses();
    client_options.smart = options.smart;
    auto client = shardbus::Client::connect(client_options);
    if (!client) fail(client.error());
    client_ = std::make_unique<shardbus::Client>(std::move(*client));
  }

  [[nodiscard]] std::vector<std::shared_ptr<shardbus::Messenger>> ways_in() const override {
    return {client_->messenger()};
  }
  [[nodiscard]] std::string type() const override { return "echo"; }
  [[nodiscard]] std::chrono::nanoseconds cpu_time() const override { return daemons_.cpu_time(); }
  [[nodiscard]] std::uint64_t resident_bytes() const override { return daemons_.resident_bytes(); }
  void stop() override {
    client_->stop();
    daemons_.kill();
  }

 private:
  Daemons daemons_;
  std::unique_ptr<shardbus::Client> client_;
};

}  // namespace

std::unique_ptr<Cluster> start_processes(const ClusterOptions& options) {
  return std::make_unique<Processes>(options);
}

}  // namespace shardbusctl::bench
