// Calls into user code: nothing that it throws gets further.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace shardbus::runtime {

// What the call threw, as text; empty if it returned.
template <class F>
std::string failure_of(F&& call) {
  try {
    std::forward<F>(call)();
    return {};
  } catch (const std::exception& error) {
    return *error.what() == '\0' ? "an exception without a text" : error.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace shardbus::runtime
