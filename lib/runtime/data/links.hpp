// Outbound sessions: one per remote node, over a DEALER. Everything that this node sends to another
// goes through here, in one order.
//
// A link greets (HELLO), and is ready with WELCOME. Envelopes are appended to one open batch and
// leave as one frame when the pass ends or the batch is full; without credit or session they wait,
// bounded. When the connection breaks, what was sent and not answered is of unknown outcome.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/time.hpp"
#include "core/delivery/credit.hpp"
#include "runtime/data/context.hpp"
#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace shardbus::runtime {

class Links {
 public:
  explicit Links(DataContext& context) : context_(context) {}

  // Until then, or longer if it is open for longer already; kNever: until closed.
  void open(const NodeInfo& node, Time until);
  void limit(NodeKey node, Time until);
  // For a few envelopes only: the link goes again by itself, unless `open` claims it.
  void reach(const NodeInfo& node) { open(node, context_.now + kPassing); }
  void let_go(NodeKey node) { limit(node, context_.now + kPassing); }
  // Takes out the messages that still wait to be sent, oldest first.
  [[nodiscard]] std::vector<std::string> take_unsent(NodeKey node);
  // Forgets the link. Returns the messages that still waited to be sent, oldest first; the caller
  // sends them another way, and ends the asks that had gone out.
  [[nodiscard]] std::vector<std::string> close(NodeKey node);
  // The asks among the messages that still wait to be sent, by slot.
  [[nodiscard]] std::vector<std::uint64_t> unsent_asks(NodeKey node) const;
  [[nodiscard]] bool knows(NodeKey node) const { return links_.contains(node); }
  // Whether envelopes may go there at all, now or once its session stands.
  [[nodiscard]] bool takes(NodeKey node) const {
    const auto found = links_.find(node);
    return found != links_.end() && !found->second.closing;
  }
  [[nodiscard]] const NodeInfo* info(NodeKey node) const;
  // Of nodes that are not gone, the newest.
  [[nodiscard]] NodeKey find_by_name(std::string_view name) const;

  // Appends one encoded application envelope. False: no such link, or its buffer is full.
  template <class E>
  bool send(NodeKey node, const E& envelope) {
    Link* link = find(node);
    if (link == nullptr) return false;
    // Whoever leaves may still have asks and fences here when we have nothing more to ask of it.
    if (link->closing && std::is_same_v<E, wire::Message>) return false;
    const std::size_t before = start(*link);
    wire::encode(link->batch, envelope);
    // Whoever counts more than the other side does runs dry in the end: routing kinds are free.
    return commit(*link, before,
                  std::is_same_v<E, wire::Message> ? Sort::message
                  : std::is_same_v<E, wire::Reply> ? Sort::reply
                                                   : Sort::answer);
  }
  // The same for an answer that is already encoded.
  bool send_raw(NodeKey node, std::string_view envelope);
  // So much of streams waits here that a forwarder should pass on no more.
  [[nodiscard]] bool stream_is_full(NodeKey node) const;
  // An item of a handoff stream: bounded by what the shard had, so it is never refused for size.
  // `write` appends it to the string that it is called with.
  template <class Write>
  void send_stream(NodeKey node, Write write) {
    Link* link = find(node);
    if (link == nullptr) return;
    const std::size_t before = start(*link);
    write(link->batch);
    (void)commit(*link, before, Sort::stream);
  }
  // The acknowledgement of one: without it the old owner would wait for ever.
  void send_ack(NodeKey node, std::string_view envelope);
  bool send_control(NodeKey node, const ControlMessage& message);
  [[nodiscard]] std::vector<NodeInfo> nodes() const;

  void flush();
  void flush(NodeKey node);
  // The last word on a link: from then on only answers to what the other side asked.
  void say_goodbye(NodeKey node);
  // The same on every link; `parted` once all have answered it, or are broken with nothing to send.
  void say_goodbye();
  [[nodiscard]] bool parted() const;
  // Whether the link was opened to stay: to a member.
  [[nodiscard]] bool stays(NodeKey node) const {
    const auto found = links_.find(node);
    return found != links_.end() && found->second.until == kNever;
  }

  // --- events of the transport ---
  void on_connected(NodeKey node);
  void on_disconnected(NodeKey node);
  void on_frame(NodeKey node, std::string_view frame);

  void tick();
  [[nodiscard]] Time next_deadline() const;
  // Envelopes that wait for credit or a session; items of streams apart, as their shards bound
  // them.
  [[nodiscard]] std::size_t waiting() const;
  [[nodiscard]] std::size_t waiting_streams() const;
  [[nodiscard]] std::size_t stream_bytes() const;
  [[nodiscard]] std::size_t size() const { return links_.size(); }

 private:
  static constexpr Duration kPassing = std::chrono::seconds(10);
  enum class State : std::uint8_t { down, greeting, ready };
  // What bounds an envelope that waits, and whether it falls under credit once it goes.
  enum class Sort : std::uint8_t {
    message,  // number and bytes; counted
    reply,    // bytes: whoever asked bounds their number; counted
    answer,   // a double share of both, so that messages cannot keep it out; free
    stream,   // what the shard had; counted
    ack,      // one for each stream; free
  };
  struct Waiting {
    std::string envelope;
    Sort sort = Sort::message;
  };
  static bool counted(Sort sort) { return sort != Sort::answer && sort != Sort::ack; }
  // Bounded by itself, so that no buffer's limit concerns it.
  static bool of_handoff(Sort sort) { return sort == Sort::stream || sort == Sort::ack; }
  struct Link {
    NodeInfo node;
    State state = State::down;
    std::uint64_t session = 0;
    std::uint64_t sequence = 0;  // envelopes put into frames so far
    core::CreditUse credit;
    std::string batch;  // open frame; starts with the link envelope when not empty
    std::uint32_t batch_count = 0;
    bool dirty = false;
    bool closing = false;             // we said goodbye: only answers go out now
    bool parted = false;              // and the other side has heard it
    std::deque<std::string> blocked;  // frames that the socket did not take
    std::deque<Waiting> waiting;
    std::size_t waiting_bounded = 0;  // of these, messages and answers
    std::size_t waiting_bytes = 0;    // of all but items of streams
    std::size_t stream_bytes = 0;     // of those
    Time heard{}, sent{}, pinged{};
    Time next_hello = kNever;
    Time until{};
    // Whoever sends without pause hears nothing by that, and must ask as well.
    [[nodiscard]] Time quiet_since() const { return std::max(std::min(sent, heard), pinged); }
  };

  Link* find(NodeKey node) {
    if (last_ != nullptr && last_->node.key == node) return last_;
    const auto found = links_.find(node);
    if (found == links_.end()) return nullptr;
    last_ = &found->second;
    return last_;
  }
  // Opens the batch if need be; returns where the next envelope begins.
  std::size_t start(Link& link) {
    if (link.batch.empty() && link.state == State::ready) {
      wire::encode(link.batch, wire::Link{link.session, link.sequence + 1});
    }
    return link.batch.size();
  }
  void repeat_goodbye(NodeKey node);
  bool commit(Link& link, std::size_t before, Sort sort);
  void take(Link& link, std::size_t before, bool counted);
  bool put_aside(Link& link, std::size_t before, Sort sort);
  void mark_dirty(Link& link) {
    if (!std::exchange(link.dirty, true)) dirty_.push_back(link.node.key);
  }
  void flush_link(Link& link);
  void tick(Link& link);
  void pump(Link& link);
  void greet(Link& link);
  void break_session(Link& link);
  void note_lost_tells(const Link& link);
  void on_envelope(Link& link, const wire::Envelope& envelope);
  void on_welcome(Link& link, const wire::Welcome& welcome);

  DataContext& context_;
  std::map<NodeKey, Link> links_;
  Link* last_ = nullptr;  // most envelopes of a burst go to few nodes
  std::vector<NodeKey> dirty_;
};

}  // namespace shardbus::runtime
