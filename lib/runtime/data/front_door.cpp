#include "runtime/data/front_door.hpp"

#include <algorithm>

#include "runtime/data/hosts.hpp"
#include "runtime/data/links.hpp"
#include "shardbus/version.hpp"

namespace shardbus::runtime {
namespace {

constexpr std::uint64_t kCreditBytes = std::uint64_t{16} << 20;
constexpr std::size_t kUnsentBytesMax = std::size_t{8} << 20;
constexpr std::uint32_t kStrikesMax = 1000;
constexpr std::uint32_t kRetryMs = 1000;
constexpr std::uint32_t kBadFramesMax = 16;
constexpr Duration kTableDelay = std::chrono::milliseconds(10);
constexpr Duration kImplicitIdle = std::chrono::seconds(60);
constexpr Duration kLastWords = milliseconds(100);  // so that NO_SESSION arrives before the cut
constexpr Duration kSweep = milliseconds(100);
constexpr milliseconds kLongestAsk{wire::kTimeLeftMsMax};

bool only_workers_send(wire::Kind kind) {
  return kind == wire::Kind::reply || kind == wire::Kind::error || kind == wire::Kind::released ||
         kind == wire::Kind::offer;
}

}  // namespace

FrontSession* FrontDoor::find(std::uint64_t number) {
  if (last_ != nullptr && last_->number == number) return last_;
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return nullptr;
  last_ = found->second;
  return last_;
}

void FrontDoor::on_frame(std::uint32_t connection, bool delimited, std::string_view frame) {
  const auto found = sessions_.find(connection);
  FrontSession* session = found == sessions_.end() ? nullptr : found->second.get();
  if (session != nullptr) session->heard = context_.now;
  wire::Envelope envelope;
  std::uint32_t count = 0;
  while (!frame.empty()) {
    const Errc outcome = wire::next_envelope(frame, envelope);
    if (outcome == Errc::ok && ++count <= wire::kBatchMax) {
      on_envelope(connection, delimited, session, envelope);
      // A frame may close its own session (goodbye, too many strikes).
      if (session == nullptr && count > 0 && !sessions_.contains(connection)) {
        if (envelope.kind != wire::Kind::who) return;
      }
      continue;
    }
    if (outcome == Errc::ok || outcome == Errc::malformed) frame = {};
    refuse_bytes(connection, delimited, session, envelope, outcome);
  }
}

// `outcome`: why the envelope cannot be taken; ok where its frame has too many.
void FrontDoor::refuse_bytes(std::uint32_t connection, bool delimited, FrontSession* session,
                             const wire::Envelope& envelope, Errc outcome) {
  wire::Correlation to = envelope.correlation;
  if (outcome == Errc::unknown_kind) {
    context_.count(Count::unknown_kinds);
    if (to.none()) return;
  } else {
    context_.count(Count::malformed_frames);
  }
  std::string_view text;
  if (outcome == Errc::ok || outcome == Errc::malformed) {
    if (outcome == Errc::ok || envelope.kind != wire::Kind::ask) to = {};
    outcome = Errc::malformed;
    text = "not a valid envelope";
  }
  if (session != nullptr) return send_error(*session, to, outcome, text);
  std::string answer;
  wire::encode(answer, wire::Reply{to, static_cast<std::uint16_t>(outcome), text, {}});
  send_now(connection, delimited, answer);
}

void FrontDoor::on_bad_frame(std::uint32_t connection, std::size_t frames) {
  context_.count(Count::bad_frames);
  if (offenders_.size() > context_.config.sessions) offenders_.clear();
  std::uint32_t& times = offenders_[connection];
  ++times;
  if (times == 1) {
    std::string answer;
    wire::encode(answer,
                 wire::Reply{{},
                             static_cast<std::uint16_t>(Errc::bad_frame),
                             "a message is one frame, or an empty frame and one; this had " +
                                 std::to_string(frames),
                             {}});
    send_now(connection, false, answer);
  }
  if (times < kBadFramesMax) return;
  offenders_.erase(connection);
  context_.count(Count::kicked);
  const auto found = sessions_.find(connection);
  if (found != sessions_.end()) return close(*found->second, true);
  context_.wire->kick_front(connection);
}

void FrontDoor::on_envelope(std::uint32_t connection, bool delimited, FrontSession*& session,
                            const wire::Envelope& envelope) {
  if (envelope.kind == wire::Kind::hello) return on_hello(connection, delimited, session, envelope);
  if (envelope.kind == wire::Kind::who) return send_here(connection, delimited);
  if (session == nullptr) return on_stranger(connection, delimited, session, envelope);
  session->delimited = delimited;
  on_session_envelope(session, envelope);
}

void FrontDoor::on_stranger(std::uint32_t connection, bool delimited, FrontSession*& session,
                            const wire::Envelope& envelope) {
  const bool message = envelope.kind == wire::Kind::tell || envelope.kind == wire::Kind::ask;
  if (!message || (envelope.message.flags & wire::kFlagGreeted) != 0) {
    if (envelope.kind == wire::Kind::goodbye) return;
    context_.count(Count::no_session);
    std::string frame;
    wire::encode_no_session(frame, static_cast<std::uint16_t>(Errc::no_session), "greet first");
    return send_now(connection, delimited, frame);
  }
  if (sessions_.size() >= context_.config.sessions) {
    context_.count(Count::refused_sessions);
    std::string frame;
    wire::encode(frame, wire::Reply{envelope.correlation,
                                    static_cast<std::uint16_t>(Errc::busy),
                                    "sessions are at their limit",
                                    {}});
    return send_now(connection, delimited, frame);
  }
  session = &open(connection, delimited);
  session->implicit = true;
  session->credit = core::CreditGrant(UINT64_MAX / 4, UINT64_MAX / 4);
  on_session_envelope(session, envelope);
}

void FrontDoor::on_session_envelope(FrontSession*& session, const wire::Envelope& envelope) {
  if (session->role != wire::Role::worker && only_workers_send(envelope.kind)) {
    return send_error(*session, envelope.correlation, Errc::not_authorised,
                      "this kind is for workers");
  }
  switch (envelope.kind) {
    case wire::Kind::tell:
    case wire::Kind::ask:
      return on_message(session, envelope);
    case wire::Kind::reply:
    case wire::Kind::error: {
      const wire::Reply& reply = envelope.reply;
      (void)session->credit.receive(envelope.raw.size());
      (void)begin(*session);  // for its credit
      if (!reply.correlation.is_port()) return context_.count(Count::late_answers);
      return context_.dispatch->answer(reply.correlation.node, reply.correlation.slot,
                                       {static_cast<Errc>(reply.code), reply.text, reply.payload});
    }
    case wire::Kind::ping: {
      (void)begin(*session);
      wire::encode_empty(session->batch, wire::Kind::pong);
      return commit(*session);
    }
    case wire::Kind::credit: {
      wire::Credit credit;
      if (wire::decode(envelope, credit) != Errc::ok) break;
      session->grant.grant(credit.envelopes, credit.bytes);
      return context_.hosts->on_worker_credit(session->number);
    }
    case wire::Kind::fence: {
      wire::Fence fence;
      if (wire::decode(envelope, fence) != Errc::ok || session->sender == 0) break;
      fence.sender = session->sender;
      fence.reply = {};
      return context_.dispatch->on_client_fence(fence);
    }
    case wire::Kind::released: {
      wire::Released released;
      if (wire::decode(envelope, released) != Errc::ok) break;
      return context_.hosts->on_released(session->number, std::move(released));
    }
    case wire::Kind::offer: {
      std::vector<HostedType> types;
      if (wire::decode_offer(envelope, types) != Errc::ok) break;
      const bool goes = types.empty() || refuses_workers_;
      if (goes) return context_.hosts->give_back(session->number);
      return context_.hosts->add_worker(session->number, session->label, types);
    }
    case wire::Kind::goodbye:
      close(*session, false);
      session = nullptr;
      return;
    case wire::Kind::pong:
      return;
    default:
      // Known kinds that only nodes may send; a client has no right to them.
      return send_error(*session, envelope.correlation, Errc::not_authorised,
                        "this kind is not for clients");
  }
  context_.count(Count::malformed_frames);
  send_error(*session, envelope.correlation, Errc::malformed, "");
}

bool FrontDoor::over_credit(FrontSession*& session, const wire::Envelope& envelope) {
  const bool within = session->implicit ? session->in_flight < wire::kImplicitAsksMax
                                        : session->credit.receive(envelope.raw.size());
  if (within) return false;
  context_.count(Count::over_credit);
  if (envelope.kind == wire::Kind::ask) {
    send_error(*session, envelope.correlation, Errc::overloaded,
               session->implicit ? "64 asks are in flight; greet for more" : "over the credit");
  } else {
    context_.count(Count::tells_dropped);
  }
  if (!session->implicit && ++session->strikes >= kStrikesMax) {
    context_.count(Count::kicked);
    context_.listener->log(LogLevel::warn, "front.kicked",
                           "client=" + session->label + " reason=over_credit");
    std::string frame;
    wire::encode_no_session(frame, static_cast<std::uint16_t>(Errc::overloaded),
                            "the session went over its credit again and again");
    send_now(session->connection, session->delimited, frame);
    kicks_.emplace_back(context_.now + kLastWords, session->connection);
    close(*session, false);
    session = nullptr;
    return true;
  }
  // What was refused is done with: without new credit the session could never go on.
  (void)begin(*session);  // renewed at the end of the pass, or a flood would never be over it
  return true;
}

void FrontDoor::on_message(FrontSession*& session, const wire::Envelope& envelope) {
  const wire::Message& message = envelope.message;
  if (leaving_) last_message_ = context_.now;
  if (over_credit(session, envelope)) return;
  (void)begin(*session);  // for its credit
  const bool ask = message.kind == wire::Kind::ask;
  if (message.correlation.is_port() || (ask && message.correlation.none())) {
    return send_error(*session, message.correlation, Errc::malformed,
                      "a client's correlation is an integer, a string or bytes");
  }
  dispatch(*session, message);
}

void FrontDoor::dispatch(FrontSession& session, const wire::Message& message) {
  const bool direct = session.wants_table && message.generation.known();
  wire::Moved moved;
  if (message.kind == wire::Kind::tell) {
    dispatch_tell(session, message, direct ? &moved : nullptr);
  } else {
    dispatch_ask(session, message, direct ? &moved : nullptr);
  }
  if (!moved.entry.generation.known()) return;
  if (const NodeInfo* info = context_.links->info(moved.entry.owner)) moved.front = info->front;
  if (moved.front.empty()) return;
  (void)begin(session);
  wire::encode(session.batch, moved);
  commit(session);
}

// `moved`: null unless the client routes by the table; filled where it is wrong about the owner.
void FrontDoor::dispatch_tell(FrontSession& session, const wire::Message& message,
                              wire::Moved* moved) {
  wire::Message told = message;
  told.correlation = {};
  AskOrigin none;
  if (moved != nullptr && context_.dispatch->submit_direct(session.sender, told, kNever, none,
                                                           moved) == Dispatch::Direct::taken) {
    return;
  }
  const std::uint64_t client = session.wants_table ? session.sender : 0;
  const Errc outcome = context_.dispatch->submit_tell(told, client);
  if (outcome != Errc::ok) context_.dispatch->refuse(kNoNode, 0, outcome, message.type);
}

void FrontDoor::dispatch_ask(FrontSession& session, const wire::Message& message,
                             wire::Moved* moved) {
  const milliseconds left =
      message.time_left_ms == 0 ? kDefaultAskTimeout : milliseconds(message.time_left_ms);
  const Time deadline = context_.now + std::min(left, kLongestAsk);
  AskOrigin origin;
  origin.session = session.number;
  origin.opaque = message.correlation.opaque;
  ++session.in_flight;
  if (moved != nullptr &&
      context_.dispatch->submit_direct(session.sender, message, deadline, origin, moved) ==
          Dispatch::Direct::taken) {
    return;
  }
  const std::uint64_t client = session.wants_table ? session.sender : 0;
  context_.dispatch->submit_ask(message, deadline, std::move(origin), client);
}

// --- sessions ---

FrontSession& FrontDoor::open(std::uint32_t connection, bool delimited) {
  auto& slot = sessions_[connection];
  slot = std::make_unique<FrontSession>();
  slot->connection = connection;
  slot->delimited = delimited;
  slot->number = context_.random_number();
  slot->heard = context_.now;
  by_number_[slot->number] = slot.get();
  return *slot;
}

void FrontDoor::close(FrontSession& session, bool kick) {
  const std::uint64_t number = session.number;
  const std::uint64_t sender = session.sender;
  const std::uint32_t connection = session.connection;
  const bool worker = session.role == wire::Role::worker;
  std::vector<std::string> unsent;
  for (FrontSession::Unsent& one : session.unsent) unsent.push_back(std::move(one.frame));
  unsent.push_back(std::move(session.batch));
  for (const std::string& frame : unsent) context_.dispatch->note_lost_tells(frame);
  if (kick) context_.wire->kick_front(connection);
  last_ = nullptr;
  std::erase(dirty_, number);
  const auto named = by_sender_.find(sender);
  const bool last = named == by_sender_.end() || named->second == &session;
  if (last) by_sender_.erase(sender);
  by_number_.erase(number);
  sessions_.erase(connection);
  if (worker) context_.hosts->remove_worker(number, std::move(unsent));
  if (last) context_.dispatch->forget_sender(sender);
}

// Code 0: nothing stands against it. A time of 0 to retry after: the settings have to change.
wire::Reject FrontDoor::objection(const wire::Hello& hello, const FrontSession* session) {
  const auto reject = [](Errc code, std::string text, std::uint32_t retry_ms = 0) {
    return wire::Reject{static_cast<std::uint16_t>(code), std::move(text), retry_ms};
  };
  if (hello.major != kProtocolMajor) {
    return reject(Errc::version_mismatch, "this node speaks protocol " +
                                              std::to_string(kProtocolMajor) + ", HELLO says " +
                                              std::to_string(hello.major));
  }
  if (!hello.cluster.empty() && hello.cluster != context_.config.cluster) {
    return reject(Errc::cluster_mismatch, "this node is of cluster \"" + context_.config.cluster +
                                              "\", HELLO says \"" + hello.cluster + "\"");
  }
  // A sender is known by its number; a client with a node's would speak in that node's name.
  if (hello.sender == context_.self().value || context_.links->knows(NodeKey{hello.sender})) {
    return reject(Errc::invalid_argument, "this sender number is a node's; pick another one");
  }
  if (hello.role == wire::Role::node) {
    return reject(Errc::invalid_argument, "nodes greet at " + context_.config.self.peer);
  }
  const bool leaves = leaving_ || (refuses_workers_ && hello.role == wire::Role::worker);
  if (leaves) return reject(Errc::not_ready, "this node leaves the cluster", kRetryMs);
  if (session == nullptr && sessions_.size() >= context_.config.sessions) {
    context_.count(Count::refused_sessions);
    return reject(Errc::busy, "sessions are at their limit", kRetryMs);
  }
  if (hello.role != wire::Role::worker) return {};
  std::string mismatch = context_.hosts->mismatch(hello.types);
  return mismatch.empty() ? wire::Reject{} : reject(Errc::config_mismatch, std::move(mismatch));
}

void FrontDoor::on_hello(std::uint32_t connection, bool delimited, FrontSession*& session,
                         const wire::Envelope& envelope) {
  wire::Hello hello;
  wire::Reject rejection{static_cast<std::uint16_t>(Errc::malformed), "HELLO cannot be read", 0};
  if (wire::decode(envelope, hello) == Errc::ok) {
    rejection = objection(hello, session);
  } else {
    context_.count(Count::malformed_frames);
  }
  if (rejection.code != 0) {
    context_.count(Count::rejected);
    std::string frame;
    wire::encode(frame, rejection);
    return send_now(connection, delimited, frame);
  }
  if (session != nullptr && !session->implicit && session->sender == hello.sender &&
      session->role == hello.role) {
    return welcome(*session);  // a repeated HELLO
  }
  if (session != nullptr) close(*session, false);  // another one begins
  session = &open(connection, delimited);
  session->role = hello.role;
  session->sender = hello.sender;
  session->label =
      hello.node.name.empty() ? "client:" + std::to_string(hello.sender) : hello.node.name;
  session->wants_table = hello.wants_table;
  session->max_batch = std::clamp<std::uint32_t>(hello.max_batch, 1, wire::kBatchMax);
  session->credit = core::CreditGrant(context_.config.client_credit, kCreditBytes);
  session->grant.grant(hello.credit.envelopes, hello.credit.bytes);
  if (session->sender != 0) by_sender_[session->sender] = session;
  welcome(*session);
  if (session->role == wire::Role::worker) {
    next_sweep_ = context_.now;  // it may be the successor of one that died without a word
    context_.hosts->add_worker(session->number, session->label, hello.types);
  }
}

void FrontDoor::welcome(FrontSession& session) {
  wire::Welcome answer;
  answer.session = session.number;
  answer.node = context_.config.self;
  answer.cluster = context_.config.cluster;
  answer.cluster_id = context_.cluster_id;
  answer.credit = {session.credit.told_envelopes(), session.credit.told_bytes()};
  answer.limits = {wire::kFrameBytesMax, wire::kBatchMax, wire::kEntityIdBytesMax,
                   wire::kPayloadBytesMax};
  answer.ping_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<milliseconds>(context_.config.ping_interval).count());
  if (session.role == wire::Role::worker) {
    answer.worker_lease_ms = static_cast<std::uint32_t>(
        std::chrono::duration_cast<milliseconds>(context_.config.worker_lease).count());
  }
  (void)begin(session);
  wire::encode(session.batch, answer);
  commit(session);
  if (session.wants_table) send_table(session);
}

void FrontDoor::send_here(std::uint32_t connection, bool delimited) {
  std::string frame;
  wire::encode(frame,
               wire::Here{context_.config.cluster, context_.cluster_id, context_.config.self});
  send_now(connection, delimited, frame);
}

void FrontDoor::send_table(FrontSession& session) {
  wire::ClientTable table;
  table.table = context_.dispatch->table();
  table.nodes = context_.links->nodes();
  table.nodes.push_back(context_.config.self);
  std::string envelope;
  wire::encode(envelope, table);
  if (envelope.size() > wire::kFrameBytesMax) {  // without rows the client goes through any node
    context_.listener->log(LogLevel::warn, "front.table_too_large",
                           "client=" + session.label + " bytes=" + std::to_string(envelope.size()));
    table.table.types.clear();
    envelope.clear();
    wire::encode(envelope, table);
  }
  send_raw(session.number, envelope);
}

void FrontDoor::on_table() {
  if (table_due_ == kNever) table_due_ = context_.now + kTableDelay;
}

void FrontDoor::tick() {
  if (table_due_ <= context_.now) {
    table_due_ = kNever;
    for (auto& [number, session] : by_number_) {
      if (session->wants_table && !leaving_) send_table(*session);
    }
  }
  while (!kicks_.empty() && kicks_.front().first <= context_.now) {
    context_.wire->kick_front(kicks_.front().second);
    kicks_.pop_front();
  }
  if (next_sweep_ > context_.now) return;
  next_sweep_ = context_.now + std::min<Duration>(kSweep, context_.config.ping_interval / 4);
  const bool scarce = sessions_.size() > context_.config.sessions / 2;
  std::vector<FrontSession*> gone;
  for (auto& [number, session] : by_number_) {
    const Duration patience = session->implicit ? kImplicitIdle : 4 * context_.config.ping_interval;
    const bool silent = context_.now - session->heard > patience && session->in_flight == 0;
    const bool deaf = session->unsent_bytes > kUnsentBytesMax;
    if (deaf) context_.count(Count::kicked);
    // ZeroMQ tells nobody that a peer of a ROUTER is gone. Asks wait for a worker; others may leave
    // without a word, and are looked at when room gets scarce.
    const bool worker = session->role == wire::Role::worker;
    const bool cut = (worker || scarce) && context_.wire->front_is_gone(session->connection);
    if (silent || deaf || cut || (worker && context_.now - session->heard > patience)) {
      const char* reason = deaf ? "does_not_read" : cut ? "disconnected" : "silent";
      context_.listener->log(LogLevel::info, "front.closed",
                             "client=" + session->label + " reason=" + reason);
      gone.push_back(session);
    }
  }
  for (FrontSession* session : gone) close(*session, true);
}

Time FrontDoor::next_deadline() const {
  const Time kick = kicks_.empty() ? kNever : kicks_.front().first;
  return std::min({table_due_, kick, retry_, by_number_.empty() ? kNever : next_sweep_});
}

}  // namespace shardbus::runtime
