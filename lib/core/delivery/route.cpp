#include "core/delivery/route.hpp"

namespace shardbus::core {

Route::Step Route::open_fence() {
  fence_id_ = ++fences_;
  return {.release = false, .send_fence = true};
}

Route::Step Route::go_direct() {
  fence_id_ = 0;
  used_ = false;
  direct_ = true;
  via_ = entry_.owner;
  return {.release = via_ != kNoNode, .send_fence = false};
}

Route::Step Route::on_entry(const TableEntry& entry, Term rebuilt) {
  if (entry.generation < entry_.generation) {
    if (!outlived(entry, rebuilt)) return {};
    rare_.hit(Mark::unpublished_owner_died);
  }
  if (entry.generation == entry_.generation && entry_.owner != kNoNode) return {};
  entry_ = entry;
  if (!used_ || via_ == kNoNode) return go_direct();
  if (entry.owner == kNoNode) return {};
  if (fence_id_ == 0 && direct_ && entry.owner == via_)
    return {.release = true, .send_fence = false};
  rare_.hit_if(fence_id_ != 0, Mark::route_fenced_again);
  return open_fence();
}

Route::Step Route::on_fence_ok(std::uint64_t id, NodeKey node, Generation generation, bool there) {
  if (fence_id_ == 0 || id != fence_id_) {
    rare_.hit(Mark::fence_answer_other);
    return {};
  }
  if (generation < entry_.generation) {
    rare_.hit(Mark::fence_answer_older);
    // The fence came out at a node that this sender's knowledge has overtaken: what was sent before
    // is there, so the next fence starts there.
    if (via_ == node || !there) return {};  // asked again when the fence is overdue
    via_ = node;
    direct_ = true;
    return open_fence();
  }
  // The answer names an owner that is known to be dead: the fence is through, and there is no
  // owner.
  if (generation == entry_.generation && entry_.owner == kNoNode) {
    rare_.hit(Mark::fence_owner_dead);
    return go_direct();
  }
  entry_ = {node, generation};
  if (!there) return go_direct();
  fence_id_ = 0;
  via_ = node;
  direct_ = true;
  used_ = true;
  return {.release = true, .send_fence = false};
}

Route::Step Route::on_path_lost(std::uint64_t id) {
  if (fence_id_ == 0 || id != fence_id_) return {};
  rare_.hit(Mark::fence_path_lost);
  return go_direct();
}

Route::Step Route::on_dead(NodeKey node) {
  if (node == kNoNode) return {};
  if (entry_.owner == node) entry_.owner = kNoNode;
  if (via_ != node) return {};
  rare_.hit_if(fence_id_ != 0, Mark::fence_via_died);
  return go_direct();
}

Route::Step Route::on_way_lost(NodeKey node) {
  if (node == kNoNode || via_ != node) return {};
  return go_direct();
}

Route::Step Route::on_way_open(NodeKey node) {
  if (fence_id_ != 0 || direct_) return on_link_reset(node);
  if (entry_.owner != node || node == kNoNode) return {};
  return used_ ? open_fence() : go_direct();
}

Route::Step Route::on_link_reset(NodeKey node) {
  const bool open = fence_id_ != 0 && via_ == node;
  rare_.hit_if(open, Mark::fence_repeated);
  return {.release = false, .send_fence = open};
}

}  // namespace shardbus::core
