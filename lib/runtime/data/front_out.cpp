// What leaves for clients and workers: batches, credit, and the node's goodbye.
#include <algorithm>

#include "runtime/data/front_door.hpp"
#include "runtime/data/unsent_states.hpp"

namespace shardbus::runtime {
namespace {

constexpr Duration kBacklogPatience = milliseconds(5);
constexpr Duration kRetry = milliseconds(10);
constexpr Duration kQuiet = milliseconds(100);  // for what was sent before our goodbye arrived

}  // namespace

void FrontDoor::answer(std::uint64_t number, std::string_view opaque, const ReplyView& reply) {
  FrontSession* session = find(number);
  if (session == nullptr) return context_.count(Count::late_answers);
  if (session->in_flight > 0) --session->in_flight;
  (void)begin(*session);
  wire::encode(session->batch, wire::Reply{{opaque, kNoNode, 0},
                                           static_cast<std::uint16_t>(reply.error),
                                           reply.text,
                                           reply.payload});
  commit(*session);
}

void FrontDoor::send_error(FrontSession& session, const wire::Correlation& correlation, Errc code,
                           std::string_view text) {
  context_.count(Count::errors_answered);
  (void)begin(session);
  wire::encode(session.batch, wire::Reply{correlation, static_cast<std::uint16_t>(code), text, {}});
  commit(session);
}

void FrontDoor::on_fence_ok(const wire::FenceOk& answer) {
  const auto found = by_sender_.find(answer.sender);
  if (found == by_sender_.end()) return;
  (void)begin(*found->second);
  wire::encode(found->second->batch, answer);
  commit(*found->second);
}

bool FrontDoor::send_to_worker(std::uint64_t number, const wire::Message& message) {
  FrontSession* session = find(number);
  if (session == nullptr) return false;
  const std::size_t before = begin(*session);
  wire::encode(session->batch, message);
  const std::size_t size = session->batch.size() - before;
  if (!session->grant.covers(size)) {
    session->batch.resize(before);
    return false;
  }
  session->grant.use(size);
  commit(*session);
  return true;
}

void FrontDoor::send_raw(std::uint64_t number, std::string_view envelope) {
  FrontSession* session = find(number);
  if (session == nullptr) return;
  (void)begin(*session);
  session->batch.append(envelope);
  commit(*session);
}

void FrontDoor::send_state(std::uint64_t number, std::string_view envelope) {
  FrontSession* session = find(number);
  if (session == nullptr) return;
  (void)begin(*session);
  session->batch.append(envelope);
  session->batch_states += envelope.size();
  commit(*session);
}

std::vector<core::SavedEntity> FrontDoor::take_back_states(std::uint64_t number, const Type& type,
                                                           ShardId shard) {
  std::vector<core::SavedEntity> states;
  FrontSession* session = find(number);
  if (session == nullptr) return states;
  const auto of_shard = [&](const wire::Restore& state) {
    return state.type == type.name && shard_of(state.entity.id, type.shard_count) == shard;
  };
  for (FrontSession::Unsent& unsent : session->unsent) {
    const std::size_t before = unsent.frame.size();
    for (wire::Restore& state : take_unsent(unsent.frame, of_shard)) {
      states.push_back({std::move(state.entity.id), std::move(state.entity.state)});
    }
    unsent.states -= before - unsent.frame.size();
  }
  std::erase_if(session->unsent, [](const auto& unsent) { return unsent.frame.empty(); });
  return states;
}

std::size_t FrontDoor::begin(FrontSession& session) {
  if (!std::exchange(session.dirty, true)) dirty_.push_back(session.number);
  session.last_begin = session.batch.size();
  return session.last_begin;
}

void FrontDoor::commit(FrontSession& session) {
  if (session.batch.size() > wire::kFrameBytesMax && session.batch_count > 0) {  // one too many
    std::string last = session.batch.substr(session.last_begin);
    session.batch.resize(session.last_begin);
    const std::size_t states = std::min(session.batch_states, session.batch.size());
    const std::size_t more = session.batch_states - states;  // of the last one, if it is one
    session.batch_states = states;
    flush_session(session);
    session.batch = std::move(last);
    session.batch_states = more;
  }
  ++session.batch_count;
  if (session.batch_count >= session.max_batch || session.batch.size() >= wire::kFlushBytes) {
    flush_session(session);
  }
}

void FrontDoor::flush_session(FrontSession& session) {
  if (session.batch_count > 0) {
    const bool taken =
        session.unsent.empty() &&
        context_.wire->send_front(session.connection, session.delimited, session.batch);
    if (!taken) {
      session.unsent_bytes += session.batch.size() - session.batch_states;
      session.unsent.push_back({session.batch, session.batch_states});
    }
    session.batch.clear();
    session.batch_count = 0;
    session.batch_states = 0;
  }
  while (!session.unsent.empty() && context_.wire->send_front(session.connection, session.delimited,
                                                              session.unsent.front().frame)) {
    const FrontSession::Unsent& sent = session.unsent.front();
    session.unsent_bytes -= sent.frame.size() - sent.states;
    session.unsent.pop_front();
  }
}

void FrontDoor::send_now(std::uint32_t connection, bool delimited, const std::string& frame) {
  (void)context_.wire->send_front(connection, delimited, frame);
}

void FrontDoor::say_goodbye() {
  leaving_ = true;
  last_message_ = context_.now;
  for (auto& [number, session] : by_number_) {
    if (session->implicit) continue;
    (void)begin(*session);
    wire::encode_empty(session->batch, wire::Kind::goodbye);
    commit(*session);
  }
}

void FrontDoor::end_sessions(std::string_view why) {
  flush();
  std::string frame;
  wire::encode_no_session(frame, static_cast<std::uint16_t>(Errc::no_session), why);
  for (const auto& [number, session] : by_number_) {
    if (!session->implicit) send_now(session->connection, session->delimited, frame);
  }
}

void FrontDoor::dismiss(std::uint64_t number, std::string_view why) {
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return;
  FrontSession& session = *found->second;
  std::string frame;
  wire::encode_no_session(frame, static_cast<std::uint16_t>(Errc::no_session), why);
  send_now(session.connection, session.delimited, frame);
  close(session, false);
}

bool FrontDoor::parted() const {
  if (sessions_.empty()) return true;
  if (context_.now - last_message_ < kQuiet) return false;
  return std::all_of(by_number_.begin(), by_number_.end(), [this](const auto& entry) {
    const FrontSession& session = *entry.second;
    const bool idle = session.in_flight == 0 && session.unsent.empty();
    return idle || context_.wire->front_is_gone(session.connection);
  });
}

void FrontDoor::flush() {
  std::vector<std::uint64_t> later;
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    const auto found = by_number_.find(dirty_[i]);
    if (found == by_number_.end()) continue;
    FrontSession& session = *found->second;
    const bool renewed = renew_credit(session);
    flush_session(session);
    session.dirty = !renewed || !session.unsent.empty();
    if (session.dirty) later.push_back(session.number);
  }
  dirty_ = std::move(later);
  retry_ = dirty_.empty() ? kNever : context_.now + kRetry;
}

// Asks that are still open keep their share of the window, which bounds what one client has here.
// Only at the end of a pass, and later while input is left: what waits in the socket was sent on
// the credit of before. Renewed with every envelope, credit would never refuse a flood. False:
// later.
bool FrontDoor::renew_credit(FrontSession& session) {
  if (session.implicit || !session.credit.due(session.in_flight)) return true;
  if (!session.unsent.empty()) return false;  // who does not read gets nothing more to ask
  if (backlog_ && context_.now - session.renewed < kBacklogPatience) return false;
  session.renewed = context_.now;
  session.credit.renew(session.in_flight);
  (void)begin(session);
  wire::encode(session.batch,
               wire::Credit{session.credit.told_envelopes(), session.credit.told_bytes()});
  commit(session);
  return true;
}

}  // namespace shardbus::runtime
