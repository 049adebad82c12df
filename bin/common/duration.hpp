// Durations as people write them on a command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace shardbus_tools {

using std::chrono::milliseconds;

// "200ms", "5s" or "2m", with a unit always; anything else, and what no clock can hold, is nothing.
std::optional<milliseconds> parse_duration(std::string_view text);
// The shortest of those forms that is exact.
std::string format_duration(milliseconds duration);

}  // namespace shardbus_tools
