// A fence as a list of elements: it stands in its own envelope and inside stream_fence.
#pragma once

#include "wire/fields.hpp"

namespace shardbus::wire {

inline constexpr std::uint32_t kFenceItems = 7;
void write_fence(Writer& out, const Fence& fence);
void read_fence(Cursor& in, Fence& out);

}  // namespace shardbus::wire
