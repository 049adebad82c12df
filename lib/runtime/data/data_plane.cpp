#include "runtime/data/data_plane.hpp"

#include <algorithm>
#include <utility>

namespace shardbus::runtime {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(5);
constexpr Duration kHeldLook = std::chrono::milliseconds(1);
// Messages and callbacks that a pass may add to itself: entities and callbacks of this process that
// answer each other without end leave room for the network and for timers.
constexpr std::size_t kPassBudget = 4096;
// Answers of strict types that a pass gathers; above, they go into their batches as they come.
constexpr std::size_t kByRightBytesMax = std::size_t{1} << 20;

}  // namespace

DataPlane::DataPlane(DataConfig config, WirePort& wire, DataListener& listener,
                     std::weak_ptr<NodeMessenger> messenger, Executor* executor)
    : context_(std::move(config)),
      links_(context_),
      front_(context_),
      peers_(context_),
      dispatch_(context_),
      hosts_(context_, std::move(messenger), executor) {
  context_.wire = &wire;
  context_.listener = &listener;
  context_.links = &links_;
  context_.front = &front_;
  context_.peers = &peers_;
  context_.dispatch = &dispatch_;
  context_.hosts = &hosts_;
}

void DataPlane::end() {
  if (held()) return context_.rare.hit(Mark::pass_held);
  std::size_t budget = kPassBudget;
  run(budget);
  if (context_.now >= next_tick_) {
    next_tick_ = context_.now + kTick;
    hosts_.tick();  // first: it knows of more asks that nothing has happened
    dispatch_.tick();
    links_.tick();
    front_.tick();
    run(budget);
  }
  // As late as can be; what their callbacks do then may take its time.
  while (release_answers()) {
    links_.flush();
    front_.flush();
    run(budget);
  }
  links_.flush();
  front_.flush();
  if (hosts_.end_old_lives()) {  // what their destructors answer
    links_.flush();
    front_.flush();
  }
  more_ = dispatch_.has_deferred() || hosts_.has_ready();
}

void DataPlane::run(std::size_t& budget) {
  do {
    dispatch_.run_deferred(budget);
  } while (hosts_.run_ready(budget) || (budget > 0 && dispatch_.has_deferred()));
}

Time DataPlane::next_deadline() {
  if (held()) return context_.now + kHeldLook;
  if (more_) return context_.now;
  const Time next = std::min({dispatch_.next_deadline(), hosts_.next_deadline(),
                              links_.next_deadline(), front_.next_deadline()});
  return next == kNever ? kNever : std::max(next, next_tick_);
}

Errc DataPlane::tell(const Outgoing& out) {
  if (abandoned_) return Errc::stopped;
  wire::Message message;
  message.kind = wire::Kind::tell;
  message.type = out.type;
  message.id = out.id;
  message.method = out.method;
  message.payload = out.payload;
  return dispatch_.submit_tell(message);
}

void DataPlane::ask(const Outgoing& out, milliseconds timeout, ReplyCallback done) {
  if (abandoned_) return refuse_late(done);
  wire::Message message;
  message.kind = wire::Kind::ask;
  message.type = out.type;
  message.id = out.id;
  message.method = out.method;
  message.payload = out.payload;
  message.time_left_ms = static_cast<std::uint32_t>(timeout.count());
  AskOrigin origin;
  origin.callback = std::move(done);
  dispatch_.submit_ask(message, context_.now + timeout, std::move(origin));
}

// In a slot nothing would end it any more.
void DataPlane::refuse_late(ReplyCallback& done) {
  try {
    done({Errc::stopped, "the node stopped", {}});
  } catch (...) {
    context_.listener->log(LogLevel::error, "api.callback_threw", "on a node that stops");
  }
}

void DataPlane::answer(const ReplyAddress& to, const ReplyView& reply) {
  dispatch_.answer(NodeKey{to.node}, to.slot, reply);
}

void DataPlane::answer_by_right(const ReplyAddress& to, const ReplyView& reply) {
  by_right_.push_back({to, reply.error, std::string(reply.text), std::string(reply.payload)});
  by_right_bytes_ += reply.text.size() + reply.payload.size();
  if (by_right_bytes_ > kByRightBytesMax) (void)release_answers();
}

bool DataPlane::release_answers() {
  const std::vector<Answer> answers = std::exchange(by_right_, {});
  by_right_bytes_ = 0;
  const bool holds = context_.strict_right->holds();
  for (const Answer& one : answers) {
    const ReplyView late{Errc::unknown_outcome, "the right to run the entity ended", {}};
    answer(one.to, holds ? ReplyView{one.error, one.text, one.payload} : late);
  }
  return !answers.empty();
}

void DataPlane::abandon(Errc code, std::string_view text) {
  (void)release_answers();
  abandoned_ = true;
  dispatch_.abandon(code, text);
}

// What waited for the right goes on before anything that comes later in the pass.
void DataPlane::set_strict_until(Time until) {
  context_.strict_right->set(until);
  std::size_t budget = kPassBudget;
  if (!held()) hosts_.run_ready(budget);
}

void DataPlane::retire(std::string_view why) {
  context_.strict_right->set(Time{});  // also for handlers that the pool still has
  hosts_.retire();                     // first: what has not begun has not happened
  for (const NodeInfo& node : links_.nodes()) dispatch_.on_gone(node.key, why);
  abandon(Errc::not_ready, why);
  // Their next frame would tell them, too; a worker that has work sends none for a while.
  front_.end_sessions(why);
}

void DataPlane::count_on(const DataPlane& former) {
  born_ = former.born_;
  for (std::size_t i = 0; i < context_.counts.size(); ++i) {
    context_.counts[i] += former.context_.counts[i];
  }
  dispatch_.count_on(former.dispatch_);
}

void DataPlane::report_tell(Errc outcome, const Outgoing& message) {
  if (outcome != Errc::ok) dispatch_.refuse(kNoNode, 0, outcome, message.type);
}

Marks DataPlane::marks() const {
  Marks all = context_.rare;
  for (const Type& type : dispatch_.types()) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      all.add(type.shards[i].region.marks());
      all.add(type.shards[i].route.marks());
    }
  }
  return all;
}

DataStatus DataPlane::status() {
  DataStatus status;
  status.shards_owned = dispatch_.owned();
  status.entities = hosts_.entities();
  status.sessions = front_.size();
  status.pending_asks = dispatch_.pending();
  status.unsettled = dispatch_.unsettled();
  for (std::size_t i = 0; i < kCountNames.size(); ++i) {
    status.counters[std::string(kCountNames[i])] = context_.counts[i];
  }
  dispatch_.add_counters(status.counters);
  const DataConfig& config = context_.config;
  status.counters["held_messages"] = dispatch_.held();
  status.counters["held_messages_limit"] = config.buffered_messages;
  status.counters["local_waiting"] = hosts_.ready();
  status.counters["local_waiting_limit"] = config.buffered_messages;
  status.counters["strict_waiting"] = hosts_.halted();
  status.counters["strict_waiting_limit"] = config.buffered_messages;
  status.counters["worker_waiting_bytes"] = hosts_.waiting_bytes();
  status.counters["worker_waiting_bytes_limit"] = config.buffered_bytes;
  status.counters["parked_bytes"] = dispatch_.parked_bytes();
  status.counters["parked_bytes_limit"] = config.buffered_bytes;
  status.counters["held_bytes"] = dispatch_.held_bytes();
  status.counters["held_bytes_limit"] = config.buffered_bytes;
  status.counters["pending_asks"] = dispatch_.pending();
  status.counters["pending_asks_limit"] = config.pending_asks;
  status.counters["link_waiting"] = links_.waiting();
  status.counters["link_waiting_limit"] = 2 * std::uint64_t{config.peer_credit} * links_.size();
  status.counters["link_waiting_streams"] = links_.waiting_streams();
  status.counters["early_replies"] = dispatch_.early_replies();
  status.counters["early_replies_limit"] = EarlyReplies::kNumberMax;
  status.counters["link_stream_bytes"] = links_.stream_bytes();
  status.counters["link_stream_bytes_limit"] = config.buffered_bytes * links_.size();
  status.counters["sessions"] = front_.size();
  status.counters["sessions_limit"] = config.sessions;
  status.counters["peer_sessions"] = peers_.size();
  status.counters["peer_sessions_limit"] = PeerDoor::kSessionsMax;
  return status;
}

}  // namespace shardbus::runtime
