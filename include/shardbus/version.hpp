// The version of the library and of the wire protocol it speaks.
#pragma once

namespace shardbus {

inline constexpr const char* kVersion = "0.1.0";
// PROTOCOL.md section 1: a peer of another major version is refused with `version_mismatch`.
inline constexpr int kProtocolMajor = 1;
inline constexpr int kProtocolMinor = 0;

}  // namespace shardbus
