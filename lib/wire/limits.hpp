// Limits of protocol version 1 (PROTOCOL.md "Limits"). A node may lower those that WELCOME tells.
#pragma once

#include <cstdint>

namespace shardbus::wire {

inline constexpr std::uint32_t kFrameBytesMax = 1U << 20;  // one ZeroMQ message
// Between nodes: a forwarded message has grown by generations, a reply port and, in a handoff
// stream, an envelope around it.
inline constexpr std::uint32_t kPeerFrameBytesMax = kFrameBytesMax + (64U << 10);
inline constexpr std::uint32_t kPayloadBytesMax = kFrameBytesMax - 4096;
inline constexpr std::uint32_t kBatchMax = 1024;         // envelopes per frame
inline constexpr std::uint32_t kFlushBytes = 64U << 10;  // a batch is sent at this size
inline constexpr std::uint32_t kEntityIdBytesMax = 256;
inline constexpr std::uint32_t kTypeBytesMax = 64;
inline constexpr std::uint32_t kMethodBytesMax = 128;
inline constexpr std::uint32_t kCorrelationBytesMax = 40;  // encoded, opaque form
inline constexpr std::uint32_t kHeadersBytesMax = 8192;
inline constexpr std::uint32_t kNodeNameBytesMax = 64;
inline constexpr std::uint32_t kEndpointBytesMax = 256;
inline constexpr std::uint32_t kTextBytesMax = 1024;
inline constexpr std::uint32_t kDepthMax = 32;
inline constexpr std::uint32_t kHopsMax = 8;  // a fault counter, not a rule of routing
inline constexpr std::uint32_t kMembersMax = 1024;
inline constexpr std::uint32_t kTypesMax = 256;
inline constexpr std::uint32_t kSettingsMax = 64;    // that a joining node tells
inline constexpr std::uint32_t kRolesMax = 16;       // of one node
inline constexpr std::uint32_t kCapacityMax = 1000;  // of one node
inline constexpr std::uint32_t kShardsMax = 73728;   // of all types: their table fits one frame
// Orders of operators travel with the table, in the room that peer frames have beyond others.
inline constexpr std::uint32_t kPinsMax = 256;
inline constexpr std::uint32_t kOrderedNodesMax = 128;  // cordoned, and as many drained
inline constexpr std::uint32_t kActorBytesMax = 64;
inline constexpr std::uint32_t kShardCountMax = 65536;
inline constexpr std::uint32_t kImplicitAsksMax = 64;  // in flight without HELLO
inline constexpr std::uint32_t kSilentPingsMax = 4;    // silent ping intervals that end a session
// What a worker gives back of one shard, in all of its parts.
inline constexpr std::uint32_t kReleaseEntitiesMax = 1U << 18;
inline constexpr std::uint32_t kReleaseBytesMax = 256U << 20;
inline constexpr std::uint32_t kTimeLeftMsMax = 86'400'000;  // one day

}  // namespace shardbus::wire
