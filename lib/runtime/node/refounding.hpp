// When a node that lost its cluster may found it anew: pure of clocks and sockets.
//
// After a pause of all machines, or of most, every member has given up and asks the others in vain.
// Nobody else can still be in the old cluster if a majority of its last members, this node counted,
// says that it is in none; and nobody who is in one is hidden if all who speak say so. Only the
// node that may found a cluster at its start does it, so two never do (DESIGN section 7).
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace shardbus::runtime {

class Refounding {
 public:
  // This node lost its place; `others` are the names of the other last members.
  void lost(std::vector<std::string> others) {
    others_ = std::move(others);
    free_.clear();
    since_ = kNever;
  }
  // The place was found again, or another one.
  void over() { lost({}); }
  // What a node said of itself.
  void heard(std::string_view name, bool in_cluster, Time now) {
    if (in_cluster) {
      since_ = kNever;
      free_.clear();
      return;
    }
    if (std::find(others_.begin(), others_.end(), name) != others_.end()) {
      free_[std::string(name)] = now;
    }
  }
  // True: found the cluster anew. It has been so for a while: somebody could have come.
  bool due(Time now) {
    const auto fresh = std::count_if(free_.begin(), free_.end(), [now](const auto& entry) {
      return now - entry.second < kFresh;
    });
    const auto counted = static_cast<std::size_t>(fresh) + 1;
    if (others_.empty() || 2 * counted <= others_.size() + 1) {
      since_ = kNever;
      return false;
    }
    since_ = std::min(since_, now);
    return now - since_ >= kPatience;
  }

  static constexpr Duration kFresh = std::chrono::seconds(1);
  static constexpr Duration kPatience = std::chrono::seconds(2);

 private:
  std::vector<std::string> others_;
  std::map<std::string, Time> free_;  // when each last said that it is in no cluster
  Time since_ = kNever;               // when a majority of them began to say so
};

}  // namespace shardbus::runtime
