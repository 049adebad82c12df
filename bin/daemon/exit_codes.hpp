// How shardbusd ends. Supervisors act on these numbers; bin/README.md explains them.
#pragma once

#include <array>
#include <string_view>

namespace shardbusd {

enum class Exit : int {
  ok = 0,
  runtime_failure = 1,
  usage = 2,
  address = 3,
  resources = 4,
  second_signal = 5,
  leave_timeout = 6,
};

struct ExitRow {
  Exit code;
  std::string_view meaning;
};

inline constexpr std::array kExitTable{
    ExitRow{Exit::ok, "left the cluster in order, or printed what was asked for"},
    ExitRow{Exit::runtime_failure, "a failure at run time; the last line on stderr names it"},
    ExitRow{Exit::usage, "wrong flag, variable, or configuration file; nothing was started"},
    ExitRow{Exit::address, "an address is in use or cannot be bound"},
    ExitRow{Exit::resources, "too few file descriptors or too little memory"},
    ExitRow{Exit::second_signal, "a second SIGTERM or SIGINT stopped it at once"},
    ExitRow{Exit::leave_timeout, "leave_timeout passed before all shards were handed over"},
};

}  // namespace shardbusd
