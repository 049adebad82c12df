#include "runtime/node/repeats.hpp"

#include <algorithm>

namespace shardbus::runtime {

std::optional<std::string> Repeats::pass(Time now, const std::string& event,
                                         const std::string& text) {
  const auto found = written_.find({event, text});
  if (found == written_.end()) {
    if (written_.size() >= kTextsMax) {
      written_.erase(std::min_element(written_.begin(), written_.end(),
                                      [](auto& a, auto& b) { return a.second.at < b.second.at; }));
    }
    written_.emplace(std::pair(event, text), Written{now});
    return text;
  }
  Written& written = found->second;
  ++written.since;
  if (now - written.at < kInterval) return std::nullopt;
  const std::uint64_t times = written.since;
  written = {now};
  return text + " (" + std::to_string(times) + " times since it was last written)";
}

}  // namespace shardbus::runtime
