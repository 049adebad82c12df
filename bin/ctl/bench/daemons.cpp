#include "ctl/bench/daemons.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

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

}  // namespace

Daemons::Daemons(std::uint32_t nodes, const std::vector<std::string>& more) {
  for (std::uint32_t i = 0; i < nodes; ++i) start_node(i, more);
  wait_for_all();
}

void Daemons::start_node(std::uint32_t index, const std::vector<std::string>& more) {
  std::vector<std::string> words = {daemon_program(), "--cluster=bench", "--name=" + name(index),
                                    "--listen=tcp://127.0.0.1:0", "--log-level=error"};
  words.insert(words.end(), more.begin(), more.end());
  if (!addresses_.empty()) words.push_back("--seeds=" + addresses_.front());
  if (::access(words.front().c_str(), X_OK) != 0)
    fail(Exit::failed, words.front() + " cannot be run: " + std::strerror(errno) +
                           "; the variable SHARDBUSD names the program");
  processes_.emplace_back(words);
  const auto line = processes_.back().read_line(steady_clock::now() + kStartTimeout);
  if (!line) fail(Exit::failed, words.front() + " did not get ready");
  addresses_.push_back(listen_address(*line));
}

// A node is ready by its own view; here all have to agree on the last one that came.
void Daemons::wait_for_all() {
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

std::chrono::nanoseconds Daemons::cpu_time() const {
  std::chrono::nanoseconds sum = shardbus_tools::cpu_time(0);
  for (const Process& node : processes_) sum += shardbus_tools::cpu_time(node.pid());
  return sum;
}

std::uint64_t Daemons::resident_bytes() const {
  std::uint64_t sum = shardbus_tools::resident_bytes(0);
  for (const Process& node : processes_) sum += shardbus_tools::resident_bytes(node.pid());
  return sum;
}

void Daemons::kill() {
  for (const Process& node : processes_) node.signal(SIGKILL);
  for (Process& node : processes_) {
    if (node.pid() > 0) node.wait();
  }
}

}  // namespace shardbusctl::bench
