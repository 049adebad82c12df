#include "core/downing/picture.hpp"

#include <algorithm>

namespace shardbus::downing {
namespace {

class Links {
 public:
  Links(NodeKey self, const View& view) : self_(self), view_(view) {}

  // Somebody said that one end does not hear the other.
  [[nodiscard]] bool bad(NodeKey a, NodeKey b) const { return misses(a, b) || misses(b, a); }
  // Nobody said so, and one of the two was heard.
  [[nodiscard]] bool good(NodeKey a, NodeKey b) const {
    return (row(a) != nullptr || row(b) != nullptr) && !bad(a, b);
  }

 private:
  [[nodiscard]] const KeySet* row(NodeKey key) const {
    if (key == self_) return &view_.unreachable;
    const auto found = view_.unreachable_by.find(key);
    return found == view_.unreachable_by.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool misses(NodeKey by, NodeKey whom) const {
    const KeySet* missed = row(by);
    return missed != nullptr && contains(*missed, whom);
  }

  NodeKey self_;
  const View& view_;
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

KeySet reached_from(NodeKey self, const std::vector<NodeKey>& living, const Links& links) {
  KeySet reached{self};
  std::vector<NodeKey> next{self};
  while (!next.empty()) {
    const NodeKey from = next.back();
    next.pop_back();
    for (const NodeKey to : living) {
      if (contains(reached, to) || !links.good(from, to)) continue;
      insert(reached, to);
      next.push_back(to);
    }
  }
  return reached;
}

std::vector<Outcast> outcasts_of(std::vector<NodeKey> rest, const Links& links) {
  std::vector<Outcast> result;
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
    result.push_back({*worst, most * 2 > rest.size() - 1});
    rest.erase(worst);
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
