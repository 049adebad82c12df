// What goes in and out of a Region.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/byte_lease.hpp"
#include "base/ids.hpp"
#include "base/model/allocation.hpp"
#include "base/time.hpp"
#include "shardbus/status.hpp"

namespace shardbus::core {

// A message that waits: raw bytes, and what is needed to judge and to answer it.
struct Parked {
  std::uint64_t sender = 0;  // node key or a client's sender number
  Generation generation;     // as its sender stamped it
  std::string envelope;      // raw tell or ask
  Time deadline = kNever;    // kNever: none
  NodeKey asker;             // reply port of an ask; kNoNode: a tell
  std::uint64_t slot = 0;
  Generation passed{};  // of whoever passed it on behind a fence of its own last
  std::shared_ptr<const ByteLease> room{};  // of its copies, in what the node holds for moves
};

// A fence on its way: `origin` is the node through which the answer goes back.
struct PassingFence {
  std::uint64_t id = 0;
  std::uint64_t sender = 0;
  Generation generation;  // that its sender has learned
  NodeKey target;         // owner of that generation
  NodeKey origin;
  Generation passed{};  // as above
};

// Ids of the fences that regions send for themselves start here; those of routes stay below, so
// that one answer cannot be taken for the other's.
inline constexpr std::uint64_t kOwnFenceIds = std::uint64_t{1} << 52;

struct SenderMark {
  std::uint64_t sender = 0;
  Generation generation;
};

struct SavedEntity {
  std::string id;
  std::string state;
};

// One item of a handoff stream.
struct StreamHead {
  std::vector<SenderMark> marks;
};
struct StreamTail {};
using StreamItem = std::variant<StreamHead, SavedEntity, Parked, PassingFence, StreamTail>;

// Outputs, to be carried out in order.
struct StopEntities {};  // start no handler; call Region::on_stopped when all are done
struct SendItem {        // to `next`, over the peer link, in order
  NodeKey next;
  Generation generation;
  std::uint64_t index = 0;
  StreamItem item;
};
struct AckStream {  // to the old owner
  NodeKey to;
  Generation generation;
  std::uint64_t index = 0;
};
struct AnswerCoordinator {
  RegionAnswerKind kind = RegionAnswerKind::owned;
  Generation generation;
};
struct AnswerFence {
  PassingFence fence;
  NodeKey node;  // where the sender goes on
  Generation generation;
  bool lost = false;
};
struct SendOwnFence {  // this region as a sender: along its old next hop (rule 7)
  NodeKey via;
  PassingFence fence;
};
struct PassFence {  // to the node that the fence names
  NodeKey to;
  PassingFence fence;
};
struct RestoreEntity {
  SavedEntity entity;
};
struct DeliverParked {
  Parked message;
};
struct FailParked {  // answer its asker with `code`, count a tell
  Parked message;
  Errc code = Errc::unknown_outcome;
};
// A higher generation appeared: no handler starts, no output leaves. `fenced`: another owner was
// made without us; else the shard has no owner any more, since nobody hosts its type.
struct DropEntities {
  bool fenced = true;
};
using RegionOutput =
    std::variant<StopEntities, SendItem, AckStream, AnswerCoordinator, AnswerFence, SendOwnFence,
                 PassFence, RestoreEntity, DeliverParked, FailParked, DropEntities>;

}  // namespace shardbus::core
