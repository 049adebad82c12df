// A client's sessions with nodes: one DEALER each, greeted, with credit and one open batch.
//
// Pure of sockets: frames leave through ClientPort. A session that breaks ends what was sent on it
// in unknown_outcome; it greets again by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"
#include "core/delivery/credit.hpp"
#include "shardbus/message.hpp"
#include "shardbus/options.hpp"
#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace shardbus::client {

// The client's exit to the network. No call blocks.
class ClientPort {
 public:
  virtual ~ClientPort() = default;
  virtual void open(std::uint64_t peer, const std::string& address) = 0;
  virtual void close(std::uint64_t peer) = 0;
  virtual bool send(std::uint64_t peer, std::string_view frame) = 0;
  virtual void log(LogLevel level, std::string_view event, std::string text) = 0;
};

class SessionEvents {
 public:
  virtual ~SessionEvents() = default;
  virtual void on_session_ready(NodeKey node) = 0;
  // What was sent to `node` and not answered is of unknown outcome. `unsent`: envelopes that waited
  // for credit or for room, in order; they may go another way.
  virtual void on_session_broken(NodeKey node, const std::vector<std::string>& unsent) = 0;
  virtual void on_envelope(NodeKey node, const wire::Envelope& envelope) = 0;
};

struct SessionSettings {
  std::string cluster;
  std::uint64_t sender = 0;
  bool wants_table = true;
  std::uint32_t waiting_limit = 65536;  // envelopes without credit or session, per node
};

class ClientSessions {
 public:
  ClientSessions(SessionSettings settings, ClientPort& port, SessionEvents& events)
      : settings_(std::move(settings)), port_(port), events_(events) {}

  void begin(Time now) { now_ = now; }
  // Starts a session with the node at `address`, if there is none yet.
  void open(const std::string& address);
  // Ends sessions with nodes that are not in `addresses`.
  void keep_only(const std::vector<std::string>& addresses);
  [[nodiscard]] bool ready(NodeKey node) const { return by_node_.contains(node); }
  // Any ready session whose node stays, the oldest first; kNoNode if there is none.
  [[nodiscard]] NodeKey any() const;

  // Errors: unreachable (no session with this node), overloaded (its queue is full), too_large.
  template <class E>
  Errc send(NodeKey node, const E& envelope, bool counted) {
    const auto found = by_node_.find(node);
    if (found == by_node_.end()) return Errc::unreachable;
    Session& session = *found->second;
    const std::size_t before = session.batch.size();
    wire::encode(session.batch, envelope);
    return commit(session, before, counted);
  }
  void flush();
  // Says that this client is gone; returns what was not sent.
  std::vector<std::string> goodbye();

  // --- events of the transport ---
  void on_connected(std::uint64_t peer);
  void on_disconnected(std::uint64_t peer);
  void on_frame(std::uint64_t peer, std::string_view frame);

  void tick();
  [[nodiscard]] Time next_deadline() const;
  // Why a node at an address refused us or cannot be reached; empty where nothing is known.
  [[nodiscard]] std::map<std::string, Status> troubles() const;
  // True: every node has refused us for good.
  [[nodiscard]] bool refused_by_all() const;

 private:
  enum class State : std::uint8_t { down, greeting, ready };
  struct Waiting {
    std::string envelope;
    bool counted = true;
  };
  struct Session {
    std::uint64_t peer = 0;
    std::string address;
    State state = State::down;
    NodeKey node;
    std::uint64_t order = 0;
    std::size_t frame_bytes = wire::kFrameBytesMax;
    std::uint32_t batch_max = wire::kBatchMax;
    core::CreditUse credit;
    Duration ping{};
    std::string batch;
    std::uint32_t batch_count = 0;
    std::deque<std::string> blocked;
    std::deque<Waiting> waiting;
    Time heard{}, sent{}, pinged{};
    Time next_hello = kNever;
    Status trouble;
    bool leaving = false;  // the node said goodbye: it answers what it has
    bool refused = false;  // for good: the node would have to be changed
    // Whoever sends without pause hears nothing by that, and must ask as well.
    [[nodiscard]] Time quiet_since() const { return std::max(std::min(sent, heard), pinged); }
  };

  Session* find(std::uint64_t peer);
  Errc commit(Session& session, std::size_t before, bool counted);
  void take(Session& session, std::size_t before, bool counted);
  void flush(Session& session);
  void pump(Session& session);
  void greet(Session& session);
  void break_session(Session& session);
  static std::vector<std::string> take_unsent(Session& session);
  void on_session_envelope(Session& session, const wire::Envelope& envelope);
  void on_welcome(Session& session, const wire::Welcome& welcome);
  void on_reject(Session& session, const wire::Reject& reject);

  SessionSettings settings_;
  ClientPort& port_;
  SessionEvents& events_;
  Time now_{};
  std::map<std::uint64_t, Session> sessions_;  // by peer number
  std::map<NodeKey, Session*> by_node_;        // ready ones, one per node
  std::uint64_t peers_ = 0;
  std::uint64_t orders_ = 0;
};

}  // namespace shardbus::client
