// Keeps an event that comes again and again, as that of a node that is refused at each try, from
// filling the log.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/time.hpp"

namespace shardbus::runtime {

// Lets the same text of the same event through once, and then at most every 30 s with a count.
//
// Threads: one. Bounded: it remembers 64 texts, and forgets the one that was written longest ago.
class Repeats {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(30);
  static constexpr std::size_t kTextsMax = 64;

  // The text to write now; nothing where it was written less than kInterval ago.
  std::optional<std::string> pass(Time now, const std::string& event, const std::string& text);

 private:
  struct Written {
    Time at;
    std::uint64_t since = 0;  // how often it came again
  };
  std::map<std::pair<std::string, std::string>, Written> written_;  // by event and text
};

}  // namespace shardbus::runtime
