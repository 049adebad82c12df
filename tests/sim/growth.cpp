#include "sim/growth.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "base/hash.hpp"
#include "base/model/table.hpp"
#include "base/overloaded.hpp"
#include "runtime/control/control_plane.hpp"
#include "sim/events.hpp"
#include "wire/codec.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDelay = 500us;
constexpr Duration kPass = 1ms;  // what came meanwhile is decided on together
constexpr Duration kStartEvery = 20ms;
constexpr Duration kSeedEvery = 300ms;
constexpr Duration kIdle = 1s;
// Forming costs the cube of the nodes: each of them brings versions of the set that all tell to
// all. Larger clusters are made at once.
constexpr int kFormMax = 20;
constexpr Duration kPatience = 120s;
constexpr Duration kLook = 1ms;
constexpr const char* kType = "cart";

// Owns what it is told to own, at once.
class StubRegion {
 public:
  StubRegion(NodeKey self, std::uint32_t shards) : self_(self), owned_(shards) {}

  std::optional<ControlMessage> on_command(const ControlMessage& command) {
    return std::visit(
        Overloaded{[&](const ReportRequest& c) { return std::optional(report(c)); },
                   [&](const RehomeShard& c) { return own(c.shard, c.generation); },
                   [&](const PrepareHandoff& c) { return own(c.shard, c.generation); },
                   [&](const BeginHandoff& c) {
                     owned_[c.shard.shard.value] = {};
                     return std::optional<ControlMessage>();
                   },
                   [&](const FreezeShard& c) {
                     const Generation mine = owned_[c.shard.shard.value];
                     const bool owns = mine >= c.generation;
                     return answer(owns ? RegionAnswerKind::owned : RegionAnswerKind::frozen,
                                   c.shard, owns ? mine : c.generation);
                   },
                   [](const auto&) { return std::optional<ControlMessage>(); }},
        command);
  }

 private:
  std::optional<ControlMessage> own(const ShardName& shard, Generation generation) {
    Generation& mine = owned_[shard.shard.value];
    mine = std::max(mine, generation);
    return answer(RegionAnswerKind::owned, shard, mine);
  }
  std::optional<ControlMessage> answer(RegionAnswerKind kind, const ShardName& shard,
                                       Generation generation) const {
    return RegionAnswer{kind, shard, generation, self_};
  }
  [[nodiscard]] ControlMessage report(const ReportRequest& request) const {
    RegionReport report{request.term, request.claimant, self_, {}};
    for (std::uint32_t i = 0; i < owned_.size(); ++i) {
      if (!owned_[i].known()) continue;
      report.shards.push_back({{kType, ShardId{i}},
                               static_cast<std::uint32_t>(owned_.size()),
                               RegionState::owner,
                               owned_[i],
                               kNoNode});
    }
    return report;
  }

  NodeKey self_;
  std::vector<Generation> owned_;
};

struct Peer {
  NodeInfo info;
  std::unique_ptr<control::ControlPlane> plane;  // empty: crashed
  std::unique_ptr<StubRegion> region;
  std::map<NodeKey, bool> connected;
  Time wake_at = kNever;
  bool pass_due = false;
  std::uint64_t published = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

class Growth {
 public:
  Growth(const GrowthOptions& options, const std::function<void(const std::string&)>& told)
      : options_(options), told_(told) {
    result_.nodes = options.nodes;
    result_.shards = options.shards;
  }

  GrowthResult run() {
    tell("forming");
    if (options_.nodes <= kFormMax) {
      for (int i = 0; i < options_.nodes; ++i) {
        events_.after(kStartEvery * i, [this, i] { start(i == 0); });
      }
    } else {
      form_at_once();
    }
    const Duration formed = wait_for([this] { return agreed(options_.nodes) && settled(); });
    if (options_.nodes <= kFormMax) result_.formed = formed;
    tell("idle");
    idle();
    tell("join");
    const std::uint64_t before = peers_[0]->received;
    start(false);
    result_.joined = wait_for([this] { return agreed(options_.nodes + 1); });
    result_.joined_settled = add(result_.joined, wait_for([this] { return settled(); }));
    result_.joined_bytes = static_cast<double>(peers_[0]->received - before);
    tell("crash");
    crash(options_.nodes - 1, true);
    result_.crashed = wait_for([this] { return agreed(options_.nodes); });
    result_.crashed_settled = add(result_.crashed, wait_for([this] { return settled(); }));
    tell("machine gone");
    crash(options_.nodes - 2, false);
    result_.vanished = wait_for([this] { return agreed(options_.nodes - 1); });
    result_.vanished_settled = add(result_.vanished, wait_for([this] { return settled(); }));
    start(false);
    wait_for([this] { return agreed(options_.nodes) && settled(); });
    tell("crash of the decider");
    crash(decider(), true);
    result_.decider_crashed = wait_for([this] { return agreed(options_.nodes - 1); });
    result_.decider_settled = add(result_.decider_crashed, wait_for([this] { return settled(); }));
    result_.events = events_.count();
    return result_;
  }

 private:
  static Duration add(Duration a, Duration b) {
    return a == kForever || b == kForever ? kForever : a + b;
  }

  void tell(const char* what) {
    told_(
        std::string(what) + " (from " +
        std::to_string(
            std::chrono::duration_cast<std::chrono::milliseconds>(events_.now() - Time{}).count()) +
        " ms" + ")");
  }

  template <class F>
  Duration wait_for(F reached) {
    const Time begin = events_.now();
    while (events_.now() < begin + kPatience) {
      run_for(kLook);
      if (reached()) return events_.now() - begin;
    }
    return kForever;
  }

  void run_for(Duration time) {
    const Time until = events_.now() + time;
    while (events_.run_next(until)) {
    }
  }

  void idle() {
    for (auto& peer : peers_) peer->published = peer->sent = peer->received = 0;
    run_for(kIdle);
    const double seconds = std::chrono::duration<double>(kIdle).count();
    const double nodes = static_cast<double>(peers_.size());
    for (const auto& peer : peers_) {
      result_.digests_per_second += static_cast<double>(peer->published) / seconds / nodes;
      result_.sent_per_second += static_cast<double>(peer->sent) / seconds / nodes;
      result_.received_per_second += static_cast<double>(peer->received) / seconds / nodes;
    }
    result_.digest_bytes = last_digest_;
  }

  // Each hears of a set that has all of them, and has heard all, as if they had joined one by one
  // long ago.
  void form_at_once() {
    for (int i = 0; i < options_.nodes; ++i) start(i == 0);
    Digest digest;
    digest.cluster = "growth";
    digest.cluster_id = peers_[0]->plane->cluster_id();
    digest.from = peers_.back()->info;
    digest.number = 1;
    digest.set.counted = true;
    digest.set.stamp = Stamp{Term{9}, digest.from.key, peers_.size()};  // newer than any
    for (const auto& peer : peers_) {
      digest.set.members.push_back(
          Member{peer->info, MemberState::up, digest.set.members.size() + 1});
    }
    const MemberSet all = digest.set;
    for (auto& to : peers_) {
      for (auto& from : peers_) {
        if (to == from) continue;
        digest.from = from->info;
        digest.set = to->plane->members().stamp == all.stamp ? brief_of(all) : all;
        to->plane->on_digest(events_.now(), digest);
      }
      pass_soon(*to);
    }
  }

  // --- nodes ---

  void start(bool bootstrap) {
    const auto number = peers_.size();
    peers_.push_back(std::make_unique<Peer>());
    Peer& peer = *peers_.back();
    const std::string name = "node-" + std::to_string(number);
    const std::string host =
        "10.0." + std::to_string(number / 250) + "." + std::to_string(number % 250 + 1);
    // Microseconds of a clock of today: its length on the wire is what counts.
    const std::uint64_t incarnation = 1'800'000'000'000'000 + number;
    peer.info = NodeInfo{name,
                         incarnation,
                         node_key(name, incarnation),
                         "tcp://" + host + ":7400",
                         "tcp://" + host + ":7401",
                         "tcp://" + host + ":7402"};
    by_key_[peer.info.key] = &peer;
    control::ControlConfig config;
    config.cluster = "growth";
    config.self = peer.info;
    config.bootstrap = bootstrap;
    config.seed = number + 1;
    config.hosts = {HostedType{kType, options_.shards}};
    peer.plane = std::make_unique<control::ControlPlane>(events_.now(), std::move(config));
    peer.region = std::make_unique<StubRegion>(peer.info.key, options_.shards);
    if (!bootstrap) ask_seed(peer);
    pass(peer);
  }

  void ask_seed(Peer& peer) {
    if (peer.plane == nullptr || peer.plane->cluster_id() != 0) return;
    const Peer& seed = *peers_.front();
    if (seed.plane != nullptr && seed.plane->cluster_id() != 0) {
      peer.plane->on_seed(events_.now(), seed.info, "growth", seed.plane->cluster_id());
      pass_soon(peer);
    }
    events_.after(kSeedEvery, [this, &peer] { ask_seed(peer); });
  }

  // `proof`: the kernel of its machine refuses connections at once. Else nothing is heard any more.
  void crash(int number, bool proof) {
    Peer& gone = *peers_[static_cast<std::size_t>(number)];
    gone.plane.reset();
    if (!proof) return;
    for (auto& peer : peers_) {
      if (!peer->connected.contains(gone.info.key)) continue;
      events_.after(kDelay, [this, &peer = *peer, key = gone.info.key] {
        if (peer.plane == nullptr) return;
        peer.plane->on_link_lost(events_.now(), key);
        peer.plane->on_proof_of_death(events_.now(), key);
        pass_soon(peer);
      });
    }
  }

  [[nodiscard]] int decider() const {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const auto& plane = peers_[i]->plane;
      if (plane != nullptr && plane->authority() != Authority::none) return static_cast<int>(i);
    }
    return 0;
  }

  // All that came meanwhile is decided on at once, as in the control loop.
  void pass_soon(Peer& peer) {
    if (std::exchange(peer.pass_due, true)) return;
    events_.after(kPass, [this, &peer] {
      peer.pass_due = false;
      pass(peer);
    });
  }

  void pass(Peer& peer) {
    if (peer.plane == nullptr) return;
    peer.plane->on_tick(events_.now());
    for (bool again = true; again;) {
      again = false;
      for (control::ControlOutput& output : peer.plane->take_outputs()) {
        again = carry_out(peer, output) || again;
      }
    }
    const Time when = peer.plane->next_deadline();
    if (when == kNever || (peer.wake_at <= when && peer.wake_at > events_.now())) return;
    peer.wake_at = when;
    events_.at(when, [this, &peer, when] {
      if (peer.wake_at != when) return;
      peer.wake_at = kNever;
      pass(peer);
    });
  }

  // Whether the plane heard something at once.
  bool carry_out(Peer& peer, control::ControlOutput& output) {
    if (auto* o = std::get_if<control::PublishDigest>(&output)) {
      publish(peer, ControlMessage(std::move(o->digest)));
    } else if (auto* delta = std::get_if<control::PublishDelta>(&output)) {
      publish(peer, ControlMessage(std::move(delta->delta)));
    } else if (auto* send = std::get_if<control::SendControl>(&output)) {
      this->send(peer, send->to, std::move(send->message));
    } else if (auto* connect = std::get_if<control::ConnectNode>(&output)) {
      peer.connected[connect->node.key] = true;
    } else if (auto* disconnect = std::get_if<control::DisconnectNode>(&output)) {
      peer.connected.erase(disconnect->node);
    } else if (auto* command = std::get_if<control::TellRegion>(&output)) {
      const auto answer = peer.region->on_command(command->message);
      if (!answer) return false;
      peer.plane->on_message(events_.now(), peer.info.key, *answer);
      return true;
    }
    return false;
  }

  void publish(Peer& from, ControlMessage message) {
    std::string bytes;
    wire::encode(bytes, message);
    if (std::holds_alternative<Digest>(message)) {
      ++from.published;
      last_digest_ = bytes.size();
    }
    const auto shared = std::make_shared<const ControlMessage>(std::move(message));
    for (auto& to : peers_) {
      if (to->plane == nullptr || !to->connected.contains(from.info.key)) continue;
      from.sent += bytes.size();
      to->received += bytes.size();
      events_.after(kDelay, [this, &to = *to, shared] { hear(to, *shared); });
    }
  }

  void hear(Peer& to, const ControlMessage& message) {
    if (to.plane == nullptr) return;
    if (const auto* digest = std::get_if<Digest>(&message)) {
      to.plane->on_digest(events_.now(), *digest);
    } else if (const auto* delta = std::get_if<TableDelta>(&message)) {
      to.plane->on_delta(events_.now(), delta->to.claimant, *delta);
    }
    pass_soon(to);
  }

  void send(const Peer& from, NodeKey key, ControlMessage message) {
    std::string bytes;
    wire::encode(bytes, message);
    result_.control_bytes += bytes.size();
    events_.after(kDelay, [this, from = from.info.key, key, message = std::move(message)] {
      const auto to = by_key_.find(key);
      if (to == by_key_.end() || to->second->plane == nullptr) return;
      to->second->plane->on_message(events_.now(), from, message);
      pass_soon(*to->second);
    });
  }

  // --- what is waited for ---

  // Every node sees the same counted set of so many members, all of them up.
  [[nodiscard]] bool agreed(int nodes) const {
    const MemberSet* first = nullptr;
    for (const auto& peer : peers_) {
      if (peer->plane == nullptr) continue;
      const MemberSet& set = peer->plane->members();
      if (!set.counted || set.members.size() != static_cast<std::size_t>(nodes)) return false;
      if (first != nullptr && set.stamp != first->stamp) return false;
      first = &set;
    }
    return first != nullptr &&
           std::all_of(first->members.begin(), first->members.end(),
                       [](const Member& member) { return member.state == MemberState::up; });
  }

  // One table everywhere; every shard has a living owner, and no two nodes differ by more than one.
  [[nodiscard]] bool settled() const {
    const AllocationTable* table = nullptr;
    for (const auto& peer : peers_) {
      if (peer->plane == nullptr) continue;
      const AllocationTable& mine = peer->plane->table();
      if (table != nullptr && mine.version != table->version) return false;
      table = &mine;
    }
    const TypeTable* type = table == nullptr ? nullptr : find_type(*table, kType);
    if (type == nullptr) return false;
    std::map<NodeKey, std::size_t> loads;
    for (const auto& peer : peers_) {
      if (peer->plane != nullptr) loads[peer->info.key] = 0;
    }
    for (const TableEntry& entry : type->entries) {
      const auto owner = loads.find(entry.owner);
      if (owner == loads.end()) return false;
      ++owner->second;
    }
    const auto [low, high] = std::minmax_element(
        loads.begin(), loads.end(), [](auto& a, auto& b) { return a.second < b.second; });
    return high->second - low->second <= 1;
  }

  GrowthOptions options_;
  const std::function<void(const std::string&)>& told_;
  Events events_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<NodeKey, Peer*> by_key_;
  std::uint64_t last_digest_ = 0;
  GrowthResult result_;
};

}  // namespace

GrowthResult measure_growth(const GrowthOptions& options,
                            const std::function<void(const std::string& line)>& told) {
  return Growth(options, told).run();
}

}  // namespace shardbus::sim
