// The newest generation that was accepted from each sender of a shard (rule 12).
//
// A sender's next message may not carry an older one. Most messages come in bursts of one sender,
// so the last one found is tried first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/region/region_types.hpp"

namespace shardbus::core {

class SenderMarks {
 public:
  // False: the message was overtaken by a newer route of its sender.
  bool admit(std::uint64_t sender, Generation stamped) {
    Generation& mark = find(sender);
    if (stamped < mark) return false;
    mark = stamped;
    return true;
  }
  void forget(std::uint64_t sender) {
    marks_.erase(sender);
    last_ = nullptr;
  }
  void clear() { (void)take(); }
  // Takes all of them out, ordered by sender; the oldest ones are left out beyond kMax, so that the
  // head of a stream fits a frame.
  std::vector<SenderMark> take() {
    std::vector<SenderMark> all;
    all.reserve(marks_.size());
    for (const auto& [sender, generation] : marks_) all.push_back({sender, generation});
    marks_.clear();
    last_ = nullptr;
    if (all.size() <= kMax) return all;
    std::sort(all.begin(), all.end(), [](const SenderMark& a, const SenderMark& b) {
      return std::pair(b.generation, a.sender) < std::pair(a.generation, b.sender);
    });
    all.resize(kMax);
    std::sort(all.begin(), all.end(),
              [](const SenderMark& a, const SenderMark& b) { return a.sender < b.sender; });
    return all;
  }
  void put(const std::vector<SenderMark>& marks) {
    clear();
    for (const SenderMark& mark : marks) marks_.emplace(mark.sender, mark.generation);
  }
  [[nodiscard]] std::size_t size() const { return marks_.size(); }

  static constexpr std::size_t kMax = 16384;

 private:
  Generation& find(std::uint64_t sender) {
    if (last_ == nullptr || last_->first != sender) last_ = &*marks_.try_emplace(sender).first;
    return last_->second;
  }

  std::map<std::uint64_t, Generation> marks_;
  std::pair<const std::uint64_t, Generation>* last_ = nullptr;  // elements of the map do not move
};

}  // namespace shardbus::core
