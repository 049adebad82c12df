// What a control plane wants done.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/model/allocation.hpp"

namespace shardbus::control {

enum class Severity : std::uint8_t { debug, info, warn, error };

struct PublishDigest {
  Digest digest;
};
struct PublishDelta {
  TableDelta delta;
};
struct SendControl {
  NodeKey to;
  NodeInfo node;
  ControlMessage message;
};
struct TellRegion {
  ControlMessage message;
};  // own region: a command or a ReportRequest
struct ConnectNode {
  NodeInfo node;
};  // both its gossip and its peer endpoint
enum class Parting : std::uint8_t {
  stranger,  // never was a member: a joiner that stopped asking, a contact; may come again
  left,      // in good order
  dead,      // proven, or removed by a decision
};
struct DisconnectNode {
  NodeKey node;
  Parting how = Parting::stranger;
};
struct TableChanged {
  AllocationTable table;
};
struct Event {
  Severity severity;
  std::string name;
  std::string text;
};
struct LeaveDone {};
// Start again with a new incarnation, which is to leave if this one was told to. Nothing follows.
struct DownSelf {
  std::string reason;
};
using ControlOutput =
    std::variant<ConnectNode, DisconnectNode, TellRegion, SendControl, PublishDelta, PublishDigest,
                 TableChanged, Event, LeaveDone, DownSelf>;

std::string to_text(const ControlOutput& output);

}  // namespace shardbus::control
