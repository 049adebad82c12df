// Answers to administrative asks (`$node`); their payloads are in PROTOCOL.md "Administration".
#pragma once

#include <cstdint>
#include <msgpack.hpp>
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

struct DownArguments {
  std::string node;
  std::string actor;
  MSGPACK_DEFINE_MAP(node, actor)
};
// The node that a `down` names, and who says it. Errors: decode_failed.
Result<DownArguments> admin_down(std::string_view payload);

}  // namespace shardbus::runtime
