// Administrative asks (`$node`) that the control loop answers: orders, the plan, moves, history.
// Their payloads are in PROTOCOL.md "Administration".
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "runtime/control/control_plane.hpp"
#include "runtime/data/ports.hpp"
#include "shardbus/status.hpp"

namespace shardbus::runtime {

// The reply's payload, or the error; nothing where `call` is not one of these. Errors:
// decode_failed, invalid_argument (names the value), not_ready (this node does not decide),
// no_such_node, stale_plan, exhausted.
std::optional<Result<std::string>> answer_orders(const AdminCall& call, Time now,
                                                 control::ControlPlane& plane);

}  // namespace shardbus::runtime
