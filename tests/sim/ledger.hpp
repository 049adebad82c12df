// What became of every message of the workload, and the promises about it (DESIGN section 3):
// - a message is handled at most once, and each caller's messages to one entity in the order sent;
// - an ask ends exactly once, in time, with the answer to that very ask or an error; an error that
//   says "not delivered" is true;
// - no entity handles anything under a right older than one it was handled under before, but for an
//   owner that is cut off (`overlap_allowed`);
// - where nothing fails (`lossless`) nothing is lost, and the entity's state is what was handled.
//
// A caller is one incarnation of a node, whose messages are void when its process dies; its code
// that runs in passes (handlers, callbacks) is another one than its threads that call from outside.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/model/allocation.hpp"
#include "base/time.hpp"
#include "shardbus/message.hpp"

namespace shardbus::sim {

// Names one message; it travels as the payload, and an answer brings the nonce back.
struct Ticket {
  NodeKey caller;
  bool inside = false;  // sent by a handler or a callback
  std::uint32_t entity = 0;
  std::uint32_t number = 0;  // from 1, per caller and entity
  std::uint64_t nonce = 0;

  [[nodiscard]] std::string bytes() const;
  static std::optional<Ticket> parse(std::string_view bytes);
};

// Buffers are small here, and handlers slow: a full one is no loss.
bool is_full(Errc code);

struct LedgerConfig {
  std::vector<std::string> entities;  // names, for messages
  bool overlap_allowed = false;
  bool lossless = false;
  std::function<void(NodeKey at, const std::string& line)> trace;  // empty: none
};

class Ledger {
 public:
  explicit Ledger(LedgerConfig config) : config_(std::move(config)) {}

  // --- callers ---
  // The ticket comes without a number, and gets it here.
  Ticket told(const Ticket& ticket);
  // `must`: nothing but a full buffer may keep it from its answer.
  Ticket asked(const Ticket& ticket, Time deadline, bool must);
  void refused(const Ticket& ticket, Errc code);  // a tell, at once
  void ended(Time now, const Ticket& ticket, const ReplyView& reply);
  // Its process ended: nothing of it comes to an end any more.
  void gone(NodeKey caller);
  // Before a restart: what is accepted until the node is let in may be refused in the end.
  void clock_went_back() { config_.lossless = false; }
  // It ended in good order: nothing of it may still be open.
  void closed(NodeKey caller);
  // Its process runs, or runs again, from now on: it is late only from then on.
  void awake(Time now, NodeKey caller) { awake_[caller] = now; }
  // It has done what was due by `now`.
  void check_due(Time now, NodeKey caller);

  // --- entities ---
  // A handler of a strict type begins on a node whose lease is over.
  void begun_without_right(NodeKey at, const Ticket& ticket);
  void handled(NodeKey at, Generation generation, const Ticket& ticket, std::uint64_t count);
  // A new cluster is made: its terms begin anew, and its rights do not compare with older ones.
  void forget_rights();

  // Why not everything that was sent has come to its end; empty if it has.
  [[nodiscard]] std::string unfinished() const;
  // An ask of the caller is open.
  [[nodiscard]] bool busy(NodeKey caller) const { return first_open(caller) != nullptr; }
  [[nodiscard]] const std::optional<std::string>& broken() const { return broken_; }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t handled() const { return handled_; }
  [[nodiscard]] std::uint64_t answered() const { return answered_; }

 private:
  struct Fate {
    std::uint64_t nonce = 0;
    bool ask = false;
    bool must = false;
    bool handled = false;
    bool over = false;  // ended, or refused
    Errc code = Errc::ok;
    Time deadline = kNever;
  };
  struct Flow {  // of one caller to one entity
    std::vector<Fate> fates;
    std::uint32_t last = 0;  // number handled last
    Generation last_right;
  };
  struct EntityRecord {
    std::uint64_t handled = 0;
    Generation right;  // newest under which it handled something
    NodeKey at;
  };
  struct FlowName {
    NodeKey caller;
    bool inside = false;
    std::uint32_t entity = 0;
    friend auto operator<=>(const FlowName&, const FlowName&) = default;
  };
  struct OpenAsk {
    NodeKey caller;
    Time deadline{};
    bool inside = false;
    std::uint32_t entity = 0;
    std::uint32_t number = 0;
    friend auto operator<=>(const OpenAsk&, const OpenAsk&) = default;
  };

  Ticket issue(Ticket ticket, Fate fate);
  // The open ask of the caller that is due first, or null.
  [[nodiscard]] const OpenAsk* first_open(NodeKey caller) const;
  Fate* find(const Ticket& ticket);
  [[nodiscard]] std::string text(const Ticket& ticket) const;
  [[nodiscard]] std::string text(const OpenAsk& ask) const;
  void check_time(Time now, const OpenAsk& ask);
  void check_order(NodeKey at, Generation generation, const Ticket& ticket, Flow& flow);
  void check_right(NodeKey at, Generation generation, const Ticket& ticket);
  void fail(const std::string& what) {
    if (!broken_) broken_ = what;
  }

  LedgerConfig config_;
  std::map<FlowName, Flow> flows_;
  std::map<std::uint32_t, EntityRecord> entities_;
  std::set<OpenAsk> open_;
  std::set<NodeKey> gone_;
  std::map<NodeKey, Time> awake_;
  std::uint64_t sent_ = 0;
  std::uint64_t handled_ = 0;
  std::uint64_t answered_ = 0;
  std::optional<std::string> broken_;
};

}  // namespace shardbus::sim
