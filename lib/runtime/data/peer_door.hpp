// Inbound sessions from other nodes, over the PEER ROUTER.
//
// One session per incarnation of a node: a newer HELLO ends the older session, whose frames are
// refused from then on (PROTOCOL.md "Handoff", rule 25).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/delivery/credit.hpp"
#include "runtime/data/context.hpp"
#include "wire/codec.hpp"

namespace shardbus::runtime {

class PeerDoor {
 public:
  static constexpr std::size_t kSessionsMax = 1024;

  explicit PeerDoor(DataContext& context) : context_(context) {}

  void on_frame(std::uint32_t connection, std::string_view frame);
  // Ends the sessions of a dead node: nothing that it still sends counts.
  void close(NodeKey node);
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }
  // Whether everybody who has a session here has said goodbye on it.
  [[nodiscard]] bool parted() const;

 private:
  struct Session {
    NodeInfo node;
    std::uint64_t number = 0;
    std::uint64_t expected = 1;  // number of the next envelope
    core::CreditGrant credit{0, 0};
    Time told{};          // the pass in which its traffic was last reported
    bool parted = false;  // it asks for nothing more, but may still answer
  };

  void on_hello(std::uint32_t connection, const wire::Envelope& envelope);
  // What stands against a session with this node; empty: nothing.
  [[nodiscard]] std::string objection(const NodeInfo& node) const;
  [[nodiscard]] bool make_room(NodeKey node);
  void open(std::uint32_t connection, const NodeInfo& node);
  void refuse(std::uint32_t connection, Errc code, std::string text, std::uint32_t retry_ms);
  void no_session(std::uint32_t connection);
  void welcome(std::uint32_t connection, const Session& session);
  void on_envelopes(std::uint32_t connection, Session& session, std::string_view frame);
  void on_envelope(std::uint32_t connection, Session& session, const wire::Envelope& envelope);
  void tell_credit(std::uint32_t connection, Session& session);

  DataContext& context_;
  std::unordered_map<std::uint32_t, Session> sessions_;  // by connection; never iterated
  std::map<NodeKey, std::uint32_t> connections_;
};

}  // namespace shardbus::runtime
