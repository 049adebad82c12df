// What operators and tests see of the control plane.
#include "base/model/text.hpp"
#include "runtime/control/control_plane.hpp"

namespace shardbus::control {

ControlStatus ControlPlane::status() const {
  ControlStatus status;
  const MemberSet& set = membership_.set();
  status.self = config_.self;
  status.in_cluster = in_set() && !stopped_;
  status.leaving = leaving_;
  status.cluster_id = cluster_id_;
  status.term = vote().term;
  status.coordinator = election_.coordinator();
  status.authority = authority();
  status.stamp = set.stamp;
  status.counted = set.counted;
  status.evidence = set.evidence;
  status.table = table_.version;
  status.min_members = config_.min_members;
  status.downing = downing::to_text(config_.downing);
  status.held_back = held_back();
  status.strict_waits = strict_waits();
  status.differs = own_differences_;
  for (const auto& [key, info] : infos_) {
    if (find_member(set, key) == nullptr) status.strangers.emplace(key, info.name);
  }
  const KeySet going = leaving();
  for (const Member& member : set.members) {
    const NodeKey key = member.node.key;
    MemberStatus row;
    row.member = member;
    row.leaving = contains(going, key);
    if (const auto heard = peers_.find(key); heard != peers_.end())
      row.traits = heard->second.traits;
    if (key == self_) row.traits = config_.traits;
    if (key != self_) {
      row.reach = contains(dead_, key) ? failure::Reach::dead : detector_.reach(key);
      row.phi = detector_.phi(now_, key);
    }
    if (const auto load = loads_.find(key); load != loads_.end()) row.load = load->second;
    status.members.push_back(std::move(row));
  }
  if (deciding()) {
    status.handoffs = coordinator_.handoffs();
    status.waiting_moves = coordinator_.waiting_moves();
  }
  return status;
}

std::string ControlPlane::name_of(NodeKey node) const {
  if (node == self_) return config_.self.name;
  const auto info = infos_.find(node);
  return info == infos_.end() ? "#" + std::to_string(node.value) : info->second.name;
}

std::string ControlPlane::state_text() const {
  const auto count = [](const char* name, std::uint64_t value) {
    return std::string(" ") + name + "=" + std::to_string(value);
  };
  return config_.self.name + " " + shardbus::to_text(self_) + (stopped_ ? " stopped" : "") +
         (leaving_ ? " leaving" : "") + "\n  " + membership_.state_text() + "\n  " +
         election_.state_text() + "\n  " + detector_.state_text() + "\n  " + downing_.state_text() +
         "\n  " + coordinator_.state_text() + "\n  table " + shardbus::to_text(table_) +
         "\n  ignored" + count("other_cluster", ignored_.other_cluster) +
         count("old_digest", ignored_.old_digest) +
         count("old_incarnation", ignored_.old_incarnation) +
         count("duplicate_name", ignored_.duplicate_name) +
         count("unknown_sender", ignored_.unknown_sender) +
         count("old_command", ignored_.old_command) + count("old_table", ignored_.old_table) +
         count("unknown_death", ignored_.unknown_death) +
         count("not_deciding", ignored_.not_deciding) + "\n";
}

}  // namespace shardbus::control
