// Answers to administrative asks (`$node`); their payloads are in PROTOCOL.md "Administration".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/data/data_plane.hpp"
#include "runtime/node/readiness.hpp"
#include "shardbus/status.hpp"

namespace shardbus::runtime {

// Counters that the data plane does not have.
struct LinkCounters {
  std::uint64_t net_catches = 0;
  std::uint64_t inbox = 0;
  std::uint64_t inbox_limit = 0;
};

// Answers `call` from within a pass.
void answer_admin(const AdminCall& call, const ClusterView& view, const LinkCounters& link,
                  DataPlane& plane);

// The node that a `down` names. Errors: decode_failed.
Result<std::string> admin_node_name(std::string_view payload);

}  // namespace shardbus::runtime
