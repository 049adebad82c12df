// The end of a programmer's error that no return value and no exception can report.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace shardbus {

// `what`: "a Node" or "a Client".
[[noreturn]] inline void die_inside_callback(const char* what) {
  std::fprintf(stderr,
               "shardbus: %s is destroyed inside one of the library's callbacks or handlers, which "
               "its end would wait for; let another thread destroy it\n",
               what);
  std::abort();
}

}  // namespace shardbus
