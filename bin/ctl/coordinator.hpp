// Asks whichever node decides at the moment.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ctl/session.hpp"

namespace shardbusctl {

// Repeats the ask while coordinators change, until --timeout. Errors end the command.
Json ask_coordinator(Session& session, std::string_view method, const Json& arguments);

// `progress` where it may be shown, see shows_progress().
std::function<std::string()> progress_of(const Globals& globals,
                                         std::function<std::string()> progress);

// Waits until `done` says so, looking every 25 ms. Every two seconds `progress` (if any) goes to
// stderr. False: `patience` is over.
bool wait_until(milliseconds patience, const std::function<bool()>& done,
                const std::function<std::string()>& progress);

}  // namespace shardbusctl
