#include "client/client_sessions.hpp"

#include <algorithm>
#include <utility>

namespace shardbus::client {
namespace {

constexpr Duration kHelloRetry = std::chrono::seconds(1);

}  // namespace

void ClientSessions::open(const std::string& address) {
  for (const auto& [peer, session] : sessions_) {
    if (session.address == address) return;
  }
  const std::uint64_t peer = ++peers_;
  Session& session = sessions_[peer];
  session.peer = peer;
  session.address = address;
  session.heard = now_;
  port_.open(peer, address);
}

void ClientSessions::keep_only(const std::vector<std::string>& addresses) {
  std::vector<std::uint64_t> unwanted;
  for (const auto& [peer, session] : sessions_) {
    const bool wanted =
        std::find(addresses.begin(), addresses.end(), session.address) != addresses.end();
    // One that still works may carry answers.
    if (!wanted && session.state != State::ready) unwanted.push_back(peer);
  }
  for (const std::uint64_t peer : unwanted) {
    port_.close(peer);
    sessions_.erase(peer);
  }
}

NodeKey ClientSessions::any() const {
  NodeKey best;
  std::uint64_t order = UINT64_MAX;
  for (const auto& [node, session] : by_node_) {
    if (session->leaving || session->order >= order) continue;
    order = session->order;
    best = node;
  }
  return best;
}

ClientSessions::Session* ClientSessions::find(std::uint64_t peer) {
  const auto found = sessions_.find(peer);
  return found == sessions_.end() ? nullptr : &found->second;
}

Errc ClientSessions::commit(Session& session, std::size_t before, bool counted) {
  const std::size_t bytes = session.batch.size() - before;
  Errc outcome = Errc::ok;
  if (bytes > session.frame_bytes) {
    outcome = Errc::too_large;
  } else if (session.waiting.empty() && (!counted || session.credit.covers(bytes))) {
    take(session, before, counted);
    return Errc::ok;
  } else if (session.waiting.size() >= settings_.waiting_limit) {
    outcome = Errc::overloaded;
  } else {
    session.waiting.push_back({session.batch.substr(before), counted});
  }
  session.batch.resize(before);
  return outcome;
}

// Takes the envelope that starts at `before` into the batch. A longer frame than the node takes
// would close the connection, so what was there before goes first where both do not fit.
void ClientSessions::take(Session& session, std::size_t before, bool counted) {
  if (counted) session.credit.use(session.batch.size() - before);
  if (session.batch.size() > session.frame_bytes) {
    std::string last = session.batch.substr(before);
    session.batch.resize(before);
    flush(session);
    session.batch = std::move(last);
  }
  ++session.batch_count;
  if (session.batch.size() >= wire::kFlushBytes || session.batch_count >= session.batch_max) {
    flush(session);
  }
}

void ClientSessions::flush(Session& session) {
  if (session.batch_count > 0) {
    if (!session.blocked.empty() || !port_.send(session.peer, session.batch)) {
      session.blocked.push_back(session.batch);
    }
    session.batch.clear();
    session.batch_count = 0;
    session.sent = now_;
  }
  while (!session.blocked.empty() && port_.send(session.peer, session.blocked.front())) {
    session.blocked.pop_front();
  }
}

void ClientSessions::flush() {
  for (auto& [node, session] : by_node_) flush(*session);
}

void ClientSessions::pump(Session& session) {
  while (!session.waiting.empty()) {
    const Waiting& next = session.waiting.front();
    if (next.counted && !session.credit.covers(next.envelope.size())) return;
    const std::size_t before = session.batch.size();
    session.batch.append(next.envelope);
    take(session, before, next.counted);
    session.waiting.pop_front();
  }
}

void ClientSessions::greet(Session& session) {
  session.state = State::greeting;
  session.next_hello = now_ + kHelloRetry;
  wire::Hello hello;
  hello.cluster = settings_.cluster;
  hello.role = wire::Role::client;
  hello.sender = settings_.sender;
  hello.max_batch = wire::kBatchMax;
  hello.wants_table = settings_.wants_table;
  std::string frame;
  wire::encode(frame, hello);
  (void)port_.send(session.peer, frame);
}

// Takes out the envelopes that the socket has not taken, in order.
std::vector<std::string> ClientSessions::take_unsent(Session& session) {
  std::vector<std::string> unsent;
  session.blocked.push_back(std::exchange(session.batch, {}));
  session.batch_count = 0;
  for (const std::string& frame : std::exchange(session.blocked, {})) {
    std::string_view rest = frame;
    wire::Envelope envelope;
    while (!rest.empty()) {
      const std::string_view before = rest;
      if (wire::next_envelope(rest, envelope) == Errc::malformed) break;
      unsent.emplace_back(before.substr(0, before.size() - rest.size()));
    }
  }
  for (Waiting& waiting : std::exchange(session.waiting, {})) {
    unsent.push_back(std::move(waiting.envelope));
  }
  return unsent;
}

void ClientSessions::break_session(Session& session) {
  const NodeKey node = session.node;
  const bool was_ready = session.state == State::ready;
  session.state = State::down;
  session.next_hello = kNever;
  const std::vector<std::string> unsent = take_unsent(session);
  const auto found = by_node_.find(node);
  // A second address of one node has a session that carries nothing.
  if (!was_ready || found == by_node_.end() || found->second != &session) return;
  by_node_.erase(found);
  events_.on_session_broken(node, unsent);
  for (auto& [peer, other] : sessions_) {
    if (other.state != State::ready || other.node != node) continue;
    by_node_[node] = &other;
    return events_.on_session_ready(node);
  }
}

void ClientSessions::on_connected(std::uint64_t peer) {
  Session* session = find(peer);
  if (session == nullptr) return;
  break_session(*session);
  session->refused = false;
  session->heard = now_;
  greet(*session);
}

void ClientSessions::on_disconnected(std::uint64_t peer) {
  Session* session = find(peer);
  if (session == nullptr) return;
  if (session->trouble.ok()) {
    session->trouble = Status(Errc::unreachable, "connection refused or lost");
  }
  break_session(*session);
}

void ClientSessions::on_frame(std::uint64_t peer, std::string_view frame) {
  wire::Envelope envelope;
  while (!frame.empty()) {
    Session* session = find(peer);
    if (session == nullptr) return;
    session->heard = now_;
    if (wire::next_envelope(frame, envelope) == Errc::malformed) return;
    on_session_envelope(*session, envelope);
  }
}

void ClientSessions::on_session_envelope(Session& session, const wire::Envelope& envelope) {
  switch (envelope.kind) {
    case wire::Kind::welcome: {
      wire::Welcome welcome;
      if (wire::decode(envelope, welcome) == Errc::ok) on_welcome(session, welcome);
      return;
    }
    case wire::Kind::credit: {
      wire::Credit credit;
      if (wire::decode(envelope, credit) != Errc::ok) return;
      session.credit.grant(credit.envelopes, credit.bytes);
      return pump(session);
    }
    case wire::Kind::no_session:
      if (session.state == State::greeting) return;
      break_session(session);
      return greet(session);
    case wire::Kind::reject: {
      wire::Reject reject;
      if (wire::decode(envelope, reject) == Errc::ok) on_reject(session, reject);
      return;
    }
    case wire::Kind::goodbye:
      session.leaving = true;
      return;
    case wire::Kind::pong:
      return;
    default:
      if (session.state == State::ready) events_.on_envelope(session.node, envelope);
  }
}

void ClientSessions::on_reject(Session& session, const wire::Reject& reject) {
  if (session.state != State::greeting) return;
  session.trouble = Status(static_cast<Errc>(reject.code), reject.text);
  session.refused = reject.retry_after_ms == 0;
  session.next_hello = now_ + std::max<Duration>(milliseconds(reject.retry_after_ms), kHelloRetry);
  port_.log(LogLevel::warn, "client.rejected",
            "address=" + session.address + " reason=" + session.trouble.message());
}

void ClientSessions::on_welcome(Session& session, const wire::Welcome& welcome) {
  if (session.state != State::greeting) return;
  session.state = State::ready;
  session.node = welcome.node.key;
  session.order = ++orders_;
  session.credit = {};
  session.credit.grant(welcome.credit.envelopes, welcome.credit.bytes);
  const auto limit = [](std::uint32_t told, std::uint32_t most) {
    return told == 0 ? most : std::min(told, most);  // 0: not told
  };
  session.frame_bytes = limit(welcome.limits.frame_bytes, wire::kFrameBytesMax);
  session.batch_max = limit(welcome.limits.batch, wire::kBatchMax);
  session.ping = milliseconds(std::max<std::uint32_t>(welcome.ping_ms, 10));
  session.next_hello = kNever;
  session.sent = now_;
  session.trouble = {};
  session.refused = false;
  session.leaving = false;
  if (by_node_.try_emplace(session.node, &session).second) events_.on_session_ready(session.node);
}

std::vector<std::string> ClientSessions::goodbye() {
  std::string frame;
  wire::encode_empty(frame, wire::Kind::goodbye);
  std::vector<std::string> all;
  for (auto& [peer, session] : sessions_) {
    if (session.state != State::ready) continue;
    flush(session);
    for (std::string& unsent : take_unsent(session)) all.push_back(std::move(unsent));
    (void)port_.send(peer, frame);
  }
  return all;
}

void ClientSessions::tick() {
  std::vector<std::uint64_t> silent;
  for (auto& [peer, session] : sessions_) {
    if (session.next_hello <= now_) greet(session);
    if (session.state != State::ready) continue;
    if (!session.blocked.empty()) flush(session);
    if (now_ - session.quiet_since() >= session.ping) {
      std::string frame;
      wire::encode_empty(frame, wire::Kind::ping);
      (void)port_.send(peer, frame);
      session.sent = now_;
      session.pinged = now_;
    }
    if (now_ - session.heard >= 4 * session.ping) silent.push_back(peer);
  }
  for (const std::uint64_t peer : silent) {
    Session& session = sessions_.at(peer);
    session.trouble = Status(Errc::unreachable, "silent for four ping intervals");
    session.heard = now_;
    break_session(session);
    port_.close(peer);
    port_.open(peer, session.address);
  }
}

Time ClientSessions::next_deadline() const {
  Time next = kNever;
  for (const auto& [peer, session] : sessions_) {
    next = std::min(next, session.next_hello);
    if (session.state != State::ready) continue;
    if (!session.blocked.empty()) next = std::min(next, now_ + milliseconds(5));
    next = std::min({next, session.quiet_since() + session.ping, session.heard + 4 * session.ping});
  }
  return next;
}

bool ClientSessions::refused_by_all() const {
  return !sessions_.empty() && std::all_of(sessions_.begin(), sessions_.end(),
                                           [](const auto& entry) { return entry.second.refused; });
}

std::map<std::string, Status> ClientSessions::troubles() const {
  std::map<std::string, Status> all;
  for (const auto& [peer, session] : sessions_) {
    if (session.state != State::ready) all[session.address] = session.trouble;
  }
  return all;
}

}  // namespace shardbus::client
