// Items of a handoff stream, between the region's values and envelopes.
#pragma once

#include <optional>
#include <string>

#include "core/region/region_types.hpp"
#include "runtime/data/context.hpp"
#include "wire/codec.hpp"

namespace shardbus::runtime {

// One item (or acknowledgement) as it came in. `shard_count` is known from the head only.
struct StreamInput {
  ShardName name;
  std::uint32_t shard_count = 0;
  Generation generation;
  std::uint64_t index = 0;
  core::StreamItem item;
};

// Nothing if the envelope is malformed. Deadlines are counted from `now`.
std::optional<StreamInput> read_stream_item(const wire::Envelope& envelope, Time now);

void write_stream_item(std::string& out, const ShardName& name, std::uint32_t shard_count,
                       const core::SendItem& send, const DataContext& context);

}  // namespace shardbus::runtime
