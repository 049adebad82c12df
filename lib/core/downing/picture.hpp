// Who hears whom, as far as one node can know: whom it reaches at all, who is on another side, and
// whose links are too bad to stay.
#pragma once

#include <map>
#include <vector>

#include "base/model/keys.hpp"

namespace shardbus::downing {

// What this node sees; also the tick of `Downing`.
struct View {
  MemberSet set;
  KeySet unreachable;  // what this node cannot hear, of those that take part in the set
  KeySet dead;         // proven
  // What the others say that they cannot hear; only of those that this node hears.
  std::map<NodeKey, KeySet> unreachable_by;
  KeySet leaving;  // who said that it leaves, or is leaving or exiting in the set
};

// A node whose link to another one on the same side is bad. `widely`: to most of them.
struct Outcast {
  NodeKey key;
  bool widely = false;
  friend bool operator==(const Outcast&, const Outcast&) = default;
};

// The dead are left out. A link is good only if each end hears the other.
struct Picture {
  std::vector<NodeKey> living;    // members, oldest first; then those of an uncounted removal
  KeySet ours;                    // reached over good links, also through others
  KeySet gone;                    // the other living ones
  std::vector<Outcast> outcasts;  // without them all of `ours` hear each other
};

// The outcasts are taken one by one: whoever has the most bad links, of equals the youngest. So one
// bad link costs one node, and a node with a bad cable costs only itself.
Picture picture_of(NodeKey self, const View& view);

}  // namespace shardbus::downing
