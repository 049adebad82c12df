#include "core/downing/picture.hpp"

#include <algorithm>

namespace shardbus::downing {
namespace {

class Links {
 public:
  Links(NodeKey self, const View& view) : self_(self), view_(view) {
    note(self, view.unreachable);
    for (const auto& [key, missed] : view.unreachable_by) {
      if (key != self) note(key, missed);
    }
  }

  // Somebody said that one end does not hear the other.
  [[nodiscard]] bool bad(NodeKey a, NodeKey b) const {
    const auto found = bad_.find(a);
    return found != bad_.end() && contains(found->second, b);
  }
  // Nobody said so, and one of the two was heard.
  [[nodiscard]] bool good(NodeKey a, NodeKey b) const {
    return (heard(a) || heard(b)) && !bad(a, b);
  }
  [[nodiscard]] bool any_bad(NodeKey key) const { return bad_.contains(key); }

 private:
  void note(NodeKey by, const KeySet& missed) {
    for (const NodeKey key : missed) {
      insert(bad_[by], key);
      insert(bad_[key], by);
    }
  }
  [[nodiscard]] bool heard(NodeKey key) const {
    return key == self_ || view_.unreachable_by.contains(key);
  }

  NodeKey self_;
  const View& view_;
  std::map<NodeKey, KeySet> bad_;
};

std::vector<NodeKey> living_of(const View& view) {
  std::vector<NodeKey> living;
  for (const Member& member : view.set.members) {
    if (!contains(view.dead, member.node.key)) living.push_back(member.node.key);
  }
  if (view.set.counted) return living;
  for (const NodeKey key : view.set.previous) {
    if (find_member(view.set, key) == nullptr && !contains(view.dead, key)) living.push_back(key);
  }
  return living;
}

KeySet reached_from(NodeKey self, std::vector<NodeKey> rest, const Links& links) {
  KeySet reached{self};
  std::vector<NodeKey> next{self};
  std::erase(rest, self);
  while (!next.empty() && !rest.empty()) {
    const NodeKey from = next.back();
    next.pop_back();
    std::erase_if(rest, [&](NodeKey to) {
      if (!links.good(from, to)) return false;
      insert(reached, to);
      next.push_back(to);
      return true;
    });
  }
  return reached;
}

std::vector<Outcast> outcasts_of(std::vector<NodeKey> rest, const Links& links) {
  std::vector<Outcast> result;
  std::size_t size = rest.size();
  std::erase_if(rest, [&](NodeKey key) { return !links.any_bad(key); });
  for (;;) {
    std::size_t most = 0;
    auto worst = rest.end();
    for (auto one = rest.begin(); one != rest.end(); ++one) {
      const auto bad = static_cast<std::size_t>(std::count_if(
          rest.begin(), rest.end(), [&](NodeKey other) { return links.bad(*one, other); }));
      if (bad < most || bad == 0) continue;
      most = bad;
      worst = one;
    }
    if (worst == rest.end()) return result;
    result.push_back({*worst, most * 2 > size - 1});
    rest.erase(worst);
    --size;
  }
}

}  // namespace

Picture picture_of(NodeKey self, const View& view) {
  const Links links(self, view);
  Picture picture;
  picture.living = living_of(view);
  picture.ours = reached_from(self, picture.living, links);
  std::vector<NodeKey> ours;
  for (const NodeKey key : picture.living) {
    if (contains(picture.ours, key)) {
      ours.push_back(key);
    } else {
      insert(picture.gone, key);
    }
  }
  picture.outcasts = outcasts_of(std::move(ours), links);
  return picture;
}

}  // namespace shardbus::downing
