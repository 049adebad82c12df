#include "runtime/node/readiness.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace shardbus::runtime {
namespace {

const TypeTable* find(const AllocationTable& table, const std::string& name) {
  const auto found = std::find_if(table.types.begin(), table.types.end(),
                                  [&](const TypeTable& type) { return type.name == name; });
  return found == table.types.end() ? nullptr : &*found;
}

// A host that has nothing while another has several is about to get its share.
bool waits_for_share(const TypeTable& type, NodeKey self) {
  std::map<NodeKey, std::size_t> owned;
  for (const TableEntry& entry : type.entries) ++owned[entry.owner];
  if (owned.contains(self)) return false;
  return std::any_of(owned.begin(), owned.end(),
                     [](const auto& entry) { return entry.second > 1; });
}

// Whether the strategy has at least one shard for this node: some rightly give a node nothing.
bool has_share(const ClusterView& view, const HostedType& type, const NodeTraits& self) {
  const PlacementSettings& placement = type.placement;
  if (placement.spread_zones || !has_role(self, placement.role)) return false;
  if (placement.strategy == PlacementSettings{}.strategy) return true;
  if (placement.strategy != "weighted") return false;
  std::uint64_t capacity = 0;
  for (const auto& member : view.status.members) capacity += member.traits.capacity;
  return std::uint64_t{type.shard_count} * self.capacity >= capacity;
}

// Whether shards of the type are about to come: not while operators or versions hold moves up.
bool gets_shards(const ClusterView& view, const HostedType& type) {
  const std::vector<control::MemberStatus>& members = view.status.members;
  const auto self = std::find_if(members.begin(), members.end(), [&](const auto& one) {
    return one.member.node.key == view.status.self.key;
  });
  if (self == members.end() || !has_share(view, type, self->traits)) return false;
  const bool mixed = std::any_of(members.begin(), members.end(), [&](const auto& one) {
    return one.traits.version != self->traits.version;
  });
  const Orders& orders = view.table->orders;
  const auto named = [&](const std::vector<std::string>& names) {
    return std::binary_search(names.begin(), names.end(), view.status.self.name);
  };
  const bool pinned = std::any_of(orders.pins.begin(), orders.pins.end(),
                                  [&](const Pin& pin) { return pin.shard.type == type.name; });
  return !mixed && !pinned && !orders.suspended && !named(orders.cordoned) &&
         !named(orders.draining);
}

}  // namespace

std::string why_not_ready(const ClusterView& view, std::uint32_t members) {
  const control::ControlStatus& status = view.status;
  if (!status.in_cluster) {
    return "not a member of a cluster yet" + (view.waits_for.empty() ? "" : ": " + view.waits_for);
  }
  if (status.coordinator == kNoNode) return "no coordinator is known";
  if (!status.counted) return "the member set is not agreed yet";
  const auto up =
      std::count_if(status.members.begin(), status.members.end(),
                    [](const auto& member) { return member.member.state == MemberState::up; });
  if (up < static_cast<std::ptrdiff_t>(members)) {
    return std::to_string(up) + " of " + std::to_string(members) + " members are up";
  }
  for (const auto& member : status.members) {
    if (member.member.node.key == status.self.key && member.member.state != MemberState::up) {
      return "this node is not up yet";
    }
  }
  if (!status.held_back.empty()) return status.held_back;
  if (!status.strict_waits.empty()) return status.strict_waits;
  if (!status.differs.empty()) return status.differs;
  if (!status.handoffs.empty()) {
    return std::to_string(status.handoffs.size()) + " shards are moving";
  }
  for (const HostedType& host : view.hosts) {
    const TypeTable* type = find(*view.table, host.name);
    if (type == nullptr) return "type " + host.name + " has no shards given out";
    if (gets_shards(view, host) && waits_for_share(*type, status.self.key)) {
      return "this node has no shard of " + host.name + " yet";
    }
  }
  for (const TypeTable& type : view.table->types) {
    const auto unowned =
        std::count_if(type.entries.begin(), type.entries.end(),
                      [](const TableEntry& entry) { return entry.owner == kNoNode; });
    // Of a type that lost its last host nobody owns anything: that holds up nobody else.
    const bool hosted = unowned < static_cast<std::ptrdiff_t>(type.entries.size()) ||
                        std::any_of(view.hosts.begin(), view.hosts.end(),
                                    [&](const HostedType& host) { return host.name == type.name; });
    if (unowned > 0 && hosted) {
      return std::to_string(unowned) + " shards of " + type.name + " have no owner";
    }
  }
  return {};
}

void Readiness::update(std::shared_ptr<const ClusterView> view) {
  {
    const std::lock_guard lock(mutex_);
    view_ = std::move(view);
  }
  changed_.notify_all();
}

void Readiness::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

Status Readiness::wait(milliseconds timeout, std::uint32_t members,
                       const std::function<std::string()>& unsettled) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(mutex_);
  std::string why = "not started";
  for (;;) {
    if (closed_) return Status(Errc::stopped);
    const std::shared_ptr<const ClusterView> view = view_;
    if (view != nullptr) {
      lock.unlock();
      why = why_not_ready(*view, members);
      if (why.empty()) why = unsettled();
      if (why.empty()) return {};
      lock.lock();
    }
    if (std::chrono::steady_clock::now() >= deadline) return {Errc::timeout, why};
    // The data plane settles without a word; look again soon.
    changed_.wait_until(lock,
                        std::min(deadline, std::chrono::steady_clock::now() + milliseconds(20)));
  }
}

}  // namespace shardbus::runtime
