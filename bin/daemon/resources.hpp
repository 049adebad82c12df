// File descriptors: a node needs one per session, and a low limit would show only under load.
#pragma once

#include <cstdint>
#include <string>

namespace shardbusd {

// Descriptors beside the sessions: sockets of ZeroMQ and their signalers, other nodes, files.
inline constexpr std::uint64_t kOwnDescriptors = 512;

// Raises the soft limit to the hard one. Gives an empty string, or one line that says what is
// missing and the two ways out.
std::string raise_descriptor_limit(std::uint32_t sessions);

}  // namespace shardbusd
