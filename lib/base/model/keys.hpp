// Sets of node keys as ordered vectors: what digests carry and what quorums are counted over.
#pragma once

#include <algorithm>
#include <vector>

#include "base/ids.hpp"
#include "base/model/cluster.hpp"

namespace shardbus {

// Ordered, without repeats. The functions below keep it so.
using KeySet = std::vector<NodeKey>;

inline bool contains(const KeySet& keys, NodeKey key) {
  return std::binary_search(keys.begin(), keys.end(), key);
}

// Returns whether `key` is new.
inline bool insert(KeySet& keys, NodeKey key) {
  const auto place = std::lower_bound(keys.begin(), keys.end(), key);
  if (place != keys.end() && *place == key) return false;
  keys.insert(place, key);
  return true;
}

inline bool erase(KeySet& keys, NodeKey key) {
  const auto place = std::lower_bound(keys.begin(), keys.end(), key);
  if (place == keys.end() || *place != key) return false;
  keys.erase(place);
  return true;
}

inline KeySet joined(KeySet keys, const KeySet& more) {
  for (const NodeKey key : more) insert(keys, key);
  return keys;
}

inline KeySet keys_of(const std::vector<Member>& members) {
  KeySet keys;
  for (const Member& member : members) insert(keys, member.node.key);
  return keys;
}

inline const Member* find_member(const MemberSet& set, NodeKey key) {
  for (const Member& member : set.members) {
    if (member.node.key == key) return &member;
  }
  return nullptr;
}

// Says which version it is and whether it counted; the list is that of its stamp.
inline bool is_brief(const MemberSet& set) {
  return set.members.empty() && set.stamp.number != 0;
}

inline MemberSet brief_of(const MemberSet& set) {
  return MemberSet{set.stamp, {}, {}, set.counted, set.evidence};
}

// Whether `key` takes part in counting: a member, or one of the list that is still counted jointly.
inline bool takes_part(const MemberSet& set, NodeKey key) {
  return find_member(set, key) != nullptr || (!set.counted && contains(set.previous, key));
}

}  // namespace shardbus
