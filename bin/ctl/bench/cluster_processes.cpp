#include <csignal>
#include <cstdlib>
#include <thread>

#include "ctl/bench/clusters.hpp"
#include "ctl/session.hpp"

namespace shardbusctl::bench {
namespace {

using shardbus_tools::Process;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kStartTimeout{20};

// Where shardbusd is: beside this program, unless SHARDBUSD names another one.
std::string daemon_program() {
  const char* named = std::getenv("SHARDBUSD");
  return named != nullptr && *named != '\0' ? named
                                            : shardbus_tools::beside_this_program("shardbusd");
}

std::string listen_address(const std::string& ready_line) {
  const std::string key = " listen=";
  const std::size_t begin = ready_line.find(key);
  if (!ready_line.starts_with("ready ") || begin == std::string::npos)
    fail(Exit::failed, "shardbusd printed no ready line but: " + ready_line);
  const std::size_t value = begin + key.size();
  return ready_line.substr(value, ready_line.find(' ', value) - value);
}

class Processes final : public Cluster {
 public:
  explicit Processes(const ClusterOptions& options) {
    for (std::uint32_t i = 0; i < options.nodes; ++i) start_node(i, options);
    wait_for_all();
    shardbus::ClientOptions client_options;
    client_options.nodes = addresses_;
    client_options.smart = options.smart;
    auto client = shardbus::Client::connect(client_options);
    if (!client) fail(client.error());
    client_ = std::make_unique<shardbus::Client>(std::move(*client));
  }

  [[nodiscard]] std::vector<std::shared_ptr<shardbus::Messenger>> ways_in() const override {
    return {client_->messenger()};
  }
  [[nodiscard]] std::string type() const override { return "echo"; }
  [[nodiscard]] std::chrono::nanoseconds cpu_time() const override {
    std::chrono::nanoseconds sum = shardbus_tools::cpu_time(0);
    for (const Process& node : nodes_) sum += shardbus_tools::cpu_time(node.pid());
    return sum;
  }
  [[nodiscard]] std::uint64_t resident_bytes() const override {
    std::uint64_t sum = shardbus_tools::resident_bytes(0);
    for (const Process& node : nodes_) sum += shardbus_tools::resident_bytes(node.pid());
    return sum;
  }
  void stop() override {
    client_->stop();
    // All at once and without handing over: there is nothing that anybody wants to keep.
    for (const Process& node : nodes_) node.signal(SIGKILL);
    for (Process& node : nodes_) node.wait();
  }

 private:
  void start_node(std::uint32_t index, const ClusterOptions& options) {
    std::vector<std::string> words = {
        daemon_program(),
        "--cluster=bench",
        "--name=n" + std::to_string(index),
        "--listen=tcp://127.0.0.1:0",
        "--log-level=error",
        "--workers=" + std::to_string(options.workers),
        "--client-credit=" + std::to_string(std::max<std::uint32_t>(options.credit, 1024))};
    if (!addresses_.empty()) words.push_back("--seeds=" + addresses_.front());
    nodes_.emplace_back(words);
    const auto line = nodes_.back().read_line(steady_clock::now() + kStartTimeout);
    if (!line) fail(Exit::failed, words.front() + " did not get ready");
    addresses_.push_back(listen_address(*line));
  }

  // A node is ready by its own view; here all have to agree on the last one that came.
  void wait_for_all() {
    constexpr std::chrono::milliseconds kBetweenLooks{10};
    const auto deadline = steady_clock::now() + kStartTimeout;
    for (const std::string& address : addresses_) {
      const Globals globals{{address}, false, std::chrono::milliseconds(5000)};
      Session session(globals);
      while (true) {
        const Json status = session.ask_node("", "status", nullptr);
        if (status.value("ready", false) && status.value("up", 0U) == addresses_.size()) break;
        if (steady_clock::now() > deadline)
          fail(Exit::failed, "the cluster did not settle: " + status.value("why", std::string()));
        std::this_thread::sleep_for(kBetweenLooks);
      }
    }
  }

  std::vector<Process> nodes_;
  std::vector<std::string> addresses_;
  std::unique_ptr<shardbus::Client> client_;
};

}  // namespace

std::unique_ptr<Cluster> start_processes(const ClusterOptions& options) {
  return std::make_unique<Processes>(options);
}

}  // namespace shardbusctl::bench
