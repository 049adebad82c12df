// Messages that enter the cluster here, their routes, and their answers.
#include "runtime/data/dispatch.hpp"

#include <algorithm>
#include <utility>

#include "base/model/table.hpp"
#include "runtime/data/front_door.hpp"
#include "runtime/data/hosts.hpp"
#include "runtime/data/links.hpp"
#include "runtime/data/user_code.hpp"

namespace shardbus::runtime {
namespace {

constexpr std::string_view kAdminType = "$node";
constexpr std::string_view kNoCluster =
    "this node is in no cluster; `shardbusctl status` tells what it waits for";
constexpr std::uint32_t kCallbackDepthMax = 4;
constexpr Duration kDepartureCheck = std::chrono::milliseconds(5);
constexpr Duration kSweep = std::chrono::milliseconds(100);
constexpr Duration kFenceRetry = std::chrono::milliseconds(100);

}  // namespace

Dispatch::Dispatch(DataContext& context) : context_(context), asks_(context.config.pending_asks) {}

Type* Dispatch::find_type(std::string_view name) {
  if (last_type_ != nullptr && last_type_->name == name) return last_type_;
  const auto found = std::find_if(types_.begin(), types_.end(),
                                  [name](const Type& type) { return type.name == name; });
  if (found == types_.end()) return nullptr;
  last_type_ = &*found;
  return last_type_;
}

Type* Dispatch::add_type(std::string_view name, std::uint32_t shard_count) {
  if (Type* known = find_type(name)) return known;
  if (!has_room(shard_count)) return nullptr;
  Type& type = types_.emplace_back();
  type.name = name;
  type.index = static_cast<std::uint32_t>(types_.size() - 1);
  fill(type, shard_count);
  const auto waiting = unknown_.find(name);
  if (waiting != unknown_.end()) {
    std::deque<HeldMessage> queue = std::move(waiting->second);
    unknown_.erase(waiting);
    adopt(type, std::move(queue));
  }
  return &type;
}

void Dispatch::fill(Type& type, std::uint32_t shard_count) {
  shards_ += shard_count;
  type.shard_count = shard_count;
  type.shards.reserve(shard_count);
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    type.shards.emplace_back(context_.self(), context_.config.buffered_messages);
    type.shards.back().region.on_term(highest_term_);
  }
}

// The cluster's number stands: workers with another one came before it was known here. Of such a
// type this node has owned nothing.
void Dispatch::take_count(Type& type, std::uint32_t shard_count) {
  context_.hosts->send_away(
      type, "the cluster has " + std::to_string(shard_count) + " shards of '" + type.name + "'");
  const bool owned = std::any_of(type.shards.begin(), type.shards.end(), [](const Shard& shard) {
    return shard.region.state() != RegionState::none || shard.region.parked() > 0;
  });
  const std::uint32_t before = type.shard_count;
  const bool room = shard_count <= before || has_room(shard_count - before);
  if (owned || !room || context_.hosts->uses(type)) return;
  std::deque<HeldMessage> waiting;
  std::set<std::uint64_t> clients;  // that sent something of it
  for (Shard& shard : type.shards) {
    std::move(shard.held.begin(), shard.held.end(), std::back_inserter(waiting));
    std::erase_if(in_our_name_, [&](const auto& one) {
      if (one.first.first != &shard) return false;
      clients.insert(one.first.second);
      return true;
    });
  }
  type.shards.clear();
  shards_ -= before;
  fill(type, shard_count);
  context_.hosts->count_anew(type);
  adopt(type, std::move(waiting));
  // Whose messages are where is not known any more: each goes straight to owners only behind all.
  for (Shard& shard : type.shards) {
    if (shard.held.empty()) continue;
    for (const std::uint64_t client : clients) note_client(shard, client);
  }
}

// What waited for its type waits for its owner from now on.
void Dispatch::adopt(Type& type, std::deque<HeldMessage> queue) {
  for (HeldMessage& held : queue) {
    const wire::Envelope envelope = wire::own_envelope(held.envelope);
    if (envelope.kind == wire::Kind::fence) {  // of a shard by its number; it is sent again
      took_out(held);
      continue;
    }
    const wire::Message& message = envelope.message;
    Shard& shard = type.shards[shard_of(message.id, type.shard_count).value];
    note_client(shard, held.client);
    held.until = std::min(held.deadline, context_.now + context_.config.held_wait);
    held.ends_in = ends_in(type, shard);
    shard.held.push_back(std::move(held));
  }
}

Errc Dispatch::wait_for_type(const wire::Message& message, std::uint64_t slot, Time deadline,
                             std::uint64_t client) {
  std::deque<HeldMessage>& queue = unknown_[std::string(message.type)];
  const Errc outcome = hold(queue, message, slot, deadline, Errc::no_such_type);
  if (outcome == Errc::ok) queue.back().client = client;
  return outcome;
}

Errc Dispatch::submit_tell(const wire::Message& told, std::uint64_t client) {
  wire::Message message = told;
  if (message.type.starts_with('$')) return Errc::no_such_type;
  Type* type = find_type(message.type);
  if (type == nullptr) return wait_for_type(message, 0, kNever, client);
  Shard& shard = type->shards[shard_of(message.id, type->shard_count).value];
  note_client(shard, client);
  return route(*type, shard, message, 0, kNever);
}

void Dispatch::submit_ask(wire::Message message, Time deadline, AskOrigin origin,
                          std::uint64_t client) {
  origin.admin = message.type.starts_with('$');
  Asks::Ask ask{std::move(origin), kNoNode, deadline};
  if (asks_.full()) {
    return fail(std::move(ask), Errc::overloaded,
                "pending asks are at their limit of " + std::to_string(asks_.limit()));
  }
  const std::uint64_t slot = asks_.open(std::move(ask));
  message.correlation = {{}, context_.self(), slot};
  Errc outcome = Errc::ok;
  if (message.type.starts_with('$')) {
    outcome = route_admin(message, slot);
  } else if (Type* type = find_type(message.type)) {
    Shard& shard = type->shards[shard_of(message.id, type->shard_count).value];
    note_client(shard, client);
    outcome = route(*type, shard, message, slot, deadline);
  } else {
    outcome = wait_for_type(message, slot, deadline, client);
  }
  if (outcome == Errc::ok) return;
  if (auto refused = asks_.close(slot)) fail(std::move(*refused), outcome, message.type);
}

// Sends now, or holds behind what is held already.
Errc Dispatch::route(Type& type, Shard& shard, wire::Message& message, std::uint64_t slot,
                     Time deadline) {
  if (!shard.held.empty() || !open(shard)) {
    return hold(shard.held, message, slot, deadline, ends_in(type, shard));
  }
  return pass_on(type, shard, message, slot, deadline);
}

Errc Dispatch::pass_on(Type& type, Shard& shard, wire::Message& message, std::uint64_t slot,
                       Time deadline) {
  const NodeKey via = shard.route.via();
  shard.route.sent();
  message.generation = shard.route.generation();
  if (slot != 0) {
    if (Asks::Ask* ask = asks_.find(slot)) ask->target = via;
  }
  if (via == context_.self()) {
    const auto index = static_cast<std::uint32_t>(&shard - type.shards.data());
    arrive(type, ShardId{index}, via.value, message, deadline);
    return Errc::ok;
  }
  context_.count(Count::forwarded);
  return context_.links->send(via, message) ? Errc::ok : Errc::overloaded;
}

// A table may name a node before the membership does, or after a goodbye was said to it: then the
// message waits for the link, or for the next table.
bool Dispatch::open(const Shard& shard) const {
  if (!shard.route.may_send()) return false;
  const NodeKey via = shard.route.via();
  return via == context_.self() || context_.links->takes(via);
}

// A shard without an owner in the table is one that no member hosts; it may be that one just comes.
Errc Dispatch::ends_in(const Type& type, const Shard& shard) const {
  const TypeTable* rows = shardbus::find_type(table_, type.name);
  const auto index = static_cast<std::size_t>(&shard - type.shards.data());
  if (rows == nullptr) return context_.hosts->has(type) ? Errc::expired : Errc::no_such_type;
  const bool owned = index >= rows->entries.size() || rows->entries[index].owner != kNoNode;
  return owned ? Errc::expired : Errc::no_such_type;
}

Errc Dispatch::hold(std::deque<HeldMessage>& queue, const wire::Message& message,
                    std::uint64_t slot, Time deadline, Errc ends_in) {
  const DataConfig& config = context_.config;
  Duration wait = config.held_wait;
  if (ends_in == Errc::no_such_type) {
    wait = config.unknown_type_wait;
    // So that whoever asks hears why before its own deadline, which says nothing.
    if (deadline != kNever) wait = std::min(wait, (deadline - context_.now) * 3 / 4);
  }
  HeldMessage held{{}, slot, deadline, std::min(deadline, context_.now + wait), ends_in};
  wire::encode(held.envelope, message);
  return hold_bytes(queue, std::move(held));
}

Errc Dispatch::hold_bytes(std::deque<HeldMessage>& queue, HeldMessage held) {
  if (!take_room(held)) return Errc::overloaded;
  queue.push_back(std::move(held));
  return Errc::ok;
}

bool Dispatch::take_room(const HeldMessage& held) {
  const DataConfig& config = context_.config;
  if (held_total_ >= config.buffered_messages ||
      held_bytes_ + held.envelope.size() > config.buffered_bytes) {
    return false;
  }
  ++held_total_;
  held_bytes_ += held.envelope.size();
  return true;
}

void Dispatch::took_out(const HeldMessage& held) {
  --held_total_;
  held_bytes_ -= held.envelope.size();
}

void Dispatch::arrive(Type& type, ShardId id, std::uint64_t sender, const wire::Message& message,
                      Time deadline) {
  Shard& shard = type.shards[id.value];
  const wire::Correlation& port = message.correlation;
  switch (shard.region.arrive(sender, message.generation)) {
    case core::Region::Verdict::deliver:
      context_.hosts->deliver(type, id, sender, message, deadline, true);
      return;
    case core::Region::Verdict::park: {
      // What a forwarder passes on is bounded by nothing but its link.
      if (shard.region.passes() && context_.links->stream_is_full(shard.region.other())) {
        return refuse(port.node, port.slot, Errc::overloaded, "the way to the new owner is full");
      }
      core::Parked parked{sender, message.generation, {}, deadline, port.node, port.slot};
      wire::encode(parked.envelope, message);
      const std::size_t bytes = parked.envelope.size();
      if (parked_bytes_ + bytes > context_.config.buffered_bytes) {
        return refuse(port.node, port.slot, Errc::overloaded, "moving shards have too many bytes");
      }
      parked.room = std::make_shared<const ByteLease>(parked_bytes_, bytes);
      core::Region::Outputs outputs;
      shard.region.park(std::move(parked), outputs);
      return carry_out(type, id, outputs);
    }
    case core::Region::Verdict::overflow:
      return refuse(port.node, port.slot, Errc::overloaded, "the shard's hand-over buffer is full");
    case core::Region::Verdict::stale:
      context_.count(Count::stale_messages);
      return refuse(port.node, port.slot, Errc::stale_owner, "overtaken by a newer route");
    case core::Region::Verdict::not_here:
      return refuse(port.node, port.slot, Errc::stale_owner, "the shard is not on this node");
  }
}

// --- answers ---

void Dispatch::answer(NodeKey node, std::uint64_t slot, const ReplyView& given) {
  if (node == kNoNode) return;
  ReplyView reply = given;
  reply.text = reply.text.substr(0, wire::kTextBytesMax);
  if (reply.payload.size() > wire::kPayloadBytesMax) {
    reply = {Errc::too_large, "the reply is larger than a message may be", {}};
  }
  if (node == context_.self()) {
    if (auto ask = asks_.close(slot)) return complete(std::move(*ask), reply);
    context_.count(Count::late_answers);
    return;
  }
  const wire::Reply envelope{
      {{}, node, slot}, static_cast<std::uint16_t>(reply.error), reply.text, reply.payload};
  if (context_.links->send(node, envelope)) return;
  if (!context_.links->knows(node) && !gone_.contains(node)) {
    std::string early;
    wire::encode(early, envelope);
    if (early_replies_.hold(node, std::move(early), context_.now)) return;
  }
  context_.count(Count::late_answers);
  // Large replies may fill the way back; that there is none must get through all the same.
  std::string error;
  wire::encode(error, wire::Reply{{{}, node, slot},
                                  static_cast<std::uint16_t>(Errc::unknown_outcome),
                                  "the reply found no room on its way back",
                                  {}});
  (void)context_.links->send_raw(node, error);
}

void Dispatch::on_reply(const wire::Reply& reply) {
  answer(reply.correlation.node, reply.correlation.slot,
         {static_cast<Errc>(reply.code), reply.text, reply.payload});
}

void Dispatch::complete(Asks::Ask&& ask, const ReplyView& reply) {
  AskOrigin& origin = ask.origin;
  if (!origin.admin) context_.count(reply.ok() ? Count::replies : Count::errors_answered);
  if (origin.callback) {
    if (callback_depth_ < kCallbackDepthMax) return call_back(origin.callback, reply);
    deferred_.push_back({std::move(origin.callback), reply.error, std::string(reply.text),
                         std::string(reply.payload)});
    return;
  }
  if (origin.session != 0) return context_.front->answer(origin.session, origin.opaque, reply);
  answer(origin.node, origin.slot, reply);
}

void Dispatch::call_back(ReplyCallback& callback, const ReplyView& reply) {
  const Hosts::UserCode mark(*context_.hosts);
  ++callback_depth_;
  const std::string failure = failure_of([&] { callback(reply); });
  --callback_depth_;
  if (failure.empty()) return;
  context_.listener->log(LogLevel::error, "api.callback_threw", "error=" + failure);
}

void Dispatch::run_deferred(std::size_t& budget) {
  while (!deferred_.empty() && budget > 0) {
    --budget;
    Deferred next = std::move(deferred_.front());
    deferred_.pop_front();
    call_back(next.callback, {next.error, next.text, next.payload});
  }
}

void Dispatch::abandon(Errc code, std::string_view text) {
  // What has not gone out must not go out later: its asks end as not delivered.
  for (const NodeInfo& node : context_.links->nodes()) {
    for (const std::string& envelope : context_.links->take_unsent(node.key)) {
      const wire::Message message = wire::own_envelope(envelope).message;
      const bool asks = message.kind == wire::Kind::ask;
      asks ? aim({message.correlation.slot}, kNoNode) : refuse(kNoNode, 0, code, message.type);
    }
  }
  drop_held_tells(code);
  asks_.close_if([](const Asks::Ask&) { return true; },
                 [&](Asks::Ask&& ask) {
                   const bool sent = ask.target != kNoNode;
                   fail(std::move(ask), sent ? Errc::unknown_outcome : code, text);
                 });
  std::size_t all = SIZE_MAX;
  run_deferred(all);
}

// Nobody waits for these: what becomes of them is counted and written down.
void Dispatch::drop_held_tells(Errc code) {
  std::vector<HeldMessage> over;
  const auto take = [&](std::deque<HeldMessage>& queue) {
    for (HeldMessage& held : std::exchange(queue, {})) {
      took_out(held);
      held.ends_in = code;
      if (held.slot == 0) over.push_back(std::move(held));
    }
  };
  for (auto& [type, queue] : unknown_) take(queue);
  for (Type& type : types_) {
    for (Shard& shard : type.shards) take(shard.held);
  }
  end(over);
}

void Dispatch::fail(Asks::Ask&& ask, Errc code, std::string_view text) {
  complete(std::move(ask), {code, text, {}});
}

void Dispatch::refuse(NodeKey asker, std::uint64_t slot, Errc code, std::string_view text) {
  if (asker != kNoNode) return answer(asker, slot, {code, text, {}});
  context_.count(Count::tells_dropped);
  context_.listener->log(
      LogLevel::warn, "delivery.tell_dropped",
      "reason=" + std::string(error_info(code).name) + " text=" + std::string(text));
}

void Dispatch::note_lost_tells(std::string_view frame) {
  std::size_t tells = 0;
  wire::Envelope envelope;
  while (!frame.empty() && wire::next_envelope(frame, envelope) == Errc::ok) {
    if (envelope.kind != wire::Kind::tell) continue;
    ++tells;
    context_.count(Count::tells_dropped);
  }
  if (tells == 0) return;
  context_.listener->log(LogLevel::warn, "delivery.tell_dropped",
                         "reason=unknown_outcome number=" + std::to_string(tells) +
                             " text=the connection ended before they were sent");
}

std::uint64_t Dispatch::open_relay(AskOrigin origin, NodeKey target, Time deadline) {
  return asks_.full() ? 0 : asks_.open({std::move(origin), target, deadline});
}

std::set<std::string> Dispatch::fail_relays(NodeKey worker, std::uint32_t type, ShardId shard,
                                            std::string_view text) {
  std::set<std::string> entities;
  const auto of_shard = [&](const Asks::Ask& ask) {
    return ask.target == worker && ask.origin.type == type && ask.origin.shard == shard;
  };
  asks_.close_if(of_shard, [&](Asks::Ask&& ask) {
    entities.insert(ask.origin.opaque);
    fail(std::move(ask), Errc::unknown_outcome, text);
  });
  return entities;
}

void Dispatch::aim(const std::vector<std::uint64_t>& slots, NodeKey target) {
  for (const std::uint64_t slot : slots) {
    if (Asks::Ask* ask = asks_.find(slot)) ask->target = target;
  }
}

void Dispatch::fail_target(NodeKey target, Errc code, std::string_view text) {
  asks_.close_if([target](const Asks::Ask& ask) { return ask.target == target; },
                 [&](Asks::Ask&& ask) { fail(std::move(ask), code, text); });
}

// --- administration ---

Errc Dispatch::route_admin(const wire::Message& message, std::uint64_t slot) {
  if (message.type != kAdminType) return Errc::no_such_type;
  if (message.id.empty() || message.id == context_.config.self.name) {
    if (Asks::Ask* ask = asks_.find(slot)) ask->target = context_.self();
    on_admin(message, context_.self(), slot);
    return Errc::ok;
  }
  const NodeKey node = context_.links->find_by_name(message.id);
  if (node == kNoNode) return Errc::no_such_node;
  if (Asks::Ask* ask = asks_.find(slot)) ask->target = node;
  return context_.links->send(node, message) ? Errc::ok : Errc::overloaded;
}

void Dispatch::on_admin(const wire::Message& message, NodeKey asker, std::uint64_t slot) {
  context_.listener->on_admin(
      {asker, slot, std::string(message.method), std::string(message.payload)});
}

// --- routes ---

void Dispatch::act(Type& type, ShardId id, core::Route::Step step) {
  if (step.send_fence) send_fence(type, id);
  if (step.release) release(type, id);
}

// Each goes on while the route stays open. What a callback sends meanwhile waits behind the rest.
void Dispatch::release(Type& type, ShardId id) {
  Shard& shard = type.shards[id.value];
  while (!shard.held.empty() && open(shard)) {
    const HeldMessage held = std::move(shard.held.front());
    shard.held.pop_front();
    took_out(held);
    send_held(type, shard, held);
  }
}

void Dispatch::send_held(Type& type, Shard& shard, const HeldMessage& held) {
  if (held.slot != 0 && asks_.find(held.slot) == nullptr) return;  // ended meanwhile
  wire::Envelope envelope = wire::own_envelope(held.envelope);
  if (envelope.kind == wire::Kind::fence) {
    wire::Fence fence;
    if (wire::decode(envelope, fence) == Errc::ok) pass_client_fence(shard, fence);
    return;
  }
  wire::Message& message = envelope.message;
  if (held.slot != 0 && held.deadline != kNever) {
    const auto left = std::chrono::duration_cast<milliseconds>(held.deadline - context_.now);
    message.time_left_ms = static_cast<std::uint32_t>(std::max<std::int64_t>(left.count(), 1));
  }
  const Errc outcome = pass_on(type, shard, message, held.slot, held.deadline);
  if (outcome != Errc::ok) refuse(message.correlation.node, held.slot, outcome, message.type);
}

void Dispatch::check_fence_later(const Type& type, ShardId id) {
  fenced_.emplace_back(type.index, id);
  next_fence_check_ = std::min(next_fence_check_, context_.now + kFenceRetry);
}

// A fence, or its answer, may have been lost with a link (rule 18).
void Dispatch::check_fences() {
  next_fence_check_ = kNever;
  std::vector<std::pair<std::uint32_t, ShardId>> fenced = std::exchange(fenced_, {});
  std::sort(fenced.begin(), fenced.end());
  fenced.erase(std::unique(fenced.begin(), fenced.end()), fenced.end());
  core::Region::Outputs outputs;
  for (const auto& [index, id] : fenced) {
    Type& type = types_[index];
    if (type.shards[id.value].route.fence_id() != 0) send_fence(type, id);
    type.shards[id.value].region.resend_own_fence(outputs);
    if (!outputs.empty()) carry_out(type, id, outputs);
    outputs.clear();
  }
}

void Dispatch::send_fence(Type& type, ShardId id) {
  Shard& shard = type.shards[id.value];
  check_fence_later(type, id);
  wire::Fence fence;
  fence.shard = {type.name, id};
  fence.id = shard.route.fence_id();
  fence.sender = context_.self().value;
  fence.generation = shard.route.generation();
  fence.target = shard.route.owner();
  if (shard.route.via() == context_.self()) return on_fence(context_.self(), fence);
  (void)context_.links->send(shard.route.via(), fence);
}

// --- time ---

// What is told of an end may come back with a new message at once: first everything is taken out.
void Dispatch::expire_held() {
  std::vector<HeldMessage> over;
  const auto take = [&](std::deque<HeldMessage>& queue) {
    std::erase_if(queue, [&](HeldMessage& held) {
      const bool ended = held.slot != 0 && asks_.find(held.slot) == nullptr;
      if (!ended && held.until > context_.now) return false;
      took_out(held);
      over.push_back(std::move(held));
      return true;
    });
  };
  for (auto& [name, queue] : unknown_) take(queue);
  std::erase_if(unknown_, [](const auto& entry) { return entry.second.empty(); });
  for (Type& type : types_) {
    for (Shard& shard : type.shards) {
      if (!shard.held.empty()) take(shard.held);
    }
  }
  end(over);
}

std::string Dispatch::why_unsent(std::string_view type) const {
  const char* gap = type.empty() ? "" : ": ";
  return std::string(type) + (context_.cluster_id != 0 ? "" : gap + std::string(kNoCluster));
}

void Dispatch::end(const std::vector<HeldMessage>& over) {
  for (const HeldMessage& held : over) {
    const wire::Envelope envelope = wire::own_envelope(held.envelope);
    const std::string type(envelope.message.type);
    if (held.slot == 0) {
      if (envelope.kind != wire::Kind::fence) refuse(kNoNode, 0, held.ends_in, type);
    } else if (auto ask = asks_.close(held.slot)) {
      fail(std::move(*ask), held.ends_in, why_unsent(type));
    }
  }
}

void Dispatch::sweep_regions() {
  core::Region::Outputs outputs;
  for (Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      if (type.shards[i].region.parked() == 0) continue;
      type.shards[i].region.expire(context_.now, outputs);
      carry_out(type, ShardId{i}, outputs);
      outputs.clear();
    }
  }
}

void Dispatch::tick() {
  asks_.expire(context_.now, [this](Asks::Ask&& ask) {
    const bool sent = ask.target != kNoNode;
    if (sent) return fail(std::move(ask), Errc::timeout, "");
    fail(std::move(ask), Errc::expired, why_unsent(""));
  });
  if (!departing_.empty()) part_from_departed();
  if (next_fence_check_ <= context_.now) check_fences();
  if (context_.now < next_sweep_) return;
  next_sweep_ = context_.now + kSweep;
  if (held_total_ > 0) expire_held();
  for (auto late = early_replies_.expire(context_.now); late > 0; --late) {
    context_.count(Count::late_answers);
  }
  sweep_regions();
}

Time Dispatch::next_deadline() {
  Time next = std::min(asks_.next_deadline(context_.now), next_fence_check_);
  if (!departing_.empty()) next = std::min(next, context_.now + kDepartureCheck);
  if (held_total_ > 0 || early_replies_.size() > 0)
    next = std::min(next, std::max(next_sweep_, context_.now));
  return next;
}

}  // namespace shardbus::runtime
