// Entities in attached workers: which worker has which shard, and what becomes of its messages.
#include <algorithm>
#include <utility>

#include "runtime/data/front_door.hpp"
#include "runtime/data/hosts.hpp"

namespace shardbus::runtime {
namespace {

constexpr Duration kStopCheck = std::chrono::milliseconds(100);

// Pending asks name the node that has them; a worker's session gets a number no node can have.
NodeKey worker_key(std::uint64_t session) {
  return NodeKey{session | (std::uint64_t{1} << 63)};
}

}  // namespace

// Says which of the types cannot be run here as it is offered; empty: none.
std::string Hosts::mismatch(const std::vector<HostedType>& types) const {
  for (const HostedType& offered : types) {
    if (offered.name.starts_with('$')) return "the type " + offered.name + " is reserved";
    if (offered.placement.strict)
      return "the type " + offered.name + " is strict: a node has to host it";
    const Type* type = context_.dispatch->find_type(offered.name);
    if (type == nullptr && !context_.dispatch->has_room(offered.shard_count)) {
      return "with type " + offered.name + " there would be more than " +
             std::to_string(wire::kTypesMax) + " types or " + std::to_string(wire::kShardsMax) +
             " shards";
    }
    if (type != nullptr && type->index < hostings_.size() && hostings_[type->index].local) {
      return "the node itself hosts the type " + offered.name + ", and would run all its entities";
    }
    std::string text = differs(offered, "the worker offers");
    if (text.empty() && !may_run(offered.placement)) {
      text = "this node runs no entities of type " + offered.name +
             (context_.config.proxy ? ": it is a proxy"
                                    : ": it lacks the role " + offered.placement.role);
    }
    if (text.empty()) continue;
    context_.listener->log(LogLevel::error, "worker.config_mismatch", text);
    return text;
  }
  return {};
}

void Hosts::add_worker(std::uint64_t session, const std::string& label,
                       const std::vector<HostedType>& types) {
  Worker& worker = workers_[session];
  worker.label = label;
  for (const HostedType& offered : types) {
    Type* added = offered.name.starts_with('$')
                      ? nullptr
                      : context_.dispatch->add_type(offered.name, offered.shard_count);
    if (added == nullptr || !differs(offered, "").empty() || !may_run(offered.placement)) {
      std::string envelope;
      wire::encode(envelope, wire::Reject{static_cast<std::uint16_t>(Errc::config_mismatch),
                                          mismatch({offered}), 0});
      context_.front->send_raw(session, envelope);
      continue;
    }
    Type& type = *added;
    Hosting& hosting = hosting_of(type);
    if (std::find(hosting.workers.begin(), hosting.workers.end(), session) !=
        hosting.workers.end()) {
      continue;
    }
    if (!has(type)) hosting.placement = offered.placement;
    worker.types.push_back(type.index);
    hosting.workers.push_back(session);
    settle_orphans(hosting);
  }
  announce();
}

void Hosts::remove_worker(std::uint64_t session) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return;
  Worker worker = std::move(found->second);
  workers_.erase(found);
  context_.dispatch->fail_target(worker_key(session), Errc::unknown_outcome,
                                 "the worker that had the message is gone");
  for (const std::uint32_t index : worker.types) {
    Hosting& hosting = hostings_[index];
    std::erase(hosting.workers, session);
    for (std::uint64_t& assigned : hosting.worker_of) {
      if (assigned == session) assigned = 0;
    }
  }
  announce();
  // What waits for a shard that is being handed on goes with it, not to another worker here.
  std::erase_if(worker.waiting, [&](auto& entry) {
    auto& [type, waiting] = entry;
    const auto part = worker.releasing.find({type, waiting.shard.value});
    if (part == worker.releasing.end()) return false;
    hostings_[type].orphans.push_back(std::move(waiting));
    return true;
  });
  for (const auto& [key, part] : worker.releasing) {
    released(hostings_[key.first], ShardId{key.second}, session, part.dropped, {});
  }
  for (auto& [type, waiting] : worker.waiting) {
    deliver_to_worker(hostings_[type], std::move(waiting));
  }
}

std::uint64_t Hosts::choose_worker(Hosting& hosting, ShardId shard) {
  std::uint64_t& assigned = hosting.worker_of[shard.value];
  if (assigned != 0 || hosting.workers.empty()) return assigned;
  // Until a worker has given it back, another life would meet the older one there.
  const std::pair place{hosting.type->index, shard.value};
  if (std::any_of(workers_.begin(), workers_.end(),
                  [&](const auto& entry) { return entry.second.releasing.contains(place); })) {
    return 0;
  }
  std::size_t least = SIZE_MAX;
  for (const std::uint64_t worker : hosting.workers) {
    const auto load = static_cast<std::size_t>(
        std::count(hosting.worker_of.begin(), hosting.worker_of.end(), worker));
    if (load >= least) continue;
    least = load;
    assigned = worker;
  }
  return assigned;
}

void Hosts::deliver_to_worker(Hosting& hosting, Waiting waiting) {
  const std::uint64_t session = choose_worker(hosting, waiting.shard);
  const core::Parked& parked = waiting.message;
  const auto worker = workers_.find(session);
  std::size_t backlog = hosting.orphans.size();
  if (worker != workers_.end()) backlog = worker->second.waiting.size();
  const std::size_t bytes = parked.envelope.size();
  waiting.lease = {};
  if (backlog >= context_.config.buffered_messages ||
      waiting_bytes_ + bytes > context_.config.buffered_bytes) {
    return context_.dispatch->refuse(parked.asker, parked.slot, Errc::overloaded,
                                     "the worker is behind");
  }
  if (worker == workers_.end()) {
    waiting.lease = ByteLease(waiting_bytes_, bytes);
    hosting.orphans.push_back(std::move(waiting));
    return;
  }
  if (!worker->second.waiting.empty() || !pass_to_worker(session, hosting.type->index, waiting)) {
    waiting.lease = ByteLease(waiting_bytes_, bytes);
    worker->second.waiting.emplace_back(hosting.type->index, std::move(waiting));
  }
}

bool Hosts::pass_to_worker(std::uint64_t session, std::uint32_t type, const Waiting& waiting) {
  const core::Parked& parked = waiting.message;
  wire::Message message = wire::own_envelope(parked.envelope).message;
  if (parked.asker == kNoNode) return context_.front->send_to_worker(session, message);
  // The worker answers to a slot of ours, so that its death can end the ask.
  const Time deadline = parked.deadline == kNever
                            ? context_.now + milliseconds(wire::kTimeLeftMsMax)
                            : parked.deadline;
  AskOrigin origin;
  origin.node = parked.asker;
  origin.slot = parked.slot;
  origin.type = type;
  origin.shard = waiting.shard;
  const std::uint64_t slot =
      context_.dispatch->open_relay(std::move(origin), worker_key(session), deadline);
  if (slot == 0) {
    context_.dispatch->refuse(parked.asker, parked.slot, Errc::overloaded,
                              "pending asks are at their limit");
    return true;
  }
  message.correlation = {{}, context_.self(), slot};
  if (context_.front->send_to_worker(session, message)) return true;
  context_.dispatch->close_relay(slot);
  return false;
}

void Hosts::on_worker_credit(std::uint64_t session) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return;
  auto& waiting = found->second.waiting;
  while (!waiting.empty() &&
         pass_to_worker(session, waiting.front().first, waiting.front().second)) {
    waiting.pop_front();
  }
}

void Hosts::settle_orphans(Hosting& hosting) {
  for (auto& [shard, entity] : std::exchange(hosting.orphan_states, {})) {
    restore(*hosting.type, shard, std::move(entity));
  }
  for (Waiting& orphan : std::exchange(hosting.orphans, {})) {
    if (hosting.local) {
      deliver(*hosting.type, orphan.shard, orphan.message.sender,
              wire::own_envelope(orphan.message.envelope).message, orphan.message.deadline, false);
    } else {
      deliver_to_worker(hosting, std::move(orphan));
    }
  }
}

// --- giving a shard back ---

void Hosts::release_from_worker(Hosting& hosting, ShardId shard, std::uint64_t session) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return released(hosting, shard, session, false, {});
  found->second.releasing[{hosting.type->index, shard.value}] = {context_.now, false, {}};
  std::string envelope;
  wire::encode(envelope, wire::Release{{hosting.type->name, shard}, hosting.type->shard_count});
  context_.front->send_raw(session, envelope);
}

// Asks for it back only so that the worker lets go: what it sends along is of a life that is over.
void Hosts::drop_at_worker(Hosting& hosting, ShardId shard, std::uint64_t session) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return;
  const std::pair place{hosting.type->index, shard.value};
  if (!found->second.releasing.contains(place)) release_from_worker(hosting, shard, session);
  found->second.releasing[place].dropped = true;
  context_.dispatch->fail_relays(worker_key(session), place.first, shard,
                                 "the shard moved on while the worker had the message");
}

void Hosts::on_released(std::uint64_t session, wire::Released message) {
  Type* type = context_.dispatch->find_type(message.shard.type);
  const auto found = workers_.find(session);
  if (type == nullptr || found == workers_.end()) return;
  const auto place = found->second.releasing.find({type->index, message.shard.shard.value});
  if (place == found->second.releasing.end()) return;
  std::vector<core::SavedEntity>& states = place->second.states;
  for (wire::EntityState& entity : message.states) {
    states.push_back({std::move(entity.id), std::move(entity.state)});
  }
  if (message.more) return;
  std::vector<core::SavedEntity> all = std::move(states);
  const bool dropped = place->second.dropped;
  found->second.releasing.erase(place);
  released(hosting_of(*type), message.shard.shard, session, dropped, std::move(all));
}

// Takes out what waits for a worker's credit, oldest first.
void Hosts::take_waiting(const Hosting& hosting, ShardId shard, std::uint64_t session,
                         std::vector<core::Parked>& unstarted) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return;
  std::erase_if(found->second.waiting, [&](auto& entry) {
    if (entry.first != hosting.type->index || entry.second.shard != shard) return false;
    unstarted.push_back(std::move(entry.second.message));
    return true;
  });
}

void Hosts::take_orphans(Hosting& hosting, ShardId shard, std::vector<core::Parked>& unstarted) {
  std::erase_if(hosting.orphans, [&](Waiting& waiting) {
    if (waiting.shard != shard) return false;
    unstarted.push_back(std::move(waiting.message));
    return true;
  });
}

void Hosts::released(Hosting& hosting, ShardId shard, std::uint64_t session, bool dropped,
                     std::vector<core::SavedEntity> states) {
  if (dropped) return settle_orphans(hosting);  // the shard may be here again, and wait for this
  std::vector<core::Parked> unstarted;
  take_waiting(hosting, shard, session, unstarted);
  take_orphans(hosting, shard, unstarted);
  if (hosting.worker_of[shard.value] == session) hosting.worker_of[shard.value] = 0;
  context_.dispatch->on_stopped(*hosting.type, shard, std::move(states), std::move(unstarted));
}

void Hosts::tick() {
  if (!stopping_.empty()) abandon_overdue();
  if (!halted_.empty()) expire_halted();
  for (auto& [session, worker] : workers_) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> overdue;
    for (const auto& [key, part] : worker.releasing) {
      if (context_.now - part.since >= context_.config.handoff_timeout) overdue.push_back(key);
    }
    for (const auto& key : overdue) {
      const bool dropped = worker.releasing.at(key).dropped;
      worker.releasing.erase(key);
      Hosting& hosting = hostings_[key.first];
      context_.count(Count::forced_stops);
      context_.listener->log(LogLevel::warn, "worker.forced_stop",
                             "worker=" + worker.label + " type=" + hosting.type->name +
                                 " shard=" + std::to_string(key.second));
      context_.dispatch->fail_relays(worker_key(session), key.first, ShardId{key.second},
                                     "the shard moved on while the worker had the message");
      released(hosting, ShardId{key.second}, session, dropped, {});
    }
  }
  for (Hosting& hosting : hostings_) {
    while (!hosting.orphans.empty() &&
           context_.now - hosting.orphans.front().since >= context_.config.unknown_type_wait) {
      const core::Parked parked = std::move(hosting.orphans.front().message);
      hosting.orphans.pop_front();
      context_.dispatch->refuse(parked.asker, parked.slot, Errc::no_such_type,
                                "no host of " + hosting.type->name + " is left");
    }
  }
}

Time Hosts::next_deadline() const {
  const bool looks = !stopping_.empty() || !halted_.empty() || !stalled_.empty();
  Time next = looks ? context_.now + kStopCheck : kNever;
  for (const auto& [session, worker] : workers_) {
    for (const auto& [key, part] : worker.releasing) {
      next = std::min(next, part.since + context_.config.handoff_timeout);
    }
  }
  for (const Hosting& hosting : hostings_) {
    if (hosting.orphans.empty()) continue;
    next = std::min(next, hosting.orphans.front().since + context_.config.unknown_type_wait);
  }
  return next;
}

}  // namespace shardbus::runtime
