// Where the daemon's log lines go: stderr, one line per event, as text or as JSON.
#pragma once

#include <shardbus/options.hpp>
#include <string>
#include <string_view>

#include "daemon/options.hpp"

namespace shardbusd {

// One line without its newline. `time_ms` is milliseconds since 1970.
std::string format_log_line(LogFormat format, std::int64_t time_ms, shardbus::LogLevel level,
                            std::string_view event, std::string_view text);

// Writes each line at `least` or above, if it fits PIPE_BUF by one write(2), so that lines of
// several daemons with one stderr do not mix. Does not wait at a pipe that is full: what did not
// fit is counted, and `log.lost` tells how many lines once there is room again. From any thread,
// one at a time.
shardbus::LogSink stderr_sink(LogFormat format, shardbus::LogLevel least);

}  // namespace shardbusd
