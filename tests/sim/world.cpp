#include "sim/world.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "base/model/table.hpp"
#include "base/model/text.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWorkEnds = 10ms;
constexpr Duration kGossipArrives = 5s;

std::set<std::string> strict_names(const std::vector<HostedType>& types) {
  std::set<std::string> names;
  for (const HostedType& type : types) {
    if (type.placement.strict) names.insert(type.name);
  }
  return names;
}

}  // namespace

World::World(WorldConfig config)
    : config_(std::move(config)),
      random_(config_.seed),
      network_(
          events_, random_,
          [this](int from, int to, const std::string& bytes) { deliver_gossip(from, to, bytes); }),
      wires_(events_, random_, network_, *this),
      checker_(config_.overlap_allowed, strict_names(config_.types)),
      ledger_(ledger_config()),
      workload_(config_.workload, config_.types, config_.seed + 1, ledger_, config_.breaks),
      nodes_(static_cast<std::size_t>(config_.machines)),
      trace_hash_(fnv1a64("")) {
  for (int i = 0; i < config_.machines; ++i) {
    node(i).machine = i;
    node(i).name = std::string(1, static_cast<char>('a' + i));
    node(i).hosts = config_.types;
    node(i).wire =
        std::make_unique<SimWire>(i, wires_, [this](NodeKey key) { return machine_of(key); });
    if (!workload_.idle()) call_later(i);
  }
}

LedgerConfig World::ledger_config() {
  LedgerConfig ledger;
  ledger.entities = Workload::names(config_.workload, config_.types);
  ledger.overlap_allowed = config_.overlap_allowed;
  ledger.lossless = config_.lossless;
  if (config_.trace) {
    ledger.trace = [this](NodeKey at, const std::string& line) {
      trace(node(machine_of(at)), line);
    };
  }
  return ledger;
}

// --- callers ---

void World::call_later(int machine) {
  events_.after(workload_.pause(), [this, machine] {
    if (workload_.idle()) return;
    Node& node = this->node(machine);
    // A process that stands still calls nobody.
    if (node.awake()) act(node, Side::data, [&] { workload_.call(*node.process); });
    call_later(machine);
  });
}

void World::ask_everything() {
  for (Node& node : nodes_) {
    act(node, Side::data, [&] { workload_.ask_all(*node.process); });
  }
}

void World::go_on_asking() {
  for (Node& node : nodes_) {
    act(node, Side::data, [&] { workload_.go_on(*node.process); });
  }
}

// --- faults and commands ---

void World::start(int machine, bool bootstrap) {
  Node& node = this->node(machine);
  if (node.running()) return;
  ++node.starts;
  node.paused = false;
  node.wake_at = kNever;
  if (bootstrap) ledger_.forget_rights();
  std::uint64_t incarnation = node.clock.wall_us(now());
  while (lives_.contains(node_key(node.name, incarnation))) ++incarnation;  // as good as never
  // It will be refused until its number is the highest, and ends what it has accepted meanwhile.
  if (incarnation < node.info.incarnation) ledger_.clock_went_back();
  node.incarnations = {};
  begin_life(node, incarnation, bootstrap);
  trace(node, bootstrap ? "start bootstrap" : "start");
  run(node, Side::data, [&] {
    for (EntityType& type : workload_.types_for(*node.process)) (void)node.data().host(type);
  });
  look_for_seeds(machine, node.starts);
}

void World::crash(int machine) {
  if (node(machine).running()) stop(node(machine), "crash");
}

void World::pause(int machine) {
  Node& node = this->node(machine);
  if (!node.running() || node.paused) return;
  trace(node, "pause");
  node.paused = true;
  checker_.gone(now(), node);
}

void World::resume(int machine) {
  Node& node = this->node(machine);
  if (!node.running() || !node.paused) return;
  trace(node, "resume");
  node.paused = false;
  if (!node.busy) wake_up(node);
}

void World::slow(int machine, Duration lag) {
  Node& node = this->node(machine);
  if (node.lag == lag) return;
  trace(node, "slow by " + to_text(lag));
  node.lag = lag;
}

void World::slow_control(int machine, Duration lag) {
  Node& node = this->node(machine);
  if (node.control_lag == lag) return;
  trace(node, "control loop late by " + to_text(lag));
  const bool was_held = held(node);
  if (node.control_lag == Duration{}) node.judged = here(node);
  node.control_lag = lag;
  if (lag > Duration{} || !node.awake()) return;
  if (was_held) ledger_.awake(here(node), node.info.key);
  look(node);
}

void World::drift(int machine, std::int64_t ppm) {
  Node& node = this->node(machine);
  trace(node, "clock gains " + std::to_string(ppm) + " ppm");
  node.clock.drift(now(), ppm);
  node.wake_at = kNever;
  act(node, Side::data, [] {});
}

void World::jump_clock(int machine, Duration by) {
  Node& node = this->node(machine);
  trace(node, "wall clock jumps by " + to_text(by));
  node.clock.jump(by);
}

void World::leave(int machine) {
  Node& node = this->node(machine);
  if (!node.awake() || node.exit != Exit::none) return;
  if (config_.lossless) {
    // Whoever leaves in good order has ended its own work first.
    node.process->messenger->calling = !can_spare(machine);
    if (node.process->messenger->calling) return;
    if (ledger_.busy(node.info.key)) {
      return after(kWorkEnds, [this, machine, starts = node.starts] {
        if (this->node(machine).starts == starts) leave(machine);
      });
    }
  }
  trace(node, "leave");
  node.exit = Exit::leaving;
  act(node, Side::control, [&node, this] { node.control().leave(here(node)); });
}

void World::down(int at, int machine) {
  Node& node = this->node(at);
  if (!node.awake()) return;
  trace(node, "down " + this->node(machine).name);
  act(node, Side::control,
      [&node, machine, this] { node.control().down(here(node), this->node(machine).name); });
}

void World::confirm() {
  if (strict_names(config_.types).empty()) return;
  coordinator::Order order;
  order.kind = coordinator::OrderKind::confirm;
  checker_.confirmed();
  this->order(order);
}

// Given to all: whoever decides takes it, the others say that they do not.
void World::order(const coordinator::Order& order) {
  for (Node& node : nodes_) {
    if (!node.awake()) continue;
    act(node, Side::control, [&node, this, order] {
      const coordinator::Ordered answer = node.control().order(here(node), order);
      if (answer.code == Errc::ok) trace(node, "is told to " + to_text(order));
    });
  }
}

void World::refuse(int at, int machine) {
  Node& node = this->node(at);
  const NodeKey key = this->node(machine).info.key;
  trace(node, "refused by " + to_text(key));
  act(node, Side::control,
      [&node, key, this] { node.control().on_proof_of_death(here(node), key); });
}

void World::host(int machine, std::vector<HostedType> types) {
  Node& node = this->node(machine);
  node.hosts = std::move(types);
  node.hosts_since = now();
  if (!node.running()) return;
  trace(node, "hosts " + std::to_string(node.hosts.size()));
  act(node, Side::control,
      [&node, this] { node.control().on_hosted_types(here(node), node.hosts); });
}

void World::block(int from, int to) {
  trace(node(from), "blocked to " + node(to).name);
  network_.block(from, to);
}

void World::unblock(int from, int to) {
  if (!network_.unblock(from, to)) return;
  trace(node(from), "unblocked to " + node(to).name);
  wires_.on_unblocked(from, to);
}

void World::clog(int from, int to) {
  trace(node(from), "clogged to " + node(to).name);
  network_.clog(from, to);
}

void World::release(int from, int to) {
  if (!network_.release(from, to)) return;
  trace(node(from), "released to " + node(to).name);
  wires_.on_released(from, to);
}

void World::set_weather(int from, int to, const LinkWeather& weather) {
  trace(node(from), "weather to " + node(to).name + " changes");
  network_.set_weather(from, to, weather);
}

void World::heal() {
  wires_.ungarble();
  network_.clear_weather();
  for (Node& node : nodes_) {
    slow(node.machine, {});
    slow_control(node.machine, {});
  }
  const auto blocks = network_.blocks();
  for (const auto& [from, to] : blocks) unblock(from, to);
  for (int from = 0; from < machines(); ++from) {
    for (int to = 0; to < machines(); ++to) release(from, to);
  }
}

bool World::run_until(Time when) {
  while (!broken_ && events_.run_next(when)) {
  }
  return !broken_;
}

bool World::anybody_in_cluster() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.running() && node.control().status().in_cluster;
  });
}

// Members of the largest set, of equals the newest, that running nodes have.
std::vector<int> World::beside_the_largest() const {
  const MemberSet* largest = nullptr;
  for (const Node& node : nodes_) {
    if (!node.running() || !node.control().status().in_cluster) continue;
    const MemberSet& mine = node.control().members();
    const auto rank = [](const MemberSet& set) { return std::pair(set.members.size(), set.stamp); };
    if (largest == nullptr || rank(*largest) < rank(mine)) largest = &mine;
  }
  std::vector<int> beside;
  for (const Node& node : nodes_) {
    if (largest == nullptr || !node.running() || !node.control().status().in_cluster) continue;
    if (find_member(*largest, node.info.key) == nullptr) beside.push_back(node.machine);
  }
  return beside;
}

int World::decider() const {
  for (const Node& node : nodes_) {
    if (node.running() && node.control().authority() != Authority::none) return node.machine;
  }
  return -1;
}

bool World::can_spare(int machine) const {
  if (!config_.lossless) return true;
  if (!is_up(node(machine))) return false;
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    if (node.machine == machine || !node.running() || node.exit != Exit::none) return false;
    // Gossip may be held up, and a type whose hosts nobody has heard of is given up.
    const bool heard_of = now() - node.hosts_since >= kGossipArrives;
    return node.hosts.size() == config_.types.size() && heard_of && is_up(node);
  });
}

bool World::is_up(const Node& node) const {
  if (!node.running()) return false;
  const Member* member = find_member(node.control().members(), node.info.key);
  return member != nullptr && member->state == MemberState::up;
}

std::string World::unsettled() const {
  const MemberSet* set = nullptr;
  const AllocationTable* table = nullptr;
  for (const Node& node : nodes_) {
    if (!node.awake()) return node.name + " is not running";
    if (node.exit != Exit::none) return node.name + " is leaving";
    const MemberSet& mine = node.control().members();
    if (mine.members.size() != nodes_.size()) return node.name + " sees " + to_text(mine);
    if (!mine.counted) return node.name + " has an uncounted set " + to_text(mine);
    for (const Member& member : mine.members) {
      if (member.state != MemberState::up) return node.name + " sees " + to_text(mine);
    }
    if (set != nullptr && mine.stamp != set->stamp) return node.name + " has another set";
    const AllocationTable& entries = node.control().table();
    if (table != nullptr && !(entries == *table)) return node.name + " has another table";
    set = &mine;
    table = &entries;
  }
  for (const Node& node : nodes_) {
    const bool waits = node.control().members().evidence && !strict_names(config_.types).empty();
    if (waits) return node.name + " waits for an operator's word";
  }
  if (auto why = unsettled_owners(*table); !why.empty()) return why;
  for (const Node& node : nodes_) {
    if (auto why = node.data().dispatch().unsettled(true); !why.empty())
      return node.name + ": " + why;
  }
  return {};
}

std::string World::unsettled_owners(const AllocationTable& table) const {
  std::map<ShardName, std::string> owners;
  for (const Node& node : nodes_) {
    for (const OwnedShard& owned : owned_shards(node.data())) {
      const TableEntry* entry = find_entry(table, owned.shard);
      if (entry == nullptr || node.info.key != entry->owner ||
          owned.generation != entry->generation) {
        return to_text(owned.shard) + " is run by " + node.name + ", but the table says " +
               (entry == nullptr ? "nothing" : to_text(*entry));
      }
      owners[owned.shard] = node.name;
    }
  }
  for (const HostedType& type : config_.types) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      const ShardName name{type.name, ShardId{i}};
      const TableEntry* entry = find_entry(table, name);
      if (entry == nullptr || entry->owner == kNoNode) return to_text(name) + " has no owner";
      if (!owners.contains(name)) return to_text(name) + " is run by nobody";
    }
  }
  return {};
}

std::string World::state_text() const {
  std::string out;
  for (const Node& node : nodes_) {
    out += node.running() ? node.process->state_text() : node.name + " has no process\n";
  }
  return readable(out);
}

// Keys are hashes; "b2" for the second life of node b can be read.
std::string World::readable(const std::string& text) const {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const bool key = text[i] == 'n' && end - i > 9;
    const auto life =
        key ? lives_.find(NodeKey{std::stoull(text.substr(i + 1, end - i - 1))}) : lives_.end();
    if (life == lives_.end()) {
      out += text[i++];
    } else {
      out += life->second.label;
      i = end;
    }
  }
  return out;
}

Marks World::marks() const {
  Marks all = marks_;
  for (const Node& node : nodes_) {
    if (node.running()) all.add(node.process->marks());
  }
  return all;
}

void World::hash(std::string_view bytes) {
  if (config_.hash_trace) trace_hash_ = fnv1a64(bytes, trace_hash_);
}

void World::fail(const std::string& what) {
  if (!broken_) broken_ = readable(what);
}

void World::trace(const Node& node, const std::string& line) {
  if (!config_.trace) return;
  config_.trace("[" + to_text(events_.now().time_since_epoch() - Duration(1s)) + "] " + node.name +
                " " + readable(line));
}

}  // namespace shardbus::sim
