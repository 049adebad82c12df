// What a node hears: checks who speaks, feeds the cores, answers what can be answered at once.
// Decisions are taken later, once per batch (decide.cpp).
#include <algorithm>

#include "base/model/table.hpp"
#include "base/model/text.hpp"
#include "runtime/control/control_plane.hpp"

namespace shardbus::control {

// An own pause is noticed before the input that ends it is looked at.
bool ControlPlane::enter(Time now) {
  if (stopped_) return false;
  now_ = now;
  apply(detector_.step(now, failure::Tick{}));
  return !stopped_;
}

void ControlPlane::on_tick(Time now) {
  enter(now);
}

void ControlPlane::on_digest(Time now, const Digest& digest) {
  if (enter(now)) accept_digest(digest);
}

void ControlPlane::on_delta(Time now, NodeKey from, const TableDelta& delta) {
  if (enter(now)) handle(from, delta);
}

void ControlPlane::on_message(Time now, NodeKey from, const ControlMessage& message) {
  if (!enter(now)) return;
  std::visit([&](const auto& m) { handle(from, m); }, message);
}

void ControlPlane::on_traffic(Time now, NodeKey from) {
  if (enter(now)) apply(detector_.step(now, failure::Traffic{from}));
}

void ControlPlane::on_link_lost(Time now, NodeKey node) {
  if (enter(now)) apply(detector_.step(now, failure::LinkLost{node}));
}

// Of a node that already left, a refused connection says nothing (protocols.md A10).
void ControlPlane::on_proof_of_death(Time now, NodeKey node) {
  if (enter(now)) learn_dead(node, "connection refused");
}

void ControlPlane::on_hosted_types(Time now, std::vector<HostedType> hosts) {
  if (!enter(now)) return;
  hosts_ = std::move(hosts);
  types_changed_ = true;
  std::sort(hosts_.begin(), hosts_.end(),
            [](const HostedType& a, const HostedType& b) { return a.name < b.name; });
}

void ControlPlane::leave(Time now) {
  leaving_ = true;
  look_again();
  enter(now);
}

void ControlPlane::down(Time now, const std::string& name, const std::string& actor) {
  if (!enter(now)) return;
  for (const Member& member : membership_.set().members) {
    if (member.node.name != name) continue;
    learn_dead(member.node.key, actor.empty() ? "operator" : "operator " + actor);
    return;
  }
  event(Severity::warn, "membership.down_unknown", name);
}

void ControlPlane::accept_digest(const Digest& digest) {
  if (digest.from.key == self_) return;
  if (!known_cluster(digest) || !check_identity(digest)) return;
  const bool joins = cluster_id_ == 0 || digest.cluster_id == 0;
  if (joins) note_peer(digest);  // which may let this node in
  if (cluster_id_ == 0 || digest.cluster_id == 0) return;
  const auto changes = membership_.step(now_, membership::Seen{digest.from.key, digest.set});
  const bool missing =
      !changes.empty() && std::holds_alternative<membership::Missing>(changes.back());
  if (missing) return miss_set(digest);
  if (!joins) note_peer(digest);
  if (!changes.empty()) {
    apply(changes);
    if (stopped_) return;
    sync_members();
  }
  if (!takes_part(membership_.set(), digest.from.key)) {
    ++ignored_.unknown_sender;
    if (digest.set.stamp < membership_.set().stamp)
      apply({election::AnswerWithMine{digest.from.key}});
    return;
  }
  apply(detector_.step(now_, failure::Heard{digest.from.key}));
  heard_at_[digest.from.key] = now_;
  for (const NodeKey key : digest.dead) learn_dead(key, "told by a member");
  if (stopped_) return;
  feed_election();
  apply(election_.step(now_, election::DigestSeen{digest.from.key, digest.number, digest.vote,
                                                  digest.resigned, digest.set.stamp}));
  for (const Repeat& repeat : digest.repeats) {
    if (repeat.node == self_) lease_.step(now_, lease::DigestSeen{digest.from.key, repeat.digest});
  }
  const bool differs = digest.table == table_.version && digest.table_hash != table_hash_ &&
                       digest.from.key == digest.table.claimant;
  if (digest.table > table_.version) pull_table(digest.from.key, table_.version);
  if (differs) pull_table(digest.from.key, TableVersion{});
}

// What it says is of a set that this node does not know: it counts when it comes again with the
// list. That its sender lives can be seen now.
void ControlPlane::miss_set(const Digest& digest) {
  rare_.hit(Mark::set_asked_for);
  remember(digest.from);
  if (takes_part(membership_.set(), digest.from.key)) {
    apply(detector_.step(now_, failure::Heard{digest.from.key}));
    heard_at_[digest.from.key] = now_;
  }
  ask_for_set(digest.from.key);
}

// Who gets a digest over the link and has a newer set answers with its own, in full.
void ControlPlane::ask_for_set(NodeKey from) {
  if (now_ < set_pull_at_) return;
  set_pull_at_ = now_ + config_.pull_interval;
  send(from, numbered_digest(false));
}

// Clusters never merge by accident: the name and the random id must both fit.
bool ControlPlane::known_cluster(const Digest& digest) {
  const bool joins = digest.cluster_id == 0 || cluster_id_ == 0;
  if (digest.cluster == config_.cluster && (joins || digest.cluster_id == cluster_id_)) return true;
  if (++ignored_.other_cluster == 1) {
    event(Severity::warn, "digest.other_cluster", digest.from.name + " of " + digest.cluster);
  }
  return false;
}

// A newer incarnation of a name proves the end of the older ones.
bool ControlPlane::check_identity(const Digest& digest) {
  const auto known = peers_.find(digest.from.key);
  if (known != peers_.end() && digest.number <= known->second.number) {
    ++ignored_.old_digest;
    return false;
  }
  const MemberSet& mine = membership_.set();
  const bool as_mine = is_brief(digest.set) && digest.set.stamp == mine.stamp;
  const bool admitted =
      digest.cluster_id == cluster_id_ && takes_part(as_mine ? mine : digest.set, digest.from.key);
  return note_incarnation(digest.from, admitted);
}

// Returns false for what an older incarnation says, and for a second node of one name. `admitted`:
// the others have taken it for a member.
bool ControlPlane::note_incarnation(const NodeInfo& node, bool admitted) {
  if (node.name == config_.self.name) {
    // At another address it is a copy of our name and proves nothing while we live, unless the
    // others gave us up for it.
    const bool successor = node.peer == config_.self.peer || admitted;
    if (!successor) ++ignored_.duplicate_name;
    if (successor && node.incarnation > config_.self.incarnation) down_self("newer incarnation");
    return false;
  }
  const MemberSet& set = membership_.set();
  // Of one name there is one incarnation in a list.
  if (set.counted && find_member(set, node.key) != nullptr) return true;
  KeySet counted = keys_of(set.members);
  for (const NodeKey key : set.previous) insert(counted, key);
  for (const NodeKey key : counted) {
    const auto known = infos_.find(key);
    if (known == infos_.end() || key == node.key || known->second.name != node.name) continue;
    if (known->second.incarnation > node.incarnation) {
      ++ignored_.old_incarnation;
      rare_.hit(Mark::old_incarnation_refused);
      return false;
    }
    // Another machine of the same name is no proof while the first one is heard.
    const bool moved = known->second.peer != node.peer;
    if (moved && !contains(dead_, key) && detector_.reach(key) == failure::Reach::reachable) {
      ++ignored_.duplicate_name;
      return false;
    }
    rare_.hit_if(!contains(dead_, key), Mark::incarnation_ended);
    learn_dead(key, "newer incarnation");
  }
  return true;
}

void ControlPlane::note_peer(const Digest& digest) {
  remember(digest.from);
  for (const Member& member : digest.set.members) remember(member.node);
  const auto [known, added] = peers_.try_emplace(digest.from.key);
  Digest& peer = known->second;
  if (added) look_again();
  if (peer.leaving != digest.leaving || peer.unreachable != digest.unreachable) look_again();
  types_changed_ = types_changed_ || peer.hosts != digest.hosts;
  peer = digest;
  peer.set = brief_of(digest.set);
  if (cluster_id_ == 0 && digest.cluster_id != 0) learn_contact(digest);
}

void ControlPlane::handle(NodeKey from, const TableDelta& delta) {
  if (!takes_part(membership_.set(), from)) {
    ++ignored_.unknown_sender;
  } else if (delta.to <= table_.version) {
    ++ignored_.old_table;
  } else if (delta.from == table_.version) {
    see_table_of(delta.to.term);
    note_delta(delta);
    shardbus::apply(table_, delta);
    table_hash_ = table_hash(table_);
  } else {
    pull_table(from, table_.version);
  }
}

void ControlPlane::adopt_table(NodeKey from, const AllocationTable& table) {
  const bool mends = table.version == table_.version && from == table.version.claimant;
  if (!takes_part(membership_.set(), from)) {
    ++ignored_.unknown_sender;
  } else if (table.version > table_.version || mends) {
    see_table_of(table.version.term);
    note_table(table);
    table_ = table;
    table_hash_ = table_hash(table_);
    rare_.hit_if(mends, Mark::table_mended);
    if (mends) table_told_ = TableVersion{};
  } else {
    ++ignored_.old_table;
  }
}

// Who decides in an older term would go back behind this table.
void ControlPlane::see_table_of(Term term) {
  if (term > vote().term) apply(election_.step(now_, election::TermSeen{term}));
}

void ControlPlane::pull_table(NodeKey from, const TableVersion& have) {
  if (now_ < pull_at_) return;
  pull_at_ = now_ + config_.pull_interval;
  send(from, TablePull{have});
}

void ControlPlane::handle(NodeKey from, const TablePull& pull) {
  if (pull.have < table_.version) send(from, TablePart{table_});
}

// Whoever has repeated a newer term obeys no older one.
void ControlPlane::command(NodeKey from, Term term, ControlMessage message) {
  if (!takes_part(membership_.set(), from)) {
    ++ignored_.unknown_sender;
  } else if (term < vote().term) {
    ++ignored_.old_command;
    rare_.hit(Mark::old_command_refused);
  } else {
    outputs_.emplace_back(TellRegion{std::move(message)});
  }
}

void ControlPlane::handle(NodeKey from, const RegionAnswer& answer) {
  const NodeKey coordinator = election_.coordinator();
  if (deciding()) {
    apply(coordinator_.step(now_, answer));
  } else if (from == self_ && coordinator != kNoNode && coordinator != self_) {
    send(coordinator, answer);
  } else {
    ++ignored_.not_deciding;
  }
}

void ControlPlane::handle(NodeKey from, const RegionReport& report) {
  if (report.claimant == self_) {
    apply(coordinator_.step(now_, report));
  } else if (from == self_) {
    send(report.claimant, report);
  } else {
    ++ignored_.not_deciding;
  }
}

void ControlPlane::handle(NodeKey from, const DownRequest& request) {
  if (takes_part(membership_.set(), from)) learn_dead(request.node, "operator");
}

void ControlPlane::handle(NodeKey from, const Digest& digest) {
  if (digest.from.key != from) return;
  accept_digest(digest);
  const bool ours = digest.cluster == config_.cluster && cluster_id_ != 0 &&
                    (digest.cluster_id == 0 || digest.cluster_id == cluster_id_);
  const bool behind = !stopped_ && ours && digest.set.stamp < membership_.set().stamp;
  if (behind) apply({election::AnswerWithMine{from}});
}

}  // namespace shardbus::control
