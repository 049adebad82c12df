// Entities in this process.
#include "runtime/data/hosts.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>
#include <utility>

#include "base/model/text.hpp"
#include "base/model/type_settings.hpp"
#include "runtime/data/front_door.hpp"
#include "runtime/data/links.hpp"
#include "runtime/data/user_code.hpp"

namespace shardbus::runtime {
namespace {

// Ports that a handler unpacks answer as it does; what runs after it does not.
class CurrentMessenger {
 public:
  explicit CurrentMessenger(std::weak_ptr<Messenger> messenger)
      : before_(std::exchange(detail::current_messenger(), std::move(messenger))) {}
  ~CurrentMessenger() { detail::current_messenger() = std::move(before_); }
  CurrentMessenger(const CurrentMessenger&) = delete;
  CurrentMessenger& operator=(const CurrentMessenger&) = delete;

 private:
  std::weak_ptr<Messenger> before_;
};

}  // namespace

Hosts::~Hosts() = default;

Hosts::Hosting& Hosts::hosting_of(Type& type) {
  while (hostings_.size() <= type.index) hostings_.emplace_back();
  Hosting& hosting = hostings_[type.index];
  if (hosting.type == nullptr) {
    hosting.type = &type;
    hosting.cells.resize(type.shard_count);
    hosting.worker_of.resize(type.shard_count, 0);
  }
  return hosting;
}

HostedType hosted_type(const EntityType& definition) {
  static constexpr std::array kStrategies{"least-shards", "rendezvous", "weighted", "ring"};
  const TypeOptions& options = definition.options;
  return {definition.name,
          options.shard_count,
          {kStrategies.at(static_cast<std::size_t>(options.placement)), options.role,
           options.spread_zones, options.consistency == Consistency::strict}};
}

std::string Hosts::differs(const HostedType& asked, const std::string& who) const {
  const Type* type = context_.dispatch->find_type(asked.name);
  if (type != nullptr && type->shard_count != asked.shard_count) {
    return differing_shard_count(who, asked, type->shard_count);
  }
  const bool hosted = type != nullptr && has(*type);
  const HostedType* known = find_hosted(known_types_, asked.name);
  HostedType placed = known == nullptr ? asked : *known;
  if (hosted) placed.placement = hostings_[type->index].placement;
  return differing_type(who, placed, asked);
}

// Workers with other settings came before those of the cluster were known here.
void Hosts::set_known_types(std::vector<HostedType> types) {
  known_types_ = std::move(types);
  for (const HostedType& known : known_types_) {
    const Type* type = context_.dispatch->find_type(known.name);
    if (type == nullptr || !has(*type) || hostings_[type->index].local) continue;
    const HostedType theirs{known.name, type->shard_count, hostings_[type->index].placement};
    const std::string differs = differing_type("the worker", known, theirs);
    if (!differs.empty()) send_away(*type, differs);
  }
}

// What its workers have got is over, as if they had gone; they may greet again and hear why not.
void Hosts::send_away(const Type& type, std::string_view why) {
  if (hostings_.size() <= type.index) return;
  const std::vector<std::uint64_t> workers = hostings_[type.index].workers;
  for (const std::uint64_t session : workers) context_.front->dismiss(session, why);
}

bool Hosts::uses(const Type& type) const {
  if (hostings_.size() <= type.index) return false;
  const Hosting& hosting = hostings_[type.index];
  return has(type) || !hosting.orphans.empty() || !hosting.orphan_states.empty() ||
         std::any_of(hosting.cells.begin(), hosting.cells.end(),
                     [](const Cells& cells) { return !cells.map.empty(); });
}

void Hosts::count_anew(const Type& type) {
  if (hostings_.size() <= type.index) return;
  Hosting& hosting = hostings_[type.index];
  hosting.cells.clear();
  hosting.cells.resize(type.shard_count);
  hosting.worker_of.assign(type.shard_count, 0);
}

Errc Hosts::host(EntityType definition) {
  Type* type = context_.dispatch->add_type(definition.name, definition.options.shard_count);
  if (type == nullptr) return Errc::exhausted;
  const HostedType asked = hosted_type(definition);
  if (!differs(asked, "").empty()) return Errc::config_mismatch;
  if (!may_run(asked.placement)) {
    context_.listener->log(LogLevel::info, "host.only_routes", "type=" + asked.name);
    return Errc::ok;
  }
  Hosting& hosting = hosting_of(*type);
  if (hosting.local) return Errc::invalid_argument;
  hosting.local = true;
  hosting.placement = asked.placement;
  hosting.definition = std::move(definition);
  settle_orphans(hosting);
  announce();
  return Errc::ok;
}

bool Hosts::has(const Type& type) const {
  if (hostings_.size() <= type.index) return false;
  const Hosting& hosting = hostings_[type.index];
  return hosting.local || !hosting.workers.empty();
}

void Hosts::announce() {
  std::vector<HostedType> types;
  for (const Hosting& hosting : hostings_) {
    if (hosting.type == nullptr || !has(*hosting.type)) continue;
    types.push_back(
        {hosting.type->name, hosting.type->shard_count, hosting.placement, !hosting.local});
  }
  std::sort(types.begin(), types.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  context_.listener->on_hosted_types(std::move(types));
}

core::Parked Hosts::park(std::uint64_t sender, const wire::Message& message, Time deadline) {
  core::Parked parked{sender,   message.generation,       {},
                      deadline, message.correlation.node, message.correlation.slot};
  wire::encode(parked.envelope, message);
  return parked;
}

// One sender's messages stay in order. A smart client's go in its node's name, too, until it knows
// the owner: only those of two nodes are never one sender's.
bool Hosts::waits_behind(const Cells& cells, std::uint64_t sender) const {
  const auto is_node = [this](std::uint64_t number) {
    return number == context_.self().value || context_.links->knows(NodeKey{number});
  };
  if (cells.ready == 0) return false;
  const bool other = cells.ready_sender != 0 && cells.ready_sender != sender;
  return !other || !is_node(sender) || !is_node(cells.ready_sender);
}

void Hosts::deliver(Type& type, ShardId shard, std::uint64_t sender, const wire::Message& message,
                    Time deadline, bool fresh) {
  Hosting& hosting = hosting_of(type);
  context_.count(Count::delivered);
  if (!hosting.local) {
    return deliver_to_worker(hosting, {shard, park(sender, message, deadline), context_.now});
  }
  Cells& cells = hosting.cells[shard.value];
  const bool busy = executor_ == nullptr && (in_user_code_ || context_.held);
  if (busy || (fresh && waits_behind(cells, sender)) || !may_start(hosting)) {
    const std::size_t halted = hosting.placement.strict ? halted_.size() : 0;
    if (ready_.size() + halted >= context_.config.buffered_messages) {
      return context_.dispatch->refuse(message.correlation.node, message.correlation.slot,
                                       Errc::overloaded, "too many messages wait on this node");
    }
    ready_.push_back({type.index, shard, KeptMessage(sender, message, deadline)});
    cells.note_ready(sender);
    return;
  }
  Cell& cell = cell_of(hosting, shard, message.id);
  if (executor_ == nullptr) return run(hosting, cell, sender, message);
  if (cell.mailbox.size() >= hosting.definition.options.mailbox_messages) {
    return context_.dispatch->refuse(message.correlation.node, message.correlation.slot,
                                     Errc::mailbox_full, cell.id);
  }
  cell.mailbox.push_back(park(sender, message, deadline));
  if (!cell.busy) post(hosting, shard, cell);
}

Hosts::Cell& Hosts::cell_of(Hosting& hosting, ShardId shard, std::string_view id) {
  auto& map = hosting.cells[shard.value].map;
  const auto found = map.find(id);
  if (found != map.end()) return *found->second;
  auto cell = std::make_unique<Cell>();
  cell->id = id;
  const std::shared_ptr<Messenger> via = messenger_of(hosting, hosting.cells[shard.value]);
  cell->via = via;
  cell->context =
      std::make_unique<Context>(via, hosting.type->name, cell->id, context_.config.self.name);
  Cell& made = *cell;
  map.emplace(std::string_view(made.id), std::move(cell));
  return made;
}

void Hosts::run(Hosting& hosting, Cell& cell, std::uint64_t sender, const wire::Message& message) {
  const UserCode mark(*this);
  if (!handle(hosting, cell, sender, message)) context_.count(Count::handler_failures);
}

Entity& Hosts::entity_of(Hosting& hosting, Cell& cell) {
  if (cell.entity == nullptr) cell.entity = hosting.definition.create(*cell.context);
  if (cell.entity == nullptr) throw std::runtime_error("the type's factory made no entity");
  return *cell.entity;
}

// False: it failed. Touches nothing but the cell: it may run on a thread of the executor.
bool Hosts::handle(Hosting& hosting, Cell& cell, std::uint64_t sender,
                   const wire::Message& message) {
  const std::weak_ptr<Messenger>& via = cell.via;
  const CurrentMessenger current(via);
  Delivery delivery{
      message.method, message.payload,
      AnyReplyPort(via, ReplyAddress{message.correlation.node.value, message.correlation.slot}),
      cell.context.get()};
  const AnyReplyPort port = delivery.port;
  cell.context->set_sender(sender);
  const std::string failure = failure_of([&] { entity_of(hosting, cell).handle(delivery); });
  if (failure.empty()) return true;
  context_.listener->log(LogLevel::warn, "entity.handler_failed",
                         "type=" + hosting.type->name + " id=" + cell.id +
                             " method=" + std::string(message.method) + " error=" + failure);
  (void)port.fail(Errc::handler_failed, failure);
  return false;
}

// Takes back what the pool has of an entity, if its handler has not begun; now it never will.
bool Hosts::take_back(Cell& cell) {
  if (!cell.busy) return false;
  JobState queued = JobState::queued;
  if (!cell.job->state.compare_exchange_strong(queued, JobState::cancelled)) return false;
  cell.mailbox.push_front(std::move(cell.job->message));
  cell.busy = false;
  cell.asker = kNoNode;
  return true;
}

// Hands the mailbox's head to the pool. The cell stays where it is until `done` has run.
void Hosts::post(Hosting& hosting, ShardId shard, Cell& cell) {
  if (!may_start(hosting)) return halt(hosting, shard, cell);
  cell.busy = true;
  ++hosting.cells[shard.value].busy;
  const auto job = std::make_shared<Job>();
  job->message = std::move(cell.mailbox.front());
  cell.mailbox.pop_front();
  cell.job = job;
  cell.asker = job->message.asker;
  cell.slot = job->message.slot;
  Hosting* const at = &hosting;
  Cell* const target = &cell;
  executor_->post(
      shard.value,
      [this, at, target, job] {
        JobState queued = JobState::queued;
        if (retired_ || !job->state.compare_exchange_strong(queued, JobState::begun)) return;
        job->too_late = !may_start(*at);
        if (job->too_late) return;
        const wire::Message message = wire::own_envelope(job->message.envelope).message;
        job->failed = !handle(*at, *target, job->message.sender, message);
      },
      [this, at, target, shard, job] { job_done(*at, shard, *target, *job); });
}

void Hosts::job_done(Hosting& hosting, ShardId shard, Cell& cell, Job& job) {
  if (job.failed) context_.count(Count::handler_failures);
  if (job.state == JobState::cancelled) return;  // the cell may be gone
  if (job.abandoned) {                           // the shard went away under the handler
    std::erase_if(abandoned_, [&cell](const auto& kept) { return kept.get() == &cell; });
    if (!job.too_late) return;
    return context_.dispatch->refuse(job.message.asker, job.message.slot, Errc::stale_owner,
                                     "the shard moved on");
  }
  Cells& cells = hosting.cells[shard.value];
  cell.busy = false;
  --cells.busy;
  if (job.too_late) cell.mailbox.push_front(std::move(job.message));
  if (cells.stopping) {
    if (cells.busy == 0) finish_stop(hosting, shard);
  } else if (!cell.mailbox.empty()) {
    post(hosting, shard, cell);
  }
}

bool Hosts::run_ready(std::size_t& budget) {
  if (in_user_code_ || budget == 0) return false;
  resume();
  if (ready_.empty()) return false;
  while (!ready_.empty() && budget > 0) {
    --budget;
    Ready next = std::move(ready_.front());
    ready_.pop_front();
    Hosting& hosting = hostings_[next.type];
    if (!may_start(hosting)) {
      limit_wait(halted_.emplace_back(std::move(next)));
      continue;
    }
    begin(hosting, next);
  }
  return true;
}

void Hosts::begin(Hosting& hosting, const Ready& next) {
  Cells& cells = hosting.cells[next.shard.value];
  --cells.ready;
  const wire::Message message = next.message.view(hosting.type->name);
  Cell& cell = cell_of(hosting, next.shard, message.id);
  if (executor_ == nullptr) return run(hosting, cell, next.message.sender(), message);
  // Taken already, so whatever its limit.
  cell.mailbox.push_back(next.message.parked(hosting.type->name));
  if (!cell.busy && !cells.stopping) post(hosting, next.shard, cell);
}

// --- stop, drop, restore ---

void Hosts::stop(Type& type, ShardId shard) {
  Hosting& hosting = hosting_of(type);
  if (!hosting.local) return stop_at_worker(hosting, shard);
  Cells& cells = hosting.cells[shard.value];
  cells.stopping = true;
  cells.stopping_since = context_.now;
  for (auto it = cells.map.begin(); it != cells.map.end(); ++it) {
    if (take_back(*it->second)) --cells.busy;
  }
  if (cells.busy == 0) return finish_stop(hosting, shard);
  stopping_.emplace(type.index, shard.value);
}

// Handlers still run in them: whatever these answer does not count any more. Callbacks of those who
// asked may come back here.
void Hosts::leave_behind(std::vector<std::unique_ptr<Cell>> cells) {
  for (std::unique_ptr<Cell>& cell : cells) {
    const NodeKey asker = cell->asker;
    const std::uint64_t slot = cell->slot;
    const std::list<core::Parked> mailbox = std::exchange(cell->mailbox, {});
    cell->job->abandoned = true;
    abandoned_.push_back(std::move(cell));
    if (asker != kNoNode) {
      context_.dispatch->refuse(asker, slot, Errc::unknown_outcome,
                                "the shard moved on while the message was handled");
    }
    for (const core::Parked& parked : mailbox) {
      context_.dispatch->refuse(parked.asker, parked.slot, Errc::stale_owner,
                                "the entity was left behind in a move");
    }
  }
}

// A handler that does not end must not hold up the move: its entity stays behind, without its
// state.
void Hosts::abandon_overdue() {
  for (const auto& [index, number] : std::exchange(stopping_, {})) {
    Hosting& hosting = hostings_[index];
    Cells& cells = hosting.cells[number];
    if (!cells.stopping) continue;
    if (context_.now - cells.stopping_since < context_.config.handoff_timeout) {
      stopping_.emplace(index, number);
      continue;
    }
    std::vector<std::unique_ptr<Cell>> left;
    for (auto it = cells.map.begin(); it != cells.map.end(); ++it) {
      if (take_back(*it->second) || !it->second->busy) continue;
      context_.count(Count::forced_stops);
      context_.listener->log(LogLevel::warn, "entity.forced_stop",
                             "type=" + hosting.type->name + " id=" + it->second->id +
                                 " shard=" + std::to_string(number) +
                                 " reason=its handler did not end in time");
      left.push_back(std::move(it.value()));
    }
    for (auto it = cells.map.begin(); it != cells.map.end();) {
      it = it->second == nullptr ? cells.map.erase(it) : std::next(it);
    }
    cells.busy = 0;
    end_guard(cells);
    leave_behind(std::move(left));
    finish_stop(hosting, ShardId{number});
  }
}

void Hosts::finish_stop(Hosting& hosting, ShardId shard) {
  Cells& cells = hosting.cells[shard.value];
  std::vector<core::SavedEntity> states;
  states.reserve(cells.map.size());
  std::vector<core::Parked> unstarted;
  for (auto& entry : cells.map) {
    Cell& cell = *entry.second;
    if (std::string state; save(hosting, cell, state)) {
      states.push_back({cell.id, std::move(state)});
    }
    for (core::Parked& parked : cell.mailbox) unstarted.push_back(std::move(parked));
  }
  take_ready(hosting, shard, unstarted);
  take_orphans(hosting, shard, unstarted);
  std::erase_if(hosting.orphan_states, [&](auto& orphan) {
    if (orphan.first != shard) return false;
    states.push_back(std::move(orphan.second));
    return true;
  });
  old_lives_.push_back(std::exchange(cells.map, {}));
  cells.stopping = false;
  if (hosting.placement.strict) end_guard(cells);
  context_.dispatch->on_stopped(*hosting.type, shard, std::move(states), std::move(unstarted));
}

bool Hosts::end_old_lives() {
  return !std::exchange(old_lives_, {}).empty();
}

// False: there is no state to take along.
bool Hosts::save(const Hosting& hosting, Cell& cell, std::string& state) {
  if (cell.entity == nullptr) return false;
  const UserCode mark(*this);
  bool saved = false;
  std::string failure = failure_of([&] { saved = cell.entity->save(state); });
  if (saved && state.size() > wire::kPayloadBytesMax) {
    failure = "its state has " + std::to_string(state.size()) + " bytes, more than " +
              std::to_string(wire::kPayloadBytesMax);
  }
  if (failure.empty()) return saved;
  context_.count(Count::states_lost);
  context_.listener->log(LogLevel::error, "entity.save_failed",
                         "type=" + hosting.type->name + " id=" + cell.id + " error=" + failure);
  return false;
}

void Hosts::drop(Type& type, ShardId shard, bool fenced) {
  Hosting& hosting = hosting_of(type);
  Cells& cells = hosting.cells[shard.value];
  std::vector<core::Parked> unstarted;
  std::vector<std::unique_ptr<Cell>> left;
  std::size_t lost = 0;
  for (auto it = cells.map.begin(); it != cells.map.end(); ++it) {
    Cell& cell = *it->second;
    take_back(cell);
    for (core::Parked& parked : cell.mailbox) unstarted.push_back(std::move(parked));
    cell.mailbox.clear();
    std::string state;
    lost += !fenced && !cell.busy && save(hosting, cell, state) ? 1 : 0;
    if (cell.busy) left.push_back(std::move(it.value()));
  }
  note_lost(hosting, shard, lost);
  cells.map.clear();
  cells.busy = 0;
  cells.stopping = false;
  end_guard(cells);
  take_ready(hosting, shard, unstarted);
  drop_at_worker(hosting, shard, fenced, unstarted);
  lose_orphan_states(hosting, shard);
  leave_behind(std::move(left));
  const Errc code = has(type) ? Errc::stale_owner : Errc::no_such_type;
  for (const core::Parked& parked : unstarted) {
    context_.dispatch->refuse(parked.asker, parked.slot, code,
                              has(type) ? "the shard moved on" : "nobody here hosts it any more");
  }
}

void Hosts::retire() {
  retired_ = true;
  std::vector<core::Parked> unstarted;
  for (std::deque<Ready>* queue : {&halted_, &ready_}) {
    for (const Ready& ready : std::exchange(*queue, {})) {
      unstarted.push_back(ready.message.parked(hostings_[ready.type].type->name));
    }
  }
  for (Hosting& hosting : hostings_) {
    for (Cells& cells : hosting.cells) {
      for (auto it = cells.map.begin(); it != cells.map.end(); ++it) {
        Cell& cell = *it->second;
        take_back(cell);
        for (core::Parked& parked : cell.mailbox) unstarted.push_back(std::move(parked));
        cell.mailbox.clear();
        if (!cell.busy) continue;
        cell.job->abandoned = true;
        abandoned_.push_back(std::move(it.value()));
      }
      end_guard(cells);
      cells.map.clear();
      cells.busy = 0;
      cells.ready = 0;
    }
  }
  for (const core::Parked& parked : unstarted) {
    context_.dispatch->refuse(parked.asker, parked.slot, Errc::stale_owner,
                              "the node lost its place in the cluster");
  }
}

void Hosts::end_entities() {
  ready_.clear();
  abandoned_.clear();
  old_lives_.clear();
  for (Hosting& hosting : hostings_) {
    for (Cells& cells : hosting.cells) cells.map.clear();
  }
}

void Hosts::restore(Type& type, ShardId shard, core::SavedEntity entity) {
  Hosting& hosting = hosting_of(type);
  if (!hosting.local) {
    const std::uint64_t worker = choose_worker(hosting, shard);
    if (worker == 0) {
      hosting.orphan_states.emplace_back(shard, std::move(entity));
      return;
    }
    std::string envelope;
    wire::encode(envelope, wire::Restore{type.name, {entity.id, entity.state}});
    return context_.front->send_state(worker, envelope);
  }
  Cell& cell = cell_of(hosting, shard, entity.id);
  const UserCode mark(*this);
  Status loaded;
  std::string failure = failure_of([&] { loaded = entity_of(hosting, cell).load(entity.state); });
  if (failure.empty() && !loaded.ok()) failure = loaded.message();
  if (failure.empty()) return;
  context_.count(Count::states_lost);
  context_.listener->log(LogLevel::error, "entity.load_failed",
                         "type=" + type.name + " id=" + cell.id + " error=" + failure);
  cell.entity.reset();
}

std::vector<ShardLoad> Hosts::loads(const std::string& only) {
  std::vector<ShardLoad> result;
  for (Hosting& hosting : hostings_) {
    if (!hosting.local || (!only.empty() && hosting.type->name != only)) continue;
    for (std::uint32_t i = 0; i < hosting.cells.size(); ++i) {
      const Cells& cells = hosting.cells[i];
      if (cells.map.empty()) continue;
      result.push_back({{hosting.type->name, ShardId{i}}, cells.map.size(), state_bytes(cells)});
    }
  }
  return result;
}

std::uint64_t Hosts::state_bytes(const Cells& cells) {
  constexpr std::uint64_t kSample = 4;
  std::uint64_t asked = 0;
  std::uint64_t bytes = 0;
  for (const auto& entry : cells.map) {
    Cell& cell = *entry.second;
    if (cell.busy || cell.entity == nullptr) continue;
    const UserCode mark(*this);
    std::string state;
    if (failure_of([&] { (void)cell.entity->save(state); }).empty()) bytes += state.size();
    if (++asked == kSample) break;
  }
  return asked == 0 ? 0 : bytes * cells.map.size() / asked;
}

std::size_t Hosts::entities() const {
  std::size_t total = 0;
  for (const Hosting& hosting : hostings_) {
    for (const Cells& cells : hosting.cells) total += cells.map.size();
  }
  return total;
}

}  // namespace shardbus::runtime
