// A client's routing: which node each message goes to, and the asks that wait for answers.
//
// Smart: learns the allocation table and sends to owners; a change of owner is fenced like a
// node's (PROTOCOL.md "Smart clients"). Simple: everything through one node. Pure of threads,
// clocks and sockets; a pass is `begin(now)`, events, `end()`.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "client/client_sessions.hpp"
#include "core/delivery/pending_asks.hpp"
#include "core/delivery/route.hpp"
#include "shardbus/message.hpp"

namespace shardbus::client {

struct PlaneSettings {
  std::vector<std::string> addresses;
  std::string cluster;
  bool smart = true;
  std::uint32_t pending_asks = 1U << 20;
  std::uint64_t seed = 1;
};

class ClientPlane final : private SessionEvents {
 public:
  ClientPlane(PlaneSettings settings, ClientPort& port);

  void begin(Time now);
  void end();
  [[nodiscard]] Time next_deadline();

  Errc tell(const Outgoing& message);
  void ask(const Outgoing& message, milliseconds timeout, ReplyCallback done);
  // Says goodbye, ends every pending ask in `stopped`, and refuses all later calls with it.
  void stop(std::string_view text);
  // Counts and logs a tell that was refused after its caller had gone on.
  void report_tell(Errc outcome, std::string_view type, std::uint64_t tells = 1);
  // Usable: some session is ready and, if smart, the table has been learned.
  [[nodiscard]] bool usable() const;
  [[nodiscard]] std::uint64_t tells_dropped() const { return tells_dropped_; }
  [[nodiscard]] ClientSessions& sessions() { return sessions_; }

 private:
  struct Origin {
    ReplyCallback callback;
  };
  using Asks = core::PendingAsks<Origin>;
  struct Held {
    std::string envelope;
    std::uint64_t slot = 0;
    Time deadline = kNever;
  };
  struct Shard {
    core::Route route;
    std::deque<Held> held;
    bool fenced = false;  // noted in fenced_
  };
  struct Type {
    std::string name;
    std::vector<Shard> shards;
  };
  struct Deferred {
    ReplyCallback callback;
    Errc error = Errc::ok;
    std::string text;
    std::string payload;
  };

  void on_session_ready(NodeKey node) override;
  void on_session_broken(NodeKey node, const std::vector<std::string>& unsent) override;
  void on_envelope(NodeKey node, const wire::Envelope& envelope) override;

  Type* find_type(std::string_view name);
  Errc submit(wire::Message& message, std::uint64_t slot, Time deadline);
  void sent_to(std::uint64_t slot, NodeKey node);
  Errc submit_anywhere(wire::Message& message, std::uint64_t slot, Time deadline);
  bool open_way(core::Route& route);
  Errc forward(Shard& shard, wire::Message& message, std::uint64_t slot);
  Errc hold(std::deque<Held>& queue, const wire::Message& message, std::uint64_t slot,
            Time deadline);
  void refuse(std::uint64_t slot, Errc code, std::string_view type);
  void put_back(const std::vector<std::string>& unsent);
  void learn(Type& type, std::uint32_t index, const TableEntry& entry,
             const wire::ClientTable& table);
  void on_table(const wire::ClientTable& table);
  void on_moved(const wire::Moved& moved);
  void on_reply(const wire::Reply& reply);
  void act(Type& type, std::uint32_t shard, core::Route::Step step);
  void release(Type& type, std::uint32_t shard);
  void send_fence(Type& type, std::uint32_t shard);
  void check_fences();
  [[nodiscard]] bool knows_ways() const { return has_table_ || !settings_.smart; }
  void send_lobby();
  void complete(Asks::Ask&& ask, const ReplyView& reply);
  void call_back(ReplyCallback& callback, const ReplyView& reply);
  void run_deferred();
  void tick();
  void expire(std::deque<Held>& queue);
  void fail_target(NodeKey node, Errc code, std::string_view text);

  PlaneSettings settings_;
  Random random_;
  ClientPort& port_;
  ClientSessions sessions_;
  Time now_{};
  Asks asks_;
  std::deque<Type> types_;
  Type* last_type_ = nullptr;
  TableVersion version_;
  bool has_table_ = false;
  std::deque<Held> lobby_;                                 // until any session is ready
  std::map<std::string, NodeKey, std::less<>> used_home_;  // types sent through a node unrouted
  std::size_t held_total_ = 0;
  std::vector<std::pair<Type*, std::uint32_t>> fenced_;  // shards with an open fence
  Time next_fence_check_ = kNever;
  std::uint64_t tells_dropped_ = 0;
  bool stopped_ = false;
  std::deque<Deferred> deferred_;
  std::uint32_t callback_depth_ = 0;
  Time next_tick_{};
};

}  // namespace shardbus::client
