// Tables about moves of shards.
#pragma once

#include <string>

#include "ctl/payload_json.hpp"

namespace shardbusctl {

std::string render_plan(const Json& plan);
std::string render_moves(const Json& moves);
std::string render_history(const Json& changes);

}  // namespace shardbusctl
