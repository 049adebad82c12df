#include "client/client_sessions.hpp"

#include <algorithm>

#include "wire/limits.hpp"

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
    if (session->order >= order) continue;
    order = session->order;
    best = node;
  }
  return best;
}

ClientSessions::Session* ClientSessions::find(std::uint64_t peer) {
  const auto found = sessions_.find(peer);
  return found == sessions_.end() ? nullptr : &found->second;
}

bool ClientSessions::commit(Session& session, std::size_t before, bool counted) {
  const bool may_go =
      session.waiting.empty() && (!counted || session.credit.covers(session.batch.size() - before));
  if (may_go) {
    take(session, before, counted);
    return true;
  }
  const bool full = session.waiting.size() >= settings_.waiting_limit;
  if (!full) session.waiting.push_back({session.batch.substr(before), counted});
  session.batch.resize(before);
  return !full;
}

void ClientSessions::take(Session& session, std::size_t before, bool counted) {
  if (counted) session.credit.use(session.batch.size() - before);
  ++session.batch_count;
  if (session.batch.size() >= wire::kFlushBytes || session.batch_count >= wire::kBatchMax) {
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

void ClientSessions::break_session(Session& session) {
  const bool was_ready = session.state == State::ready;
  const NodeKey node = session.node;
  session.state = State::down;
  session.next_hello = kNever;
  session.batch.clear();
  session.batch_count = 0;
  session.blocked.clear();
  session.waiting.clear();
  if (!was_ready) return;
  by_node_.erase(node);
  events_.on_session_broken(node);
}

void ClientSessions::on_connected(std::uint64_t peer) {
  Session* session = find(peer);
  if (session == nullptr) return;
  break_session(*session);
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
      if (wire::decode(envelope, reject) != Errc::ok) return;
      session.trouble = Status(static_cast<Errc>(reject.code), reject.text);
      session.next_hello =
          now_ + std::max<Duration>(milliseconds(reject.retry_after_ms), kHelloRetry);
      return;
    }
    case wire::Kind::pong:
      return;
    default:
      if (session.state == State::ready) events_.on_envelope(session.node, envelope);
  }
}

void ClientSessions::on_welcome(Session& session, const wire::Welcome& welcome) {
  if (session.state != State::greeting) return;
  session.state = State::ready;
  session.node = welcome.node.key;
  session.order = ++orders_;
  session.credit = {};
  session.credit.grant(welcome.credit.envelopes, welcome.credit.bytes);
  session.ping = milliseconds(std::max<std::uint32_t>(welcome.ping_ms, 10));
  session.next_hello = kNever;
  session.sent = now_;
  session.trouble = {};
  by_node_[session.node] = &session;
  events_.on_session_ready(session.node);
}

void ClientSessions::goodbye() {
  std::string frame;
  wire::encode_empty(frame, wire::Kind::goodbye);
  for (auto& [node, session] : by_node_) {
    flush(*session);
    (void)port_.send(session->peer, frame);
  }
}

void ClientSessions::tick() {
  std::vector<std::uint64_t> silent;
  for (auto& [peer, session] : sessions_) {
    if (session.next_hello <= now_) greet(session);
    if (session.state != State::ready) continue;
    if (!session.blocked.empty()) flush(session);
    if (now_ - session.sent >= session.ping) {
      std::string frame;
      wire::encode_empty(frame, wire::Kind::ping);
      (void)port_.send(peer, frame);
      session.sent = now_;
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
    next = std::min({next, session.sent + session.ping, session.heard + 4 * session.ping});
  }
  return next;
}

std::map<std::string, Status> ClientSessions::troubles() const {
  std::map<std::string, Status> all;
  for (const auto& [peer, session] : sessions_) {
    if (session.state != State::ready) all[session.address] = session.trouble;
  }
  return all;
}

}  // namespace shardbus::client
