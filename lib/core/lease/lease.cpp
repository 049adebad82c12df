#include "core/lease/lease.hpp"

#include <algorithm>
#include <vector>

#include "base/model/text.hpp"
#include "base/overloaded.hpp"

namespace shardbus::lease {

void Lease::step(Time now, const Input& input) {
  std::visit(
      Overloaded{[&](const View& view) { set_ = view.set; },
                 [&](const DigestSent& digest) { sent_.add(digest.number, now, config_.lease); },
                 [&](const DigestSeen& digest) {
                   const auto sent = sent_.when(digest.repeated);
                   if (!sent) return;
                   Time& at = repeated_[digest.from];
                   at = std::max(at, *sent);
                 },
                 [&](const Drop&) {
                   sent_.clear();
                   repeated_.clear();
                 }},
      input);
  std::erase_if(repeated_, [this](const auto& entry) { return !takes_part(set_, entry.first); });
  measure(now);
}

// Of a set whose lineage is evidence nobody knows whether it is the only one.
void Lease::measure(Time now) {
  until_ = Time{};
  if (set_.evidence || find_member(set_, config_.self) == nullptr) return;
  until_ = until_of(now, keys_of(set_.members));
  if (!set_.counted) until_ = std::min(until_, until_of(now, set_.previous));
}

// The latest instant until which more than half of the list vouch for this node.
Time Lease::until_of(Time now, const KeySet& members) const {
  std::vector<Time> ends;
  for (const NodeKey key : members) {
    const auto repeated = repeated_.find(key);
    if (key == config_.self) {
      ends.push_back(now + config_.lease);
    } else if (repeated != repeated_.end()) {
      ends.push_back(repeated->second + config_.lease);
    }
  }
  const std::size_t needed = members.size() / 2 + 1;
  if (ends.size() < needed) return Time{};
  std::sort(ends.begin(), ends.end(), std::greater<>());
  return ends[needed - 1];
}

std::string Lease::state_text() const {
  std::string out = "lease until " + shardbus::to_text(until_.time_since_epoch());
  for (const auto& [key, at] : repeated_) {
    out += " " + shardbus::to_text(key) + ":" + shardbus::to_text(at.time_since_epoch());
  }
  return out;
}

}  // namespace shardbus::lease
