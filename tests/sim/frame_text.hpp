// One line about a frame between nodes, for traces.
#pragma once

#include <string>
#include <string_view>

namespace shardbus::sim {

std::string frame_text(std::string_view frame);

}  // namespace shardbus::sim
