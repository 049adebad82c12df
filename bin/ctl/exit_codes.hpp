// How shardbusctl ends. Scripts act on these numbers; bin/README.md explains them.
#pragma once

#include <array>
#include <string_view>

namespace shardbusctl {

enum class Exit : int {
  ok = 0,
  failed = 1,
  usage = 2,
  unreachable = 3,
  unknown_outcome = 4,
  not_met = 5,
};

struct ExitRow {
  Exit code;
  std::string_view meaning;
};

inline constexpr std::array kExitTable{
    ExitRow{Exit::ok, "done"},
    ExitRow{Exit::failed, "refused, and without effect"},
    ExitRow{Exit::usage, "wrong command, flag, or JSON; nothing was sent"},
    ExitRow{Exit::unreachable, "no node could be reached"},
    ExitRow{Exit::unknown_outcome, "an error after which the message may have had its effect"},
    ExitRow{Exit::not_met, "a wait ran out of time, or a benchmark failed its own checks"},
};

}  // namespace shardbusctl
