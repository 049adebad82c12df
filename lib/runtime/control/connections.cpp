// What a node says, and to whom it keeps connections.
#include <algorithm>

#include "base/model/table.hpp"
#include "base/model/text.hpp"
#include "runtime/control/control_plane.hpp"

namespace shardbus::control {

void ControlPlane::flush() {
  sync_connections();
  if (table_told_ != table_.version) {
    table_told_ = table_.version;
    table_hash_ = table_hash(table_);
    count_loads();
    outputs_.emplace_back(TableChanged{table_});
  }
  publish();
}

// A version of the set may have been skipped: a member that was heard leaving and then is missing
// has left; any other one was removed as dead, even if this node has no proof of it. Who joins in a
// version that does not count yet is no member: that version may be given up, and the next
// coordinator lets the same incarnation in.
void ControlPlane::note_standing(NodeKey key, Connection& connection) {
  const MemberSet& set = membership_.set();
  if (contains(set.previous, key)) connection.member = true;  // of the list that counted last
  const Member* member = find_member(set, key);
  if (member == nullptr) return;
  if (set.counted || member->state != MemberState::joining) connection.member = true;
  const auto peer = peers_.find(key);
  const bool asks = peer != peers_.end() && peer->second.leaving;
  const bool going = member->state == MemberState::leaving || member->state == MemberState::exiting;
  connection.leaves = (asks || going) && detector_.reach(key) == failure::Reach::reachable;
}

Parting ControlPlane::parting(NodeKey key, const Connection& connection) const {
  if (contains(dead_, key)) return Parting::dead;
  if (!connection.member) return Parting::stranger;
  return connection.leaves ? Parting::left : Parting::dead;
}

// Who was never connected. A table or an answer may still name it, so the data plane has to know.
void ControlPlane::note_gone(NodeKey key) {
  if (gone_.contains(key)) return;
  gone_.add(key);
  outputs_.emplace_back(DisconnectNode{key, Parting::dead});
}

void ControlPlane::sync_connections() {
  KeySet wanted;
  const MemberSet& set = membership_.set();
  for (const Member& member : set.members) insert(wanted, member.node.key);
  for (const NodeKey key : set.previous) insert(wanted, key);
  for (const auto& [key, joiner] : joiners_) insert(wanted, key);
  if (cluster_id_ == 0) {
    for (const NodeInfo& contact : contacts_) insert(wanted, contact.key);
    if (join_coordinator_ != kNoNode) insert(wanted, join_coordinator_);
  }
  erase(wanted, self_);
  for (const NodeKey key : dead_) erase(wanted, key);
  for (auto it = connected_.begin(); it != connected_.end();) {
    note_standing(it->first, it->second);
    if (contains(wanted, it->first)) {
      ++it;
      continue;
    }
    const Parting how = parting(it->first, it->second);
    if (how != Parting::stranger) gone_.add(it->first);
    outputs_.emplace_back(DisconnectNode{it->first, how});
    it = connected_.erase(it);
  }
  for (const NodeKey key : wanted) {
    const auto info = infos_.find(key);
    if (info == infos_.end()) continue;
    const auto [connection, added] = connected_.try_emplace(key);
    if (!added) continue;
    note_standing(key, connection->second);
    outputs_.emplace_back(ConnectNode{info->second});
  }
}

void ControlPlane::count_loads() {
  loads_.clear();
  for (const TypeTable& type : table_.types) {
    for (const TableEntry& entry : type.entries) ++loads_[entry.owner];
  }
}

Digest ControlPlane::make_digest() {
  Digest digest;
  digest.cluster = config_.cluster;
  digest.cluster_id = cluster_id_;
  digest.from = config_.self;
  digest.vote = election_.vote();
  digest.resigned = election_.resigned();
  digest.set = brief_of(membership_.set());
  digest.unreachable = unheard().told;
  digest.dead = dead_;
  digest.hosts = hosts_;
  digest.table = table_.version;
  digest.table_hash = table_hash_;
  digest.leaving = leaving_;
  digest.traits = config_.traits;
  return digest;
}

// Of members of this node's set only: whoever is not in it any more is vouched for no longer.
std::vector<Repeat> ControlPlane::repeats() const {
  std::vector<Repeat> result;
  for (const Member& member : membership_.set().members) {
    const auto heard = peers_.find(member.node.key);
    if (heard == peers_.end() || contains(dead_, member.node.key)) continue;
    const std::vector<HostedType>& hosts = heard->second.hosts;
    const bool strict = std::any_of(hosts.begin(), hosts.end(),
                                    [](const HostedType& type) { return type.placement.strict; });
    if (strict) result.push_back({member.node.key, heard->second.number});
  }
  return result;
}

// The list goes out with the version, from who made it; and then from each member in turn, about
// one in each interval, for those that missed it. So its cost does not grow with the square of the
// nodes.
bool ControlPlane::list_is_due() const {
  const MemberSet& set = membership_.set();
  const bool news = set.stamp.claimant == self_ && set.stamp != published_.set.stamp;
  const std::uint64_t turns = std::max<std::uint64_t>(1, set.members.size());
  return news || (digest_number_ + self_.value) % turns == 0;
}

// The lease counts from the sending of a numbered digest, so each number goes out at once.
Digest ControlPlane::numbered_digest(bool with_list) {
  Digest digest = make_digest();
  if (with_list) digest.set = membership_.set();
  digest.number = ++digest_number_;
  lease_.step(now_, lease::DigestSent{digest.number});
  digest.repeats = repeats();
  if (const auto load = loads_.find(self_); load != loads_.end()) digest.load = load->second;
  if (election_.claiming()) digest.vote.digest = digest.number;
  apply(election_.step(now_, election::DigestSent{digest.number}));
  return digest;
}

// What changed goes out at once; a repeat of a newer digest of the same claimant can wait.
void ControlPlane::publish() {
  Digest digest = make_digest();
  digest.vote.digest = 0;
  publish_pending_ = !(digest == published_);
  const Duration wait = publish_pending_ ? config_.digest_gap : config_.digest_interval;
  if (now_ < published_at_ + wait) return;
  const bool with_list = list_is_due();
  published_ = std::move(digest);
  published_at_ = now_;
  publish_pending_ = false;
  Digest numbered = numbered_digest(true);
  // Fresh subscriptions lose what is published before they stand: a joiner and its coordinator also
  // use the link.
  const bool is_coordinator = election_.claiming();
  const Member* me = find_member(membership_.set(), self_);
  const bool settled = me != nullptr && me->state != MemberState::joining;
  if (!settled && election_.coordinator() != kNoNode && !is_coordinator) {
    send(election_.coordinator(), numbered);
  } else if (!settled && join_coordinator_ != kNoNode && cluster_id_ != 0) {
    send(join_coordinator_, numbered);
  }
  if (is_coordinator) {
    for (const Member& member : membership_.set().members) {
      if (member.state == MemberState::joining) send(member.node.key, numbered);
    }
  }
  if (!with_list) numbered.set = brief_of(numbered.set);
  outputs_.emplace_back(PublishDigest{std::move(numbered)});
}

void ControlPlane::send(NodeKey to, ControlMessage message) {
  const auto info = infos_.find(to);
  if (info == infos_.end() || to == self_) return;
  outputs_.emplace_back(SendControl{to, info->second, std::move(message)});
}

void ControlPlane::event(Severity severity, const char* name, std::string text) {
  outputs_.emplace_back(Event{severity, name, std::move(text)});
}

void ControlPlane::remember(const NodeInfo& node) {
  if (node.key != kNoNode) infos_.try_emplace(node.key, node);
}

}  // namespace shardbus::control
