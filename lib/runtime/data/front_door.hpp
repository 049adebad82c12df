// Sessions of clients and workers, over the FRONT ROUTER.
//
// A client greets and gets credit; one that sends a bare envelope without greeting gets a small
// implicit session (PROTOCOL.md "Sessions"). What a client is owed but does not read is bounded;
// above the bound its session ends. Workers are sessions that also take messages to run.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/delivery/credit.hpp"
#include "runtime/data/context.hpp"
#include "runtime/data/dispatch.hpp"
#include "wire/codec.hpp"

namespace shardbus::runtime {

struct FrontSession {
  std::uint32_t connection = 0;
  std::uint64_t number = 0;
  wire::Role role = wire::Role::client;
  std::uint64_t sender = 0;  // client's own number; 0 for implicit sessions
  std::string label;
  bool implicit = false;
  bool delimited = false;  // speaks with an empty frame first (REQ)
  bool wants_table = false;
  std::uint32_t max_batch = 1;
  core::CreditGrant credit{0, 0};
  core::CreditUse grant;  // what a worker granted us
  std::uint32_t in_flight = 0;
  std::uint32_t strikes = 0;  // envelopes over credit
  std::string batch;
  std::uint32_t batch_count = 0;
  std::size_t last_begin = 0;  // where the newest envelope of the batch begins
  bool dirty = false;
  std::size_t batch_states = 0;  // bytes of entity states in the batch
  struct Unsent {
    std::string frame;
    std::size_t states = 0;  // bytes of entity states in it
  };
  std::deque<Unsent> unsent;     // what the socket did not take
  std::size_t unsent_bytes = 0;  // without states: their shards bound those
  Time heard{};
  Time renewed{};  // its credit
};

class FrontDoor {
 public:
  explicit FrontDoor(DataContext& context) : context_(context) {}

  // --- events of the transport ---
  void on_frame(std::uint32_t connection, bool delimited, std::string_view frame);
  // A message of a shape that the protocol does not know: `frames` says how many frames it had.
  void on_bad_frame(std::uint32_t connection, std::size_t frames);
  // Whether this pass leaves messages in the socket.
  void set_backlog(bool backlog) { backlog_ = backlog; }

  // --- from the rest of the data plane ---
  void answer(std::uint64_t session, std::string_view opaque, const ReplyView& reply);
  void on_fence_ok(const wire::FenceOk& answer);
  void on_table();
  // To a worker. False: no such session, or no credit now.
  bool send_to_worker(std::uint64_t session, const wire::Message& message);
  void send_raw(std::uint64_t session, std::string_view envelope);
  // A RESTORE: bounded by what its shard had, so nobody loses the session for its size. What the
  // socket has not taken when the session ends comes back by Hosts::remove_worker.
  void send_state(std::uint64_t session, std::string_view envelope);
  // Takes back those of a shard that have not gone out.
  std::vector<core::SavedEntity> take_back_states(std::uint64_t session, const Type& type,
                                                  ShardId shard);

  // No worker is taken any more.
  void refuse_workers() { refuses_workers_ = true; }
  // The node is about to stop: clients go elsewhere, and what they have asked is still answered.
  void say_goodbye();
  // Tells all who greeted that they have to again: workers begin nothing more.
  void end_sessions(std::string_view why);
  // Ends one session, of which its owner hears; nothing for a number that is none.
  void dismiss(std::uint64_t number, std::string_view why);
  // Nothing is open for them any more, and for a moment nothing new has come.
  [[nodiscard]] bool parted() const;

  void flush();
  void tick();
  [[nodiscard]] Time next_deadline() const;
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }

 private:
  FrontSession* find(std::uint64_t number);
  void on_envelope(std::uint32_t connection, bool delimited, FrontSession*& session,
                   const wire::Envelope& envelope);
  void on_session_envelope(FrontSession*& session, const wire::Envelope& envelope);
  void refuse_bytes(std::uint32_t connection, bool delimited, FrontSession* session,
                    const wire::Envelope& envelope, Errc outcome);
  void on_stranger(std::uint32_t connection, bool delimited, FrontSession*& session,
                   const wire::Envelope& envelope);
  void on_hello(std::uint32_t connection, bool delimited, FrontSession*& session,
                const wire::Envelope& envelope);
  wire::Reject objection(const wire::Hello& hello, const FrontSession* session);
  void on_message(FrontSession*& session, const wire::Envelope& envelope);
  void dispatch(FrontSession& session, const wire::Message& message);
  void dispatch_tell(FrontSession& session, const wire::Message& message, wire::Moved* moved);
  void dispatch_ask(FrontSession& session, const wire::Message& message, wire::Moved* moved);
  bool over_credit(FrontSession*& session, const wire::Envelope& envelope);
  bool renew_credit(FrontSession& session);
  FrontSession& open(std::uint32_t connection, bool delimited);
  void close(FrontSession& session, bool kick);
  void welcome(FrontSession& session);
  void send_here(std::uint32_t connection, bool delimited);
  void send_table(FrontSession& session);
  void send_error(FrontSession& session, const wire::Correlation& correlation, Errc code,
                  std::string_view text);
  void send_now(std::uint32_t connection, bool delimited, const std::string& frame);
  std::size_t begin(FrontSession& session);
  void commit(FrontSession& session);
  void flush_session(FrontSession& session);

  DataContext& context_;
  std::unordered_map<std::uint32_t, std::unique_ptr<FrontSession>> sessions_;  // by connection
  std::map<std::uint64_t, FrontSession*> by_number_;
  std::map<std::uint64_t, FrontSession*> by_sender_;
  FrontSession* last_ = nullptr;
  std::vector<std::uint64_t> dirty_;
  std::unordered_map<std::uint32_t, std::uint32_t> offenders_;  // bad frames per connection
  std::deque<std::pair<Time, std::uint32_t>> kicks_;            // connections to be cut
  bool backlog_ = false;
  bool leaving_ = false;
  bool refuses_workers_ = false;
  Time last_message_{};  // while leaving
  Time retry_ = kNever;
  Time table_due_ = kNever;
  Time next_sweep_{};
};

}  // namespace shardbus::runtime
