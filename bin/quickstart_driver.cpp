// The load of bin/quickstart: asks and tells through every broker, the kill of one of them, and
// the proof that nothing was lost that could be kept. bin/quickstart starts what it needs.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <shardbus/client.hpp>
#include <system_error>

#include "ctl/render.hpp"
#include "demo/readings.hpp"
#include "demo/workload.hpp"

namespace shardbus_demo {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using Rows = std::vector<std::vector<std::string>>;

struct Arguments {
  std::vector<std::string> nodes;
  std::vector<std::string> names;
  pid_t kill_pid = 0;
  std::string kill_name;
  std::uint32_t entities = 1000;
  std::uint32_t window = 32;
  double seconds = 3;
  std::string json_file;
};

const Kind kCounter{"counter", "add", "get"};
const Kind kAccount{"account", "deposit", "balance"};
const Kind kCart{"cart", "add", "get"};

double in_ms(steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Of twenty, fifteen are counters of the brokers, four accounts of the C++ host, and one is a cart
// of the Python worker: all of them wait for the slowest, as the number of asks in flight is fixed.
std::vector<Entity> make_entities(std::uint32_t count) {
  std::vector<Entity> entities;
  for (std::uint32_t i = 0; i < count; ++i) {
    Entity& entity = entities.emplace_back();
    entity.kind = i % 20 < 15 ? &kCounter : i % 20 < 19 ? &kAccount : &kCart;
    entity.id = entity.kind->type + "-" + std::to_string(i);
  }
  return entities;
}

// A way in through each broker, and through no other.
std::vector<shardbus::Client> connect(const Arguments& arguments) {
  std::vector<shardbus::Client> clients;
  for (const std::string& node : arguments.nodes) {
    shardbus::ClientOptions options;
    options.nodes = {node};
    options.smart = false;
    options.log = [](shardbus::LogLevel, std::string_view, std::string_view) {};
    clients.push_back(shardbus::Client::connect(options).value());
  }
  return clients;
}

class Progress {
 public:
  explicit Progress(std::string what)
      : what_(std::move(what)), tty_(::isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (tty_) std::fprintf(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::uint64_t ended) const {
    const double seconds = in_ms(steady_clock::now() - begin_) / 1000;
    if (tty_)
      std::fprintf(stderr, "\r\033[K%s  %4.1f s  %llu asks", what_.c_str(), seconds,
                   static_cast<unsigned long long>(ended));
  }

 private:
  std::string what_;
  bool tty_;
  steady_clock::time_point begin_ = steady_clock::now();
};

void print_lanes(const Report& report, const std::vector<std::string>& owner_of) {
  Rows rows{{"NODE", "ASKS", "ERRORS", "TELLS", "ASKS/S", "P50 us", "P99 us", "SHARE %", "OWNS"}};
  std::uint64_t all = 0;
  for (const LaneReport& lane : report.lanes) all += lane.asks;
  std::set<std::string> shown;
  for (const LaneReport& lane : report.lanes) {
    shown.insert(lane.name);
    rows.push_back({lane.name, std::to_string(lane.asks), std::to_string(lane.errors),
                    std::to_string(lane.tells),
                    fixed(static_cast<double>(lane.asks) * 1000 / in_ms(report.wall), 0),
                    std::to_string(lane.latency_us.quantile(0.5)),
                    std::to_string(lane.latency_us.quantile(0.99)),
                    fixed(100.0 * static_cast<double>(lane.asks) /
                              static_cast<double>(std::max<std::uint64_t>(all, 1)),
                          1),
                    std::to_string(std::ranges::count(owner_of, lane.name))});
  }
  // Nodes that own entities but are no way in: the C++ host.
  for (const std::string& owner : std::set<std::string>(owner_of.begin(), owner_of.end())) {
    if (!shown.contains(owner))
      rows.push_back({owner, "-", "-", "-", "-", "-", "-", "-",
                      std::to_string(std::ranges::count(owner_of, owner))});
  }
  std::fputs(shardbusctl::table(rows).c_str(), stdout);
}

void print_endings(const char* what, const std::map<std::string, Ending>& endings) {
  std::printf("%s\n", what);
  if (endings.empty()) std::printf("  none\n");
  for (const auto& [name, ending] : endings)
    std::printf("  %6llu  %-16s slowest after %.1f ms\n",
                static_cast<unsigned long long>(ending.count), name.c_str(), in_ms(ending.slowest));
}

// Returns when the process is gone, whoever its parent is.
void kill_and_wait(pid_t pid, Workload& workload) {
  const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0) throw std::system_error(errno, std::generic_category(), "pidfd_open");
  workload.kill_is_sent();
  ::kill(pid, SIGKILL);
  pollfd gone{handle, POLLIN, 0};
  while (::poll(&gone, 1, -1) < 0 && errno == EINTR) {
  }
  ::close(handle);
}

Json to_json(const std::map<std::string, Ending>& endings) {
  Json all = Json::object();
  for (const auto& [name, ending] : endings)
    all[name] = {{"count", ending.count}, {"slowest_ms", in_ms(ending.slowest)}};
  return all;
}

Json to_json(const Report& report) {
  Json lanes = Json::array();
  for (const LaneReport& lane : report.lanes)
    lanes.push_back({{"node", lane.name},
                     {"asks", lane.asks},
                     {"replies", lane.replies},
                     {"errors", lane.errors},
                     {"tells", lane.tells},
                     {"p50_us", lane.latency_us.quantile(0.5)},
                     {"p99_us", lane.latency_us.quantile(0.99)}});
  return {{"lanes", lanes},
          {"in_flight", to_json(report.in_flight)},
          {"later", to_json(report.later)},
          {"all_answered_ms", in_ms(report.all_answered)},
          {"never_answered", report.never_answered},
          {"longest_silence_ms", in_ms(report.longest_silence)}};
}

class Demo {
 public:
  explicit Demo(const Arguments& arguments)
      : arguments_(arguments),
        clients_(connect(arguments)),
        entities_(make_entities(arguments.entities)) {
    Ways ways;
    for (std::size_t i = 0; i < clients_.size(); ++i)
      ways.emplace_back(arguments.names[i], clients_[i].messenger());
    workload_ = std::make_unique<Workload>(ways, entities_, arguments.window);
  }

  bool run() {
    calm_load();
    if (arguments_.kill_pid != 0) load_with_a_death();
    if (!arguments_.json_file.empty()) std::ofstream(arguments_.json_file) << result_.dump(2);
    return good_;
  }

 private:
  [[nodiscard]] steady_clock::duration length() const {
    return std::chrono::duration_cast<steady_clock::duration>(
        std::chrono::duration<double>(arguments_.seconds));
  }

  void calm_load() {
    (void)read_all(clients_, entities_);  // Starts every entity.
    find_owners();
    const Progress progress("load");
    const Report report = workload_->run(length(), {}, [&](auto ended) { progress.show(ended); });
    std::printf("== load on %zu entities through %zu brokers\n", entities_.size(), clients_.size());
    print_lanes(report, owner_names());
    result_["calm"] = to_json(report);
    for (const LaneReport& lane : report.lanes)
      expect(lane.errors == 0 && lane.refused_tells == 0 && lane.replies == lane.asks,
             "without a failure every ask is answered");
    check_counters("calm");
  }

  void load_with_a_death() {
    const auto lane = static_cast<std::size_t>(
        std::ranges::find(arguments_.names, arguments_.kill_name) - arguments_.names.begin());
    workload_->will_die(arguments_.kill_name, lane);
    const auto kill_at = steady_clock::now() + length() / 3;
    bool killed = false;
    const Progress progress("load, one broker killed");
    const Report report = workload_->run(length(), std::chrono::seconds(20), [&](auto ended) {
      progress.show(ended);
      if (killed || steady_clock::now() < kill_at) return;
      killed = true;
      kill_and_wait(arguments_.kill_pid, *workload_);
      workload_->death_is_confirmed(clients_[(lane + 1) % clients_.size()].messenger());
    });
    clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(lane));
    std::printf("\n== %s killed by SIGKILL in mid-load\n", arguments_.kill_name.c_str());
    print_lanes(report, owners(clients_.front(), entities_));
    print_death(report);
    result_["death"] = to_json(report);
    expect(report.never_answered == 0, "every entity answers again");
    for (const LaneReport& one : report.lanes)
      expect(one.replies + one.errors == one.asks, "every ask ends in a reply or an error");
    check_counters("death");
  }

  void print_death(const Report& report) const {
    std::printf("every entity answered again after    %7.1f ms\n", in_ms(report.all_answered));
    std::printf("longest time without any reply       %7.1f ms\n", in_ms(report.longest_silence));
    print_endings("asks in flight at that moment ended in", report.in_flight);
    print_endings("errors of asks sent later", report.later);
  }

  void check_counters(const char* phase) {
    const std::vector<std::uint64_t> values = read_all(clients_, entities_);
    const std::vector<std::string> wrong = wrong_counters(entities_, workload_->death(), values);
    const auto restarted = std::ranges::count(entities_, workload_->death().node, &Entity::owner);
    std::printf("counters right: %zu of %zu", entities_.size() - wrong.size(), entities_.size());
    if (restarted > 0)
      std::printf(" (%td began again from zero, as their node is gone)", restarted);
    std::printf("\n");
    for (std::size_t i = 0; i < std::min<std::size_t>(wrong.size(), 10); ++i)
      std::printf("  wrong: %s\n", wrong[i].c_str());
    result_[phase]["wrong_counters"] = wrong.size();
    result_[phase]["restarted"] = restarted;
    expect(wrong.empty(), "every counter is right");
  }

  void expect(bool condition, const char* what) {
    if (condition) return;
    std::printf("FAILED: %s\n", what);
    good_ = false;
  }

  void find_owners() {
    const std::vector<std::string> names = owners(clients_.front(), entities_);
    for (std::size_t i = 0; i < entities_.size(); ++i) entities_[i].owner = names[i];
  }
  [[nodiscard]] std::vector<std::string> owner_names() const {
    std::vector<std::string> names;
    for (const Entity& entity : entities_) names.push_back(entity.owner);
    return names;
  }

  const Arguments& arguments_;
  std::vector<shardbus::Client> clients_;
  std::vector<Entity> entities_;
  std::unique_ptr<Workload> workload_;
  Json result_ = Json::object();
  bool good_ = true;
};

int main_with(int count, char** words) {
  Arguments arguments;
  CLI::App app("The load of bin/quickstart.", "shardbus-quickstart-driver");
  app.add_option("--node", arguments.nodes, "Listen address of a broker; repeatable.")->required();
  app.add_option("--name", arguments.names, "Its name, in the same order.")->required();
  app.add_option("--kill-pid", arguments.kill_pid, "Process of the broker to kill; 0: none.");
  app.add_option("--kill-name", arguments.kill_name, "Its name.");
  app.add_option("--entities", arguments.entities, "How many entities.");
  app.add_option("--window", arguments.window, "Asks in flight through each broker.");
  app.add_option("--seconds", arguments.seconds, "Length of each of the two loads.");
  app.add_option("--json", arguments.json_file, "File for the figures.");
  CLI11_PARSE(app, count, words);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // Each line when it is true, also into a pipe.
  if (arguments.names.size() != arguments.nodes.size()) {
    std::fprintf(stderr, "error: as many --name as --node are needed\n");
    return 2;
  }
  return Demo(arguments).run() ? 0 : 1;
}

}  // namespace
}  // namespace shardbus_demo

int main(int count, char** words) {
  try {
    return shardbus_demo::main_with(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quickstart: error: %s\n", error.what());
    return 1;
  }
}
