#include "client/client_plane.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "wire/limits.hpp"

namespace shardbus::client {
namespace {

constexpr std::uint32_t kCallbackDepthMax = 4;
constexpr std::size_t kHeldMax = 65536;
constexpr Duration kTick = std::chrono::milliseconds(5);
constexpr Duration kFenceRetry = std::chrono::seconds(1);
// The node that has an ask knows better than this client whether it was begun, and says so at the
// same deadline.
constexpr Duration kGrace = std::chrono::milliseconds(100);
constexpr Duration kTellPatience = std::chrono::seconds(5);  // a tell has no deadline of its own

// A slot number as the correlation that comes back: one msgpack uint 64.
struct SlotText {
  std::array<char, 9> bytes{};
  explicit SlotText(std::uint64_t slot) {
    bytes[0] = '\xcf';
    for (unsigned i = 0; i < 8; ++i) bytes[8 - i] = static_cast<char>(slot >> (8 * i));
  }
  [[nodiscard]] std::string_view view() const { return {bytes.data(), bytes.size()}; }
};

std::uint64_t slot_of(std::string_view opaque) {
  if (opaque.size() != 9 || opaque[0] != '\xcf') return 0;
  std::uint64_t slot = 0;
  for (std::size_t i = 1; i < 9; ++i) slot = slot << 8 | static_cast<unsigned char>(opaque[i]);
  return slot;
}

wire::Message message_of(const Outgoing& out, wire::Kind kind) {
  wire::Message message;
  message.kind = kind;
  message.flags = wire::kFlagGreeted;
  message.type = out.type;
  message.id = out.id;
  message.method = out.method;
  message.payload = out.payload;
  return message;
}

}  // namespace

ClientPlane::ClientPlane(PlaneSettings settings, ClientPort& port)
    : settings_(std::move(settings)),
      random_(settings_.seed),
      port_(port),
      sessions_({settings_.cluster, (random_.next() & kMaxWireInteger) | 1U, settings_.smart}, port,
                *this),
      asks_(settings_.pending_asks) {}

void ClientPlane::begin(Time now) {
  now_ = now;
  sessions_.begin(now);
}

void ClientPlane::end() {
  run_deferred();
  if (now_ >= next_tick_) {
    next_tick_ = now_ + kTick;
    tick();
    sessions_.tick();
    run_deferred();
  }
  sessions_.flush();
}

Time ClientPlane::next_deadline() {
  const Time next =
      std::min({asks_.next_deadline(now_), sessions_.next_deadline(), next_fence_check_});
  return next == kNever ? kNever : std::max(next, next_tick_);
}

bool ClientPlane::usable() const {
  return sessions_.any() != kNoNode && knows_ways();
}

ClientPlane::Type* ClientPlane::find_type(std::string_view name) {
  if (last_type_ != nullptr && last_type_->name == name) return last_type_;
  const auto found = std::find_if(types_.begin(), types_.end(),
                                  [name](const Type& type) { return type.name == name; });
  if (found == types_.end()) return nullptr;
  last_type_ = &*found;
  return last_type_;
}

// --- out ---

Errc ClientPlane::tell(const Outgoing& out) {
  if (stopped_) return Errc::stopped;
  wire::Message message = message_of(out, wire::Kind::tell);
  return submit(message, 0, now_ + kTellPatience);
}

void ClientPlane::ask(const Outgoing& out, milliseconds timeout, ReplyCallback done) {
  Asks::Ask ask{{std::move(done)}, kNoNode, now_ + timeout};
  if (stopped_) return complete(std::move(ask), {Errc::stopped, "the client stopped", {}});
  if (asks_.full()) {
    return complete(std::move(ask), {Errc::overloaded, "pending asks are at their limit", {}});
  }
  const Time deadline = ask.deadline;
  const std::uint64_t slot = asks_.open(std::move(ask));
  const SlotText correlation(slot);
  wire::Message message = message_of(out, wire::Kind::ask);
  message.correlation.opaque = correlation.view();
  message.time_left_ms = static_cast<std::uint32_t>(timeout.count());
  const Errc outcome = submit(message, slot, deadline);
  if (outcome != Errc::ok) refuse(slot, outcome, out.type);
}

// The one way out for what cannot be sent: an ask hears it, a tell is counted and logged.
void ClientPlane::refuse(std::uint64_t slot, Errc code, std::string_view type) {
  if (slot == 0) return report_tell(code, type);
  if (auto refused = asks_.close(slot)) complete(std::move(*refused), {code, type, {}});
}

void ClientPlane::report_tell(Errc outcome, std::string_view type, std::uint64_t tells) {
  if (outcome == Errc::ok) return;
  tells_dropped_ += tells;
  port_.log(LogLevel::warn, "delivery.tell_dropped",
            "reason=" + std::string(error_info(outcome).name) + " type=" + std::string(type) +
                " dropped_in_all=" + std::to_string(tells_dropped_));
}

Errc ClientPlane::submit(wire::Message& message, std::uint64_t slot, Time deadline) {
  Type* type = settings_.smart ? find_type(message.type) : nullptr;
  if (type == nullptr) return submit_anywhere(message, slot, deadline);
  const auto count = static_cast<std::uint32_t>(type->shards.size());
  Shard& shard = type->shards[shard_of(message.id, count).value];
  if (!shard.held.empty() || !open_way(shard.route)) {
    return hold(shard.held, message, slot, deadline);
  }
  return forward(shard, message, slot);
}

// Whether the next message may go now. What has no owner, or one that cannot be reached from here,
// goes through the node greeted first. Invariant: a way that was used has a session, for the loss
// of the session ends the way.
bool ClientPlane::open_way(core::Route& route) {
  if (route.may_send() && sessions_.ready(route.via())) return true;
  if (route.fence_id() != 0 || route.used()) return false;
  const NodeKey home = sessions_.any();
  if (home == kNoNode) return false;
  route.start_via(home);
  return true;
}

Errc ClientPlane::forward(Shard& shard, wire::Message& message, std::uint64_t slot) {
  const NodeKey via = shard.route.via();
  shard.route.sent();
  message.generation = shard.route.stamp();
  if (slot != 0) sent_to(slot, via);
  return sessions_.send(via, message, true);
}

void ClientPlane::sent_to(std::uint64_t slot, NodeKey node) {
  Asks::Ask* ask = asks_.find(slot);
  if (ask == nullptr) return;
  ask->target = node;
  asks_.wait_until(slot, ask->deadline + kGrace);
}

// A type whose shards we do not know, or a simple client: any node finds the way.
Errc ClientPlane::submit_anywhere(wire::Message& message, std::uint64_t slot, Time deadline) {
  const NodeKey home = sessions_.any();
  if (home == kNoNode || !lobby_.empty()) return hold(lobby_, message, slot, deadline);
  if (slot != 0) sent_to(slot, home);
  if (settings_.smart && !message.type.starts_with('$')) {
    used_home_[std::string(message.type)] = home;
  }
  return sessions_.send(home, message, true);
}

Errc ClientPlane::hold(std::deque<Held>& queue, const wire::Message& message, std::uint64_t slot,
                       Time deadline) {
  if (held_total_ >= kHeldMax) return Errc::overloaded;
  Held held{{}, slot, deadline};
  wire::encode(held.envelope, message);
  queue.push_back(std::move(held));
  ++held_total_;
  return Errc::ok;
}

void ClientPlane::release(Type& type, std::uint32_t index) {
  Shard& shard = type.shards[index];
  while (!shard.held.empty() && open_way(shard.route)) {
    const Held held = std::move(shard.held.front());
    shard.held.pop_front();
    --held_total_;
    if (held.slot != 0 && asks_.find(held.slot) == nullptr) continue;  // ended meanwhile
    std::string_view rest = held.envelope;
    wire::Envelope envelope;
    if (wire::next_envelope(rest, envelope) != Errc::ok) continue;
    const Errc outcome = forward(shard, envelope.message, held.slot);
    if (outcome != Errc::ok) refuse(held.slot, outcome, type.name);
  }
}

void ClientPlane::send_lobby() {
  std::deque<Held> waiting = std::exchange(lobby_, {});
  held_total_ -= waiting.size();
  for (const Held& held : waiting) {
    if (held.slot != 0 && asks_.find(held.slot) == nullptr) continue;
    std::string_view rest = held.envelope;
    wire::Envelope envelope;
    if (wire::next_envelope(rest, envelope) != Errc::ok) continue;
    const Errc outcome = submit(envelope.message, held.slot, held.deadline);
    if (outcome != Errc::ok) refuse(held.slot, outcome, envelope.message.type);
  }
}

// What no node has got stays, ahead of what waits already.
void ClientPlane::put_back(const std::vector<std::string>& unsent) {
  for (auto item = unsent.rbegin(); item != unsent.rend(); ++item) {
    std::string_view rest = *item;
    wire::Envelope envelope;
    if (wire::next_envelope(rest, envelope) != Errc::ok) continue;
    // A fence is not needed any more: the loss of its way opens the route.
    if (envelope.kind != wire::Kind::tell && envelope.kind != wire::Kind::ask) continue;
    Held held{*item, slot_of(envelope.message.correlation.opaque), now_ + kTellPatience};
    if (held.slot != 0) {
      Asks::Ask* ask = asks_.find(held.slot);
      if (ask == nullptr) continue;
      ask->target = kNoNode;
      held.deadline = ask->deadline;
      asks_.wait_until(held.slot, ask->deadline);
    }
    Type* type = settings_.smart ? find_type(envelope.message.type) : nullptr;
    const auto count = static_cast<std::uint32_t>(type == nullptr ? 1 : type->shards.size());
    const ShardId shard = shard_of(envelope.message.id, count);
    auto& queue = type == nullptr ? lobby_ : type->shards[shard.value].held;
    queue.push_front(std::move(held));
    ++held_total_;
  }
}

// --- routes ---

void ClientPlane::act(Type& type, std::uint32_t shard, core::Route::Step step) {
  if (step.send_fence) send_fence(type, shard);
  if (step.release) release(type, shard);
}

void ClientPlane::send_fence(Type& type, std::uint32_t index) {
  const core::Route& route = type.shards[index].route;
  if (!std::exchange(type.shards[index].fenced, true)) {
    fenced_.emplace_back(&type, index);
    next_fence_check_ = std::min(next_fence_check_, now_ + kFenceRetry);
  }
  wire::Fence fence;
  fence.shard = {type.name, ShardId{index}};
  fence.id = route.fence_id();
  fence.generation = route.generation();
  fence.target = route.owner();
  // The way has a session, or had one whose loss opens the route; a full one is tried again.
  (void)sessions_.send(route.via(), fence, false);
}

// A fence, or its answer, may have been lost between nodes.
void ClientPlane::check_fences() {
  if (now_ < next_fence_check_) return;
  next_fence_check_ = kNever;
  for (const auto& [type, index] : std::exchange(fenced_, {})) {
    Shard& shard = type->shards[index];
    shard.fenced = false;
    if (shard.route.fence_id() != 0) send_fence(*type, index);
  }
}

// A next owner answers fences before the shard is its own. If it dies, and with it the coordinator
// that knew of the move, the old owner goes on under its older generation (PROTOCOL.md section 8).
void ClientPlane::learn(Type& type, std::uint32_t index, const TableEntry& entry,
                        const wire::ClientTable& table) {
  core::Route& route = type.shards[index].route;
  const Term rebuilt = table.table.version.term;
  const NodeKey owner = route.owner();
  if (entry.generation < route.generation() && route.generation().term < rebuilt) {
    const bool carries = route.via() == owner && sessions_.ready(owner);  // its end tells enough
    const bool member = std::any_of(table.nodes.begin(), table.nodes.end(),
                                    [owner](const NodeInfo& node) { return node.key == owner; });
    if (!member && !carries) act(type, index, route.on_dead(owner));
  }
  act(type, index, route.on_entry(entry, rebuilt));
}

void ClientPlane::on_table(const wire::ClientTable& table) {
  if (has_table_ && table.table.version < version_) return;
  version_ = table.table.version;
  const bool first = !std::exchange(has_table_, true);
  std::vector<std::string> wanted = settings_.addresses;
  for (const NodeInfo& node : table.nodes) {
    wanted.push_back(node.front);
    sessions_.open(node.front);
  }
  sessions_.keep_only(wanted);
  for (const TypeTable& rows : table.table.types) {
    Type* type = find_type(rows.name);
    if (type == nullptr) {
      type = &types_.emplace_back();
      type->name = rows.name;
      type->shards.resize(rows.shard_count);
      const auto used = used_home_.find(rows.name);
      if (used != used_home_.end()) {
        for (Shard& shard : type->shards) shard.route.start_via(used->second);
        used_home_.erase(used);
      }
    }
    const auto count = static_cast<std::uint32_t>(type->shards.size());
    for (std::uint32_t i = 0; i < count && i < rows.entries.size(); ++i) {
      learn(*type, i, rows.entries[i], table);
    }
  }
  if (first) send_lobby();
}

void ClientPlane::on_moved(const wire::Moved& moved) {
  Type* type = find_type(moved.shard.type);
  if (type == nullptr || moved.shard.shard.value >= type->shards.size()) return;
  sessions_.open(moved.front);
  act(*type, moved.shard.shard.value,
      type->shards[moved.shard.shard.value].route.on_entry(moved.entry));
}

// --- events of sessions ---

void ClientPlane::on_session_ready(NodeKey node) {
  if (!settings_.smart) return send_lobby();
  for (Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shards.size(); ++i) {
      Shard& shard = type.shards[i];
      act(type, i, shard.route.on_way_open(node));
      if (!shard.held.empty()) release(type, i);
    }
  }
  if (knows_ways()) send_lobby();
}

void ClientPlane::on_session_broken(NodeKey node, const std::vector<std::string>& unsent) {
  put_back(unsent);
  std::erase_if(used_home_, [node](const auto& used) { return used.second == node; });
  fail_target(node, Errc::unknown_outcome, "the session with the owner's node broke");
  for (Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shards.size(); ++i) {
      act(type, i, type.shards[i].route.on_way_lost(node));
    }
  }
  if (usable()) send_lobby();
}

void ClientPlane::on_envelope(NodeKey node, const wire::Envelope& envelope) {
  (void)node;
  switch (envelope.kind) {
    case wire::Kind::reply:
    case wire::Kind::error:
      return on_reply(envelope.reply);
    case wire::Kind::table: {
      wire::ClientTable table;
      if (settings_.smart && wire::decode(envelope, table) == Errc::ok) on_table(table);
      return;
    }
    case wire::Kind::moved: {
      wire::Moved moved;
      if (settings_.smart && wire::decode(envelope, moved) == Errc::ok) on_moved(moved);
      return;
    }
    case wire::Kind::fence_ok:
    case wire::Kind::path_lost: {
      wire::FenceOk answer;
      if (wire::decode(envelope, answer) != Errc::ok) return;
      Type* type = find_type(answer.shard.type);
      if (type == nullptr || answer.shard.shard.value >= type->shards.size()) return;
      core::Route& route = type->shards[answer.shard.shard.value].route;
      return act(*type, answer.shard.shard.value,
                 answer.lost ? route.on_path_lost(answer.id)
                             : route.on_fence_ok(answer.id, answer.node, answer.generation,
                                                 sessions_.ready(answer.node)));
    }
    default:
      return;
  }
}

void ClientPlane::on_reply(const wire::Reply& reply) {
  const std::uint64_t slot = slot_of(reply.correlation.opaque);
  if (auto ask = asks_.close(slot)) {
    complete(std::move(*ask), {static_cast<Errc>(reply.code), reply.text, reply.payload});
  }
}

// --- answers ---

void ClientPlane::complete(Asks::Ask&& ask, const ReplyView& reply) {
  ReplyCallback& callback = ask.origin.callback;
  if (callback_depth_ < kCallbackDepthMax) return call_back(callback, reply);
  deferred_.push_back(
      {std::move(callback), reply.error, std::string(reply.text), std::string(reply.payload)});
}

void ClientPlane::call_back(ReplyCallback& callback, const ReplyView& reply) {
  ++callback_depth_;
  std::string thrown;
  try {
    callback(reply);
  } catch (const std::exception& error) {
    thrown = std::string("error=") + error.what();
  } catch (...) {
    thrown = "error=an exception that is not a std::exception";
  }
  --callback_depth_;
  if (!thrown.empty()) port_.log(LogLevel::error, "api.callback_threw", std::move(thrown));
}

void ClientPlane::run_deferred() {
  while (!deferred_.empty()) {
    Deferred next = std::move(deferred_.front());
    deferred_.pop_front();
    call_back(next.callback, {next.error, next.text, next.payload});
  }
}

void ClientPlane::fail_target(NodeKey node, Errc code, std::string_view text) {
  asks_.close_if([node](const Asks::Ask& ask) { return ask.target == node; },
                 [&](Asks::Ask&& ask) {
                   complete(std::move(ask), {code, text, {}});
                 });
}

void ClientPlane::stop(std::string_view text) {
  stopped_ = true;
  put_back(sessions_.goodbye());
  std::uint64_t tells = 0;
  const auto drop = [&](std::deque<Held>& queue) {
    for (const Held& held : queue) tells += held.slot == 0 ? 1 : 0;
    queue.clear();
  };
  drop(lobby_);
  for (Type& type : types_) {
    for (Shard& shard : type.shards) drop(shard.held);
  }
  held_total_ = 0;
  if (tells > 0) report_tell(Errc::stopped, "(not sent yet)", tells);
  asks_.close_if(
      [](const Asks::Ask&) { return true; },
      [&](Asks::Ask&& ask) {
        const bool sent = ask.target != kNoNode;
        complete(std::move(ask), {sent ? Errc::unknown_outcome : Errc::stopped, text, {}});
      });
  run_deferred();
}

void ClientPlane::tick() {
  asks_.expire(now_, [this](Asks::Ask&& ask) {
    const bool sent = ask.target != kNoNode;
    complete(std::move(ask), {sent ? Errc::timeout : Errc::expired, {}, {}});
  });
  check_fences();
  if (held_total_ == 0) return;
  expire(lobby_);
  for (Type& type : types_) {
    for (Shard& shard : type.shards) expire(shard.held);
  }
}

// Asks have ended by their own deadline.
void ClientPlane::expire(std::deque<Held>& queue) {
  while (!queue.empty() && queue.front().deadline <= now_) {
    const Held held = std::move(queue.front());
    queue.pop_front();
    --held_total_;
    if (held.slot != 0) continue;
    std::string_view rest = held.envelope;
    wire::Envelope envelope;
    (void)wire::next_envelope(rest, envelope);
    report_tell(Errc::expired, envelope.message.type);
  }
}

}  // namespace shardbus::client
