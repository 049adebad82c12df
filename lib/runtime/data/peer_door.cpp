#include "runtime/data/peer_door.hpp"

#include <algorithm>
#include <utility>

#include "runtime/data/dispatch.hpp"
#include "runtime/data/links.hpp"
#include "shardbus/version.hpp"

namespace shardbus::runtime {
namespace {

constexpr std::uint64_t kCreditBytes = std::uint64_t{32} << 20;
constexpr std::uint32_t kRetryMs = 1000;
constexpr Duration kStrangerCounts = std::chrono::seconds(10);

}  // namespace

void PeerDoor::on_frame(std::uint32_t connection, std::string_view frame) {
  if (frame.empty()) return;  // keep-alive
  std::string_view rest = frame;
  wire::Envelope first;
  if (wire::next_envelope(rest, first) != Errc::ok) {
    context_.count(Count::malformed_frames);
    return;
  }
  if (first.kind == wire::Kind::hello) return on_hello(connection, first);
  const auto found = sessions_.find(connection);
  wire::Link link;
  if (first.kind != wire::Kind::link || wire::decode(first, link) != Errc::ok ||
      found == sessions_.end() || found->second.number != link.session) {
    context_.rare.hit_if(link.session != 0, Mark::session_old);
    return no_session(connection);
  }
  Session& session = found->second;
  if (link.sequence != session.expected) {
    // Frames were lost on the way; the sender has to know before anything newer is taken. Replies
    // to our asks may have been among them.
    const NodeKey from = session.node.key;
    context_.rare.hit(Mark::session_gap);
    close(from);
    no_session(connection);
    return context_.dispatch->on_peer_session_replaced(from);
  }
  if (std::exchange(session.told, context_.now) != context_.now) {
    context_.listener->on_traffic(session.node.key);
  }
  on_envelopes(connection, session, rest);
}

void PeerDoor::on_envelopes(std::uint32_t connection, Session& session, std::string_view frame) {
  wire::Envelope envelope;
  const std::uint64_t number = session.number;
  while (!frame.empty()) {
    const Errc outcome = wire::next_envelope(frame, envelope);
    ++session.expected;
    if (outcome == Errc::malformed) {
      context_.count(Count::malformed_frames);
      break;
    }
    if (outcome != Errc::ok) {
      context_.count(Count::unknown_kinds);
      continue;
    }
    if (wire::is_counted(envelope.kind)) (void)session.credit.receive(envelope.raw.size());
    on_envelope(connection, session, envelope);
    // Handling an envelope may end this very session (a death, a newer HELLO).
    const auto still = sessions_.find(connection);
    if (still == sessions_.end() || still->second.number != number) return;
  }
  if (session.credit.due()) tell_credit(connection, session);
}

// What wants an answer needs a way back, also to a node that the membership has not told of yet.
void PeerDoor::on_envelope(std::uint32_t connection, Session& session,
                           const wire::Envelope& envelope) {
  const NodeKey from = session.node.key;
  switch (envelope.kind) {
    case wire::Kind::tell:
    case wire::Kind::ask:
      context_.links->reach(session.node);
      context_.dispatch->on_node_message(from, envelope.message);
      return;
    case wire::Kind::reply:
    case wire::Kind::error:
      context_.dispatch->on_reply(envelope.reply);
      return;
    case wire::Kind::ping: {
      std::string frame;
      wire::encode_empty(frame, wire::Kind::pong);
      (void)context_.wire->send_peer(connection, frame);
      return;
    }
    case wire::Kind::goodbye: {
      std::string frame;
      wire::encode_empty(frame, wire::Kind::goodbye);
      (void)context_.wire->send_peer(connection, frame);
      session.parted = true;
      context_.dispatch->on_goodbye(from);  // a leaver's ends the session, another one's does not
      return;
    }
    default:
      context_.links->reach(session.node);
      context_.dispatch->on_node_envelope(from, envelope);
      return;
  }
}

bool PeerDoor::parted() const {
  // Sessions of strangers, and of nodes that are gone, have no end of their own.
  return std::all_of(sessions_.begin(), sessions_.end(), [this](const auto& entry) {
    return entry.second.parted || !context_.links->stays(entry.second.node.key);
  });
}

void PeerDoor::tell_credit(std::uint32_t connection, Session& session) {
  session.credit.renew();
  std::string frame;
  wire::encode(frame, wire::Credit{session.credit.told_envelopes(), session.credit.told_bytes()});
  (void)context_.wire->send_peer(connection, frame);
}

void PeerDoor::no_session(std::uint32_t connection) {
  context_.count(Count::no_session);
  std::string frame;
  wire::encode_no_session(frame, static_cast<std::uint16_t>(Errc::no_session), "greet first");
  (void)context_.wire->send_peer(connection, frame);
}

void PeerDoor::refuse(std::uint32_t connection, Errc code, std::string text,
                      std::uint32_t retry_ms) {
  context_.count(Count::rejected);
  std::string frame;
  wire::encode(frame, wire::Reject{static_cast<std::uint16_t>(code), std::move(text), retry_ms});
  (void)context_.wire->send_peer(connection, frame);
}

void PeerDoor::on_hello(std::uint32_t connection, const wire::Envelope& envelope) {
  wire::Hello hello;
  if (wire::decode(envelope, hello) != Errc::ok || hello.role != wire::Role::node) {
    context_.count(Count::malformed_frames);
    return refuse(connection, Errc::malformed,
                  "this is the port for other nodes; clients and workers use the listen address",
                  kRetryMs);
  }
  if (hello.major != kProtocolMajor) {
    return refuse(connection, Errc::version_mismatch,
                  "this node speaks protocol " + std::to_string(kProtocolMajor) + ", HELLO says " +
                      std::to_string(hello.major),
                  kRetryMs);
  }
  if (hello.cluster != context_.config.cluster) {
    return refuse(connection, Errc::cluster_mismatch,
                  "this node is of cluster \"" + context_.config.cluster + "\", HELLO says \"" +
                      hello.cluster + "\"",
                  kRetryMs);
  }
  if (hello.to != kNoNode && hello.to != context_.self()) {
    // The greeter's session with this incarnation must not end for it.
    context_.rare.hit(Mark::session_wrong_node);
    return refuse(connection, Errc::no_such_node, "another incarnation has this address now",
                  kRetryMs);
  }
  if (std::string text = objection(hello.node); !text.empty()) {
    context_.rare.hit(Mark::session_over);
    return refuse(connection, Errc::stale_incarnation, std::move(text), kRetryMs);
  }
  if (!make_room(hello.node.key)) {
    return refuse(connection, Errc::busy,
                  "this node has " + std::to_string(kSessionsMax) + " sessions with other nodes",
                  kRetryMs);
  }
  open(connection, hello.node);
}

std::string PeerDoor::objection(const NodeInfo& node) const {
  if (context_.dispatch->is_gone(node.key)) {
    return "this incarnation of " + node.name + " is not in the cluster any more";
  }
  const NodeInfo* known = context_.links->info(context_.links->find_by_name(node.name));
  bool newer = known != nullptr && known->incarnation > node.incarnation;
  for (const auto& [key, connection] : connections_) {
    const Session& session = sessions_.at(connection);
    // Anybody may claim an incarnation: of a stranger's it counts while it speaks.
    const bool speaks = context_.now - session.told < kStrangerCounts;
    if (!speaks && !context_.links->knows(key)) continue;
    const NodeInfo& other = session.node;
    newer = newer || (other.name == node.name && other.incarnation > node.incarnation);
  }
  return newer ? "a newer incarnation of " + node.name + " is known" : std::string();
}

// Sessions of nodes that are no members (any more) have no end of their own: they make room.
bool PeerDoor::make_room(NodeKey node) {
  if (connections_.contains(node) || connections_.size() < kSessionsMax) return true;
  const auto stranger =
      std::find_if(connections_.begin(), connections_.end(),
                   [this](const auto& entry) { return !context_.links->knows(entry.first); });
  if (stranger == connections_.end()) return false;
  sessions_.erase(stranger->second);
  connections_.erase(stranger);
  return true;
}

void PeerDoor::open(std::uint32_t connection, const NodeInfo& node) {
  const auto before = sessions_.find(connection);
  if (before != sessions_.end() && before->second.node.key != node.key) {
    close(before->second.node.key);
  } else if (before != sessions_.end() && before->second.expected == 1) {
    // Repeated while the WELCOME was on its way: with another session that one would be stale.
    return welcome(connection, before->second);
  }
  const auto older = connections_.find(node.key);
  if (older != connections_.end()) {
    if (older->second != connection) sessions_.erase(older->second);
    // Replies that the older session carried may be lost.
    context_.rare.hit(Mark::session_replaced);
    context_.dispatch->on_peer_session_replaced(node.key);
  }
  connections_[node.key] = connection;
  Session& session = sessions_[connection];
  session = {node, context_.random_number(), 1,
             core::CreditGrant(context_.config.peer_credit, kCreditBytes)};
  session.told = context_.now;
  welcome(connection, session);
  context_.listener->on_traffic(node.key);
}

void PeerDoor::welcome(std::uint32_t connection, const Session& session) {
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
  std::string frame;
  wire::encode(frame, answer);
  (void)context_.wire->send_peer(connection, frame);
}

void PeerDoor::close(NodeKey node) {
  const auto found = connections_.find(node);
  if (found == connections_.end()) return;
  sessions_.erase(found->second);
  connections_.erase(found);
}

}  // namespace shardbus::runtime
