#include "sim/workload.hpp"

#include <algorithm>
#include <utility>

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds kPatience = 60s;
constexpr milliseconds kLastAskTimeout = 5s;
constexpr Duration kHandlerMax = 6s;
constexpr int kChainMax = 3;
constexpr int kBurstMax = 24;
constexpr const char* kMethod = "add";

std::pair<std::string, std::string> name_of(std::uint32_t entity,
                                            const std::vector<HostedType>& types) {
  return {types[entity % types.size()].name, "e" + std::to_string(entity)};
}

// The right under which a node runs an entity now.
Generation right_of(runtime::DataPlane& data, std::string_view type, std::string_view id) {
  const runtime::Type* known = data.dispatch().find_type(type);
  if (known == nullptr) return {};
  return known->shards[shard_of(id, known->shard_count).value].region.generation();
}

}  // namespace

// Counts what it handled, and takes the count along when it moves.
class Workload::Counter final : public Entity {
 public:
  Counter(Workload& workload, Process& process) : workload_(workload), process_(process) {}

  void handle(Delivery& delivery) override {
    const std::optional<Ticket> ticket = Ticket::parse(delivery.payload);
    if (!ticket) throw std::invalid_argument("not a ticket");
    const Generation right =
        right_of(process_.data, delivery.context->type(), delivery.context->id());
    const HostedType* type = find_hosted(workload_.types_, delivery.context->type());
    const bool strict = type != nullptr && type->placement.strict;
    if (strict && process_.messenger->now() >= process_.right) {
      workload_.ledger_.begun_without_right(process_.key(), *ticket);
    }
    const bool again = workload_.now_and_then(workload_.breaks_.handled_twice);
    for (int times = again ? 2 : 1; times > 0; --times) {
      workload_.ledger_.handled(process_.key(), right, *ticket, ++count_);
    }
    answer(delivery, *ticket);
    // A handler is a caller too: what it sends goes out in the name of its node.
    if (workload_.quiet_ || !process_.messenger->calling || !workload_.random_.chance(0.03)) return;
    const Call call{true, kChainMax, workload_.any_entity(), workload_.timeout(), false};
    workload_.send(process_.messenger, call, workload_.random_.chance(0.5));
  }

  bool save(std::string& state) override {
    if (workload_.now_and_then(workload_.breaks_.state_lost)) return false;
    state = std::to_string(count_);
    return true;
  }
  Status load(std::string_view state) override {
    count_ = std::stoull(std::string(state));
    return {};
  }

 private:
  void answer(Delivery& delivery, Ticket ticket) {
    if (!delivery.port.valid()) return;
    if (workload_.now_and_then(workload_.breaks_.reply_mixed_up)) ++ticket.nonce;
    (void)delivery.port.state()->answer({Errc::ok, {}, ticket.bytes()});
  }

  Workload& workload_;
  Process& process_;
  std::uint64_t count_ = 0;
};

Workload::Workload(const WorkloadConfig& config, std::vector<HostedType> types, std::uint64_t seed,
                   Ledger& ledger, const Breaks& breaks)
    : config_(config), types_(std::move(types)), random_(seed), ledger_(ledger), breaks_(breaks) {
  for (std::uint32_t i = 0; i < config_.entities; ++i) {
    auto [type, id] = name_of(i, types_);
    targets_.push_back({std::move(type), std::move(id)});
  }
}

std::vector<std::string> Workload::names(const WorkloadConfig& config,
                                         const std::vector<HostedType>& types) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < config.entities; ++i) {
    const auto [type, id] = name_of(i, types);
    names.push_back(type + "/" + id + " (" + type + ":" +
                    std::to_string(shard_of(id, types[i % types.size()].shard_count).value) + ")");
  }
  return names;
}

std::vector<EntityType> Workload::types_for(Process& process) {
  std::vector<EntityType> definitions;
  for (const HostedType& type : types_) {
    EntityType& definition = definitions.emplace_back();
    definition.name = type.name;
    definition.options.shard_count = type.shard_count;
    if (type.placement.strict) definition.options.consistency = Consistency::strict;
    definition.create = [this, &process](const Context&) {
      return std::make_unique<Counter>(*this, process);
    };
  }
  return definitions;
}

// --- callers ---

Duration Workload::pause() {
  const auto mean = static_cast<std::uint64_t>(config_.pace.count());
  return Duration(static_cast<std::int64_t>(random_.below(2 * mean + 1)));
}

Duration Workload::handler_length() {
  if (quiet_) return {};
  const auto up_to = [this](std::uint64_t us) {
    return std::chrono::microseconds(random_.below(us));
  };
  // A mailbox that runs over loses tells, so it must not where nothing may be lost.
  if (random_.chance(config_.patient ? 0.97 : 0.8)) return up_to(1000);
  if (config_.patient || random_.chance(0.9)) return up_to(60'000);
  if (random_.chance(0.9)) return up_to(700'000);
  return kHandlerMax;
}

std::uint32_t Workload::any_entity() {
  // A few are called more often than the rest.
  const std::uint64_t bound = random_.chance(0.3) ? 1 + config_.entities / 8 : config_.entities;
  return static_cast<std::uint32_t>(random_.below(bound));
}

milliseconds Workload::timeout() {
  static constexpr milliseconds kTimeouts[] = {20ms, 100ms, 500ms, 2000ms, 5000ms};
  return config_.patient ? kPatience : kTimeouts[random_.below(std::size(kTimeouts))];
}

void Workload::call(Process& process) {
  if (idle() || !process.messenger->calling) return;
  const Line& via = process.messenger;
  const bool burst = random_.chance(0.02);
  const auto count =
      static_cast<int>(burst ? random_.between(4, kBurstMax) : random_.between(1, 3));
  const std::uint32_t favourite = any_entity();
  for (int i = 0; i < count; ++i) {
    const std::uint32_t entity = burst ? favourite : any_entity();
    if (now_and_then(breaks_.order_swapped)) send_swapped(via, entity);
    send(via, {false, 0, entity, timeout(), false}, random_.chance(0.5));
  }
}

// One after the other: all at once would fill the small buffers, which is no fault.
void Workload::ask_all(Process& process) {
  ask_from(process.messenger, 0);
}

void Workload::go_on(Process& process) {
  const auto stopped = stopped_at_.find(process.messenger->caller());
  if (stopped == stopped_at_.end()) return;
  const std::uint32_t entity = stopped->second;
  stopped_at_.erase(stopped);
  ask_from(process.messenger, entity);
}

void Workload::ask_from(const Line& via, std::uint32_t entity) {
  ask(via, {false, kChainMax, entity, kLastAskTimeout, true});
}

Ticket Workload::blank(const Line& via, const Call& call) {
  return {via->caller(), call.inside, call.entity, 0, random_.next()};
}

void Workload::send(const Line& via, const Call& call, bool asks) {
  if (asks) return ask(via, call);
  const Ticket ticket = ledger_.told(blank(via, call));
  if (!now_and_then(breaks_.tell_lost)) transmit(via, ticket);
}

void Workload::send_swapped(const Line& via, std::uint32_t entity) {
  const Call call{false, 0, entity, {}, false};
  const Ticket first = ledger_.told(blank(via, call));
  const Ticket second = ledger_.told(blank(via, call));
  transmit(via, second);
  transmit(via, first);
}

void Workload::transmit(const Line& via, const Ticket& ticket) {
  const Target& target = targets_[ticket.entity];
  const std::string payload = ticket.bytes();
  const Status outcome = via->tell({target.type, target.id, kMethod, payload});
  if (!outcome.ok()) ledger_.refused(ticket, outcome.code());
}

void Workload::ask(const Line& via, const Call& call) {
  const Ticket ticket = ledger_.asked(blank(via, call), via->now() + call.timeout, call.must);
  const Target& target = targets_[call.entity];
  const std::string payload = ticket.bytes();
  via->ask({target.type, target.id, kMethod, payload}, call.timeout,
           [this, via, ticket, call](const ReplyView& reply) {
             ended(via, ticket, reply, call.depth);
             if (!call.must || via->caller() == kNoNode) return;
             const std::uint32_t next = call.entity + 1;
             // A shard that moves, for balance, may take longer than its small buffer lasts.
             if (is_full(reply.error)) {
               stopped_at_[via->caller()] = call.entity;
             } else if (next < config_.entities) {
               ask_from(via, next);
             }
           });
}

void Workload::ended(const Line& via, const Ticket& ticket, ReplyView reply, int depth) {
  if (now_and_then(breaks_.ask_forgotten)) return;
  const bool unknown = reply.error == Errc::timeout || reply.error == Errc::unknown_outcome;
  if (unknown && breaks_.outcome_denied) reply.error = Errc::expired;
  ledger_.ended(via->now(), ticket, reply);
  if (now_and_then(breaks_.reply_repeated)) ledger_.ended(via->now(), ticket, reply);
  if (idle() || !via->calling || via->caller() == kNoNode || depth >= kChainMax ||
      !random_.chance(0.2))
    return;
  const std::uint32_t entity = random_.chance(0.5) ? ticket.entity : any_entity();
  send(via, {true, depth + 1, entity, timeout(), false}, random_.chance(0.7));
}

}  // namespace shardbus::sim
