// Player of whole control planes: a calm simulated cluster (every message takes 0.2 ms, none is
// lost). Each command's time is when it happens, in milliseconds since the start.
#include "golden/command.hpp"
#include "golden/players.hpp"
#include "sim/world.hpp"

namespace shardbus::golden {
namespace {

// start a [bootstrap] | crash a | pause a | resume a | leave a | down a b | host a type/count,... |
// downing POLICY quorum_size= down_if_alone= | min_members N | cut ab cd | heal | run | refuse a b
// (a finds the port of b closed) The transcript holds events, commands to regions and table
// changes, but no gossip.
class ControlPlayer final : public Player {
 public:
  ControlPlayer() : world_(config()) {}

  std::string play(const std::string& text) override {
    const Command command(text);
    if (!world_.run_until(command.now + std::chrono::seconds(1))) {
      throw std::runtime_error(*world_.broken());
    }
    std::string before = std::exchange(lines_, {});
    act(command);
    return before + std::exchange(lines_, {});
  }

 private:
  sim::WorldConfig config() {
    sim::WorldConfig config;
    config.machines = 4;
    config.types = {HostedType{"cart", 4}};
    config.trace = [this](const std::string& line) {
      for (const char* word : {" send ", " table ", " frame ", " link.", " region."}) {
        if (line.find(word) != std::string::npos) return;
      }
      lines_ += line + "\n";
    };
    return config;
  }

  static int machine(const std::string& name) { return name.at(0) - 'a'; }

  void act(const Command& command) {
    const auto word = [&](std::size_t i) { return command.words.at(i); };
    if (command.verb == "run") return;
    if (command.verb == "heal") return world_.heal();
    if (command.verb == "cut") return cut(word(0), word(1));
    if (command.verb == "downing") return world_.set_rules(downing_rules(command));
    if (command.verb == "min_members") {
      return world_.set_min_members(static_cast<std::uint32_t>(std::stoul(word(0))));
    }
    const int at = machine(word(0));
    if (command.verb == "start") return world_.start(at, command.words.size() > 1);
    if (command.verb == "crash") return world_.crash(at);
    if (command.verb == "pause") return world_.pause(at);
    if (command.verb == "resume") return world_.resume(at);
    if (command.verb == "leave") return world_.leave(at);
    if (command.verb == "down") return world_.down(at, machine(word(1)));
    if (command.verb == "refuse") return world_.refuse(at, machine(word(1)));
    if (command.verb == "host") return host(at, command.words.size() > 1 ? word(1) : "");
    throw std::invalid_argument(command.verb);
  }

  void cut(const std::string& left, const std::string& right) {
    for (const char a : left) {
      for (const char b : right) {
        world_.block(a - 'a', b - 'a');
        world_.block(b - 'a', a - 'a');
      }
    }
  }

  void host(int at, const std::string& types) {
    std::vector<HostedType> hosts;
    for (const std::string& part : split(types, ',')) {
      const auto fields = split(part, '/');
      hosts.push_back(HostedType{fields[0], static_cast<std::uint32_t>(std::stoul(fields.at(1)))});
    }
    world_.host(at, hosts);
  }

  std::string lines_;
  sim::World world_;
};

}  // namespace

std::unique_ptr<Player> make_control_player() {
  return std::make_unique<ControlPlayer>();
}

}  // namespace shardbus::golden
