// Entities in attached workers: which worker has which shard, and what becomes of its messages.
#include <algorithm>
#include <utility>

#include "runtime/data/front_door.hpp"
#include "runtime/data/hosts.hpp"
#include "runtime/data/unsent_states.hpp"

namespace shardbus::runtime {
namespace {

constexpr Duration kStopCheck = std::chrono::milliseconds(100);
constexpr std::string_view kNoHost = "no host of the type took them in time";
constexpr std::string_view kMovedOn = "the shard moved on while the worker had the message";

// Pending asks name the node that has them; a worker's session gets a number no node can have.
NodeKey worker_key(std::uint64_t session) {
  return NodeKey{session | (std::uint64_t{1} << 63)};
}

// For the log: ids are any bytes, which it writes as it sees fit; a few tell enough.
std::string listed(const std::set<std::string>& ids) {
  constexpr std::size_t kMost = 8;
  std::string text;
  std::size_t named = 0;
  for (const std::string& id : ids) {
    if (named++ == kMost) return text + ",...";
    text += (text.empty() ? "" : ",") + id;
  }
  return ids.empty() ? "unknown" : text;
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
    std::string text = differs(offered, "the worker");
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
    worker.parting = false;
    if (!has(type)) hosting.placement = offered.placement;
    worker.types.push_back(type.index);
    hosting.workers.push_back(session);
    settle_orphans(hosting);
  }
  announce();
}

// States that went into no socket are not lost with the worker: they go along with a shard that it
// was to give back, or to the next host of one that it has.
void Hosts::keep_unsent_states(std::uint64_t session, Worker& worker, Frames& unsent) {
  for (std::string& frame : unsent) {
    for (wire::Restore& restore : take_unsent(frame, [](const auto&) { return true; })) {
      Type* const type = context_.dispatch->find_type(restore.type);
      if (type == nullptr) continue;
      Hosting& hosting = hosting_of(*type);
      const ShardId shard = shard_of(restore.entity.id, type->shard_count);
      core::SavedEntity state{std::move(restore.entity.id), std::move(restore.entity.state)};
      const auto part = worker.releasing.find({type->index, shard.value});
      if (part != worker.releasing.end()) {
        if (!part->second.over()) part->second.states.push_back(std::move(state));  // else outdated
      } else if (hosting.worker_of[shard.value] == session) {
        hosting.orphan_states.emplace_back(shard, std::move(state));
      } else {
        note_lost(hosting, shard, 1);
      }
    }
  }
}

void Hosts::remove_worker(std::uint64_t session, std::vector<std::string> unsent) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return;
  Worker worker = std::move(found->second);
  workers_.erase(found);
  context_.dispatch->fail_target(worker_key(session), Errc::unknown_outcome,
                                 "the worker that had the message is gone");
  keep_unsent_states(session, worker, unsent);
  for (const std::uint32_t index : worker.types) {
    Hosting& hosting = hostings_[index];
    std::erase(hosting.workers, session);
    for (std::uint64_t& assigned : hosting.worker_of) {
      if (assigned == session) assigned = 0;
    }
  }
  announce();
  for (const std::uint32_t index : worker.types) settle_orphans(hostings_[index]);
  for (auto& [key, part] : worker.releasing) {
    released(hostings_[key.first], ShardId{key.second}, session, std::move(part));
  }
  for (auto& [type, waiting] : worker.waiting) {
    deliver_to_worker(hostings_[type], std::move(waiting));
  }
}

Hosts::Releasing* Hosts::releasing_of(const Hosting& hosting, ShardId shard) {
  for (auto& [session, worker] : workers_) {
    const auto part = worker.releasing.find({hosting.type->index, shard.value});
    if (part != worker.releasing.end()) return &part->second;
  }
  return nullptr;
}

std::uint64_t Hosts::choose_worker(Hosting& hosting, ShardId shard) {
  std::uint64_t& assigned = hosting.worker_of[shard.value];
  if (assigned != 0 || hosting.workers.empty()) return assigned;
  // Until a worker has given it back, another life would meet the older one there.
  if (releasing_of(hosting, shard) != nullptr) return 0;
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
  Releasing* const part = worker == workers_.end() ? releasing_of(hosting, waiting.shard) : nullptr;
  std::size_t backlog = part != nullptr ? part->waiting.size() : hosting.orphans.size();
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
    waiting.since = context_.now;
    (part != nullptr ? part->waiting : hosting.orphans).push_back(std::move(waiting));
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
  origin.opaque = message.id;
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
  for (Waiting& orphan : std::exchange(hosting.orphans, {})) settle(hosting, std::move(orphan));
}

void Hosts::settle(Hosting& hosting, Waiting waiting) {
  if (!hosting.local) return deliver_to_worker(hosting, std::move(waiting));
  const core::Parked& parked = waiting.message;
  deliver(*hosting.type, waiting.shard, parked.sender, wire::own_envelope(parked.envelope).message,
          parked.deadline, false);
}

// --- giving a shard back ---

void Hosts::give_back(std::uint64_t session) {
  const auto found = workers_.find(session);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.parting = true;
  const std::vector<std::uint32_t> types = std::exchange(worker.types, {});
  for (const std::uint32_t index : types) std::erase(hostings_[index].workers, session);
  announce();
  for (const std::uint32_t index : types) {
    Hosting& hosting = hostings_[index];
    for (std::uint32_t i = 0; i < hosting.worker_of.size(); ++i) {
      if (hosting.worker_of[i] != session) continue;
      hosting.worker_of[i] = 0;
      if (worker.releasing.contains({index, i})) continue;
      release_from_worker(hosting, ShardId{i}, session, Releasing::Then::stay);
    }
  }
  set_aside(worker);
  say_goodbye_if_parted(session);
}

void Hosts::send_workers_away(const std::vector<std::string>& types) {
  std::set<std::uint64_t> going;
  for (const std::string& name : types) {
    const Type* type = context_.dispatch->find_type(name);
    if (type == nullptr || type->index >= hostings_.size()) continue;
    const Hosting& hosting = hostings_[type->index];
    going.insert(hosting.workers.begin(), hosting.workers.end());
  }
  for (const std::uint64_t session : going) give_back(session);
}

void Hosts::say_goodbye_if_parted(std::uint64_t session) {
  const auto found = workers_.find(session);
  if (found == workers_.end() || !found->second.parting) return;
  if (!found->second.releasing.empty()) return;
  found->second.parting = false;
  std::string envelope;
  wire::encode_empty(envelope, wire::Kind::goodbye);
  context_.front->send_raw(session, envelope);
}

void Hosts::stop_at_worker(Hosting& hosting, ShardId shard) {
  const std::uint64_t session = hosting.worker_of[shard.value];
  const auto worker = workers_.find(session);
  if (worker != workers_.end()) {
    release_from_worker(hosting, shard, session, Releasing::Then::stream);
    return set_aside(worker->second);
  }
  Releasing* const part = releasing_of(hosting, shard);
  if (part == nullptr || part->over()) return finish_stop(hosting, shard);
  part->then = Releasing::Then::stream;
}

void Hosts::release_from_worker(Hosting& hosting, ShardId shard, std::uint64_t session,
                                Releasing::Then then) {
  workers_.at(session).releasing[{hosting.type->index, shard.value}] = {.since = context_.now,
                                                                        .then = then};
  std::string envelope;
  wire::encode(envelope, wire::Release{{hosting.type->name, shard}, hosting.type->shard_count});
  context_.front->send_raw(session, envelope);
}

// What waits for the worker's credit, and is of a shard that it gives back, does not go there.
void Hosts::set_aside(Worker& worker) {
  std::erase_if(worker.waiting, [&worker, this](auto& entry) {
    auto& [type, waiting] = entry;
    const auto part = worker.releasing.find({type, waiting.shard.value});
    if (part == worker.releasing.end()) return false;
    waiting.since = context_.now;
    part->second.waiting.push_back(std::move(waiting));
    return true;
  });
}

// Asks for the shard back only so that the worker lets go: what it sends along is of a life that is
// over.
void Hosts::drop_at_worker(Hosting& hosting, ShardId shard, bool fenced,
                           std::vector<core::Parked>& unstarted) {
  const Releasing::Then over = fenced ? Releasing::Then::nothing : Releasing::Then::lose;
  const std::pair place{hosting.type->index, shard.value};
  const std::uint64_t assigned = std::exchange(hosting.worker_of[shard.value], 0);
  std::vector<std::uint64_t> sessions;
  for (auto& [session, worker] : workers_) {
    const bool gives = worker.releasing.contains(place);
    if (!gives && session != assigned) continue;
    if (!gives) release_from_worker(hosting, shard, session, over);
    set_aside(worker);
    Releasing& part = worker.releasing.at(place);
    if (part.then == Releasing::Then::stay) {
      part.then = Releasing::Then::lose;
      note_lost(hosting, shard, part.states.size());
    } else if (!part.over()) {
      part.then = over;
      if (!fenced) note_lost(hosting, shard, part.states.size());
    }
    part.states.clear();
    sessions.push_back(session);
  }
  take_orphans(hosting, shard, unstarted);
  for (const std::uint64_t session : sessions) {
    (void)context_.dispatch->fail_relays(worker_key(session), place.first, shard, kMovedOn);
  }
}

void Hosts::lose_orphan_states(Hosting& hosting, ShardId shard) {
  const std::size_t lost = std::erase_if(hosting.orphan_states,
                                         [&](const auto& orphan) { return orphan.first == shard; });
  note_lost(hosting, shard, lost);
}

// Shards of a type are usually lost together, so that one line tells of all.
void Hosts::note_lost(Hosting& hosting, ShardId shard, std::size_t states) {
  for (std::size_t i = 0; i < states; ++i) context_.count(Count::states_lost);
  if (states == 0) return;
  hosting.lost_shards.insert(shard.value);
  hosting.lost_states += states;
  lost_ = true;
}

void Hosts::tell_of_lost() {
  if (!std::exchange(lost_, false)) return;
  for (Hosting& hosting : hostings_) {
    const std::size_t shards = std::exchange(hosting.lost_shards, {}).size();
    const std::size_t states = std::exchange(hosting.lost_states, 0);
    if (states == 0) continue;
    context_.listener->log(
        LogLevel::warn, hosting.local ? "entity.states_lost" : "worker.states_lost",
        "type=" + hosting.type->name + " shards=" + std::to_string(shards) +
            " entities=" + std::to_string(states) + " reason=" + std::string(kNoHost));
  }
}

void Hosts::give_up_states() {
  for (auto& [session, worker] : workers_) {
    for (auto& [place, part] : worker.releasing) {
      if (part.then != Releasing::Then::stay) continue;
      note_lost(hostings_[place.first], ShardId{place.second}, part.states.size());
      part.states.clear();
    }
  }
  for (Hosting& hosting : hostings_) {
    for (const auto& [shard, entity] : std::exchange(hosting.orphan_states, {})) {
      note_lost(hosting, shard, 1);
    }
  }
  tell_of_lost();
}

void Hosts::on_released(std::uint64_t session, wire::Released message) {
  Type* type = context_.dispatch->find_type(message.shard.type);
  const auto found = workers_.find(session);
  if (found == workers_.end()) return;
  auto& releasing = found->second.releasing;
  const auto place =
      type == nullptr ? releasing.end() : releasing.find({type->index, message.shard.shard.value});
  if (place == releasing.end()) {
    refuse_release(session, message, Errc::stale_owner, "nobody waits for the shard any more");
    if (type == nullptr) return;
    Releasing over{.then = Releasing::Then::nothing};
    for (const std::string& raw : message.unbegun) take_unbegun(session, message.shard, raw, over);
    return;
  }
  Releasing& part = place->second;
  if (part.then == Releasing::Then::lose) {
    note_lost(hosting_of(*type), message.shard.shard, message.states.size());
  } else if (!part.over() && !take_states(part, message.states)) {
    refuse_release(session, message, Errc::too_large, "the shard has more than a node takes back");
  }
  for (const std::string& raw : message.unbegun) take_unbegun(session, message.shard, raw, part);
  if (message.more) return;
  Releasing whole = std::move(part);
  releasing.erase(place);
  released(hosting_of(*type), message.shard.shard, session, std::move(whole));
  say_goodbye_if_parted(session);
}

// All or none of them.
bool Hosts::take_states(Releasing& part, std::vector<wire::EntityState>& states) {
  std::size_t bytes = part.state_bytes;
  for (const wire::EntityState& entity : states) bytes += entity.id.size() + entity.state.size();
  if (part.states.size() + states.size() > context_.config.release_entities ||
      bytes > context_.config.release_bytes) {
    return false;
  }
  part.state_bytes = bytes;
  for (wire::EntityState& entity : states) {
    part.states.push_back({std::move(entity.id), std::move(entity.state)});
  }
  return true;
}

void Hosts::refuse_release(std::uint64_t session, const wire::Released& part, Errc code,
                           const std::string& why) {
  context_.count(Count::refused_releases);
  for (std::size_t i = 0; i < part.states.size(); ++i) context_.count(Count::states_lost);
  context_.listener->log(LogLevel::warn, "worker.release_refused",
                         "worker=" + workers_.at(session).label + " type=" + part.shard.type +
                             " shard=" + std::to_string(part.shard.shard.value) +
                             " entities=" + std::to_string(part.states.size()) +
                             " messages=" + std::to_string(part.unbegun.size()) + " reason=" + why);
  std::string envelope;
  wire::encode(envelope, wire::Reply{{}, static_cast<std::uint16_t>(code), why, {}});
  context_.front->send_raw(session, envelope);
}

// It is as if the message had never been sent to the worker. Its sender's number was not told
// there; nobody judges it any more, as it was accepted already.
void Hosts::take_unbegun(std::uint64_t session, const ShardName& shard, std::string_view raw,
                         Releasing& part) {
  wire::Envelope envelope;
  const bool read = wire::next_envelope(raw, envelope) == Errc::ok && raw.empty();
  const bool ask = envelope.kind == wire::Kind::ask;
  wire::Message& message = envelope.message;
  const Type* type = context_.dispatch->find_type(shard.type);
  if (!read || (!ask && envelope.kind != wire::Kind::tell) || message.type != shard.type ||
      shard_of(message.id, type->shard_count) != shard.shard) {
    return context_.count(Count::malformed_frames);
  }
  if (part.over()) {
    if (!ask) context_.dispatch->refuse(kNoNode, 0, Errc::stale_owner, "the shard moved on");
    return;
  }
  core::Parked parked{0, message.generation, {}, kNever, kNoNode, 0};
  if (ask) {
    auto taken = context_.dispatch->take_relay(message.correlation.slot, worker_key(session));
    if (!taken.has_value()) return;
    parked.deadline = taken->deadline;
    parked.asker = taken->origin.node;
    parked.slot = taken->origin.slot;
    message.correlation = {{}, parked.asker, parked.slot};
  }
  wire::encode(parked.envelope, message);
  const std::size_t bytes = parked.envelope.size();
  if (part.waiting.size() >= context_.config.buffered_messages ||
      waiting_bytes_ + bytes > context_.config.buffered_bytes) {
    return context_.dispatch->refuse(parked.asker, parked.slot, Errc::overloaded,
                                     "too much waits for the shard's next host");
  }
  Waiting waiting{shard.shard, std::move(parked), context_.now};
  waiting.lease = ByteLease(waiting_bytes_, bytes);
  const auto place = part.waiting.begin() + static_cast<std::ptrdiff_t>(part.unbegun++);
  part.waiting.insert(place, std::move(waiting));
}

// Takes out what no worker has got, oldest first.
void Hosts::take_orphans(Hosting& hosting, ShardId shard, std::vector<core::Parked>& unstarted) {
  if (Releasing* const part = releasing_of(hosting, shard)) {
    for (Waiting& waiting : part->waiting) unstarted.push_back(std::move(waiting.message));
    part->waiting.clear();
    part->unbegun = 0;
  }
  std::erase_if(hosting.orphans, [&](Waiting& waiting) {
    if (waiting.shard != shard) return false;
    unstarted.push_back(std::move(waiting.message));
    return true;
  });
}

// The worker has let go of the shard, or is not waited for any more.
void Hosts::released(Hosting& hosting, ShardId shard, std::uint64_t session, Releasing part) {
  if (hosting.worker_of[shard.value] == session) hosting.worker_of[shard.value] = 0;
  if (part.then == Releasing::Then::stream) {
    std::vector<core::Parked> unstarted;
    for (Waiting& waiting : part.waiting) unstarted.push_back(std::move(waiting.message));
    take_orphans(hosting, shard, unstarted);
    return context_.dispatch->on_stopped(*hosting.type, shard, std::move(part.states),
                                         std::move(unstarted));
  }
  // Of a shard that came here again meanwhile, states may wait for this.
  if (part.over()) settle_orphans(hosting);
  for (core::SavedEntity& entity : part.states) restore(*hosting.type, shard, std::move(entity));
  for (Waiting& waiting : part.waiting) settle(hosting, std::move(waiting));
}

// A handler that does not end must not hold up the others: what the worker has sent so far counts,
// the rest stays behind.
void Hosts::force_releases() {
  std::vector<std::pair<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>>> overdue;
  for (const auto& [session, worker] : workers_) {
    for (const auto& [key, part] : worker.releasing) {
      if (context_.now - part.since < context_.config.handoff_timeout) continue;
      overdue.emplace_back(session, key);
    }
  }
  for (const auto& [session, key] : overdue) {
    const auto found = workers_.find(session);
    if (found == workers_.end() || !found->second.releasing.contains(key)) continue;
    Releasing part = std::move(found->second.releasing.at(key));
    found->second.releasing.erase(key);
    Hosting& hosting = hostings_[key.first];
    const ShardId shard{key.second};
    const std::string label = found->second.label;
    std::ranges::move(context_.front->take_back_states(session, *hosting.type, shard),
                      std::back_inserter(part.states));
    std::set<std::string> running =
        context_.dispatch->fail_relays(worker_key(session), key.first, shard, kMovedOn);
    for (const core::SavedEntity& saved : part.states) running.erase(saved.id);
    context_.count(Count::forced_stops);
    context_.listener->log(
        LogLevel::warn, "worker.forced_stop",
        "worker=" + label + " type=" + hosting.type->name + " shard=" + std::to_string(key.second) +
            " saved=" + std::to_string(part.states.size()) + " running=" + listed(running));
    released(hosting, shard, session, std::move(part));
    say_goodbye_if_parted(session);
  }
}

void Hosts::tick() {
  if (!stopping_.empty()) abandon_overdue();
  if (halted_until_ <= context_.now) expire_halted();
  force_releases();
  for (Hosting& hosting : hostings_) expire_orphans(hosting);
  tell_of_lost();
}

// While the node leaves they go along with their shard, once somebody hosts it.
void Hosts::expire_orphans(Hosting& hosting) {
  std::vector<core::Parked> over;
  if (leaving_) {
    std::erase_if(hosting.orphans, [&](Waiting& orphan) {
      if (orphan.message.deadline > context_.now) return false;
      over.push_back(std::move(orphan.message));
      return true;
    });
  } else {
    while (!hosting.orphans.empty() &&
           context_.now - hosting.orphans.front().since >= context_.config.unknown_type_wait) {
      over.push_back(std::move(hosting.orphans.front().message));
      hosting.orphans.pop_front();
    }
  }
  for (const core::Parked& parked : over) {
    context_.dispatch->refuse(parked.asker, parked.slot,
                              leaving_ ? Errc::expired : Errc::no_such_type,
                              "no host of " + hosting.type->name + " is left");
  }
}

Time Hosts::next_deadline() const {
  Time next =
      stopping_.empty() ? halted_until_ : std::min(halted_until_, context_.now + kStopCheck);
  if (lost_) next = context_.now;
  for (const auto& [session, worker] : workers_) {
    for (const auto& [key, part] : worker.releasing) {
      next = std::min(next, part.since + context_.config.handoff_timeout);
    }
  }
  for (const Hosting& hosting : hostings_) {
    if (hosting.orphans.empty()) continue;
    next = std::min(next, leaving_
                              ? context_.now + kStopCheck
                              : hosting.orphans.front().since + context_.config.unknown_type_wait);
  }
  return next;
}

}  // namespace shardbus::runtime
