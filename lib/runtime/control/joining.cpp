// How a node gets into a cluster: it finds the coordinator through a seed, and asks until it sees
// itself in the member set.
#include <algorithm>

#include "base/model/table.hpp"
#include "base/model/text.hpp"
#include "base/model/type_settings.hpp"
#include "runtime/control/control_plane.hpp"

namespace shardbus::control {
namespace {

// A joiner that stopped asking is forgotten.
constexpr Duration kJoinerForgotten = std::chrono::seconds(2);
constexpr Duration kRefusedAgain = std::chrono::seconds(5);

// It was made a member and never heard of it. While it lives, and repeats nothing, its removal may
// never count; as a new incarnation it stands in nobody's way.
bool is_being_removed(const MemberSet& set, NodeKey node) {
  return takes_part(set, node) && find_member(set, node) == nullptr;
}

// Whether a later incarnation has been at its address, which is over then, as this one speaks from
// there: it began while the clock was behind. Once it is refused it comes back with a later number,
// and that proves it to everybody.
bool is_behind(const MemberSet& set, const std::map<NodeKey, NodeInfo>& infos,
               const NodeInfo& node) {
  KeySet keys = keys_of(set.members);
  for (const NodeKey key : set.previous) insert(keys, key);
  return std::any_of(keys.begin(), keys.end(), [&](NodeKey key) {
    const auto known = infos.find(key);
    return known != infos.end() && known->second.name == node.name &&
           known->second.peer == node.peer && known->second.incarnation > node.incarnation;
  });
}

JoinRefused duplicate(const NodeInfo& known, const NodeInfo& asks) {
  return {static_cast<std::uint16_t>(Errc::duplicate_node),
          "'" + known.name + "' is at " + known.peer + " and heard, another one asks from " +
              asks.peer};
}

}  // namespace

void ControlPlane::on_seed(Time now, const NodeInfo& contact, const std::string& cluster,
                           std::uint64_t cluster_id) {
  if (!enter(now) || contact.key == self_ || cluster_id == 0) return;
  if (cluster != config_.cluster) {
    ++ignored_.other_cluster;
    event(Severity::error, "join.cluster_mismatch",
          contact.name + " belongs to '" + cluster + "', this node to '" + config_.cluster + "'");
    return;
  }
  // A cluster that nobody speaks for any more is given up for one that answers.
  if (cluster_id_ == 0 && now - join_heard_ > kJoinerForgotten) {
    join_cluster_id_ = 0;
    join_coordinator_ = kNoNode;
    contacts_.clear();
  }
  const std::uint64_t mine = cluster_id_ != 0 ? cluster_id_ : join_cluster_id_;
  if (mine != 0 && mine != cluster_id) {
    ++ignored_.other_cluster;
    event(Severity::error, "join.two_clusters",
          contact.name + " belongs to another cluster of the same name");
    return;
  }
  if (cluster_id_ != 0) return;
  join_cluster_id_ = cluster_id;
  join_heard_ = now;
  remember(contact);
  const bool known = std::any_of(contacts_.begin(), contacts_.end(),
                                 [&](const NodeInfo& c) { return c.key == contact.key; });
  if (known) return;
  std::erase_if(contacts_, [&](const NodeInfo& c) { return c.name == contact.name; });
  contacts_.push_back(contact);
  join_at_ = now;
}

// Only a set that names this node makes it a member.
void ControlPlane::learn_contact(const Digest& digest) {
  if (join_cluster_id_ != 0 && digest.cluster_id != join_cluster_id_) return;
  join_heard_ = now_;
  if (find_member(digest.set, self_) != nullptr) {
    cluster_id_ = digest.cluster_id;
    look_again();
    event(Severity::info, "join.accepted", "cluster " + std::to_string(cluster_id_));
    return;
  }
  const NodeKey claimant = digest.vote.claimant;
  if (claimant == kNoNode || claimant == join_coordinator_) return;
  if (is_brief(digest.set)) return ask_for_set(digest.from.key);
  if (find_member(digest.set, claimant) == nullptr) return;
  join_coordinator_ = claimant;
  join_at_ = now_;
}

void ControlPlane::ask_to_join() {
  if (cluster_id_ != 0 || contacts_.empty() || now_ < join_at_) return;
  join_at_ = now_ + config_.join_interval;
  JoinRequest request{config_.cluster, config_.self, hosts_, settings()};
  // Workers keep no node out: those that differ are sent away once the cluster is known here.
  std::erase_if(request.hosts, [](const HostedType& type) { return type.attached; });
  if (join_coordinator_ != kNoNode) send(join_coordinator_, request);
  // The coordinator may have changed without this node hearing of it: contacts pass it on.
  for (const NodeInfo& contact : contacts_) {
    if (contact.key != join_coordinator_) send(contact.key, request);
  }
}

void ControlPlane::handle(NodeKey from, const JoinRequest& request) {
  if (request.node.key == self_ || !in_set()) return;
  // Also where nobody can decide: it may be the proof that lets somebody do so.
  const bool same_cluster = request.cluster == config_.cluster;
  if (same_cluster) note_incarnation(request.node, false);
  if (stopped_) return;
  // Nobody knows better than this node that it lives.
  const NodeInfo& self = config_.self;
  if (same_cluster && request.node.name == self.name && request.node.peer != self.peer) {
    return refuse(request, duplicate(self, request.node));
  }
  if (!deciding()) {
    if (same_cluster && is_being_removed(membership_.set(), request.node.key)) {
      rare_.hit(Mark::join_while_removed);
      return refuse(request, {static_cast<std::uint16_t>(Errc::stale_incarnation),
                              "this incarnation is being removed from the cluster"});
    }
    if (same_cluster && is_behind(membership_.set(), infos_, request.node)) {
      return refuse(request, {static_cast<std::uint16_t>(Errc::stale_incarnation),
                              "a later incarnation of '" + request.node.name + "' is known"});
    }
    const NodeKey coordinator = election_.coordinator();
    const bool direct = from == request.node.key;  // passed on once, never in a circle
    if (direct && coordinator != kNoNode && coordinator != self_) {
      rare_.hit(Mark::join_passed_on);
      send(coordinator, request);
    }
    return;
  }
  if (takes_part(membership_.set(), request.node.key)) {
    remember(request.node);
    send(request.node.key, numbered_digest(true));
    return;
  }
  JoinRefused refusal = check_join(request);
  if (refusal.code != 0) return refuse(request, std::move(refusal));
  remember(request.node);
  const auto [joiner, added] = joiners_.try_emplace(request.node.key);
  joiner->second = Joiner{request, now_};
  if (!added) return;
  joiner_order_.push_back(request.node.key);
  const std::string differs = other_settings(request);
  if (!differs.empty()) event(Severity::warn, "join.differs", request.node.name + ": " + differs);
}

std::vector<Setting> ControlPlane::settings() const {
  const auto text = [](Duration duration) {
    return duration == Duration::zero() ? "by size" : shardbus::to_text(duration);
  };
  return {{"downing", downing::to_text(config_.downing)},
          {"min_members", std::to_string(config_.min_members)},
          {"stable_after", text(config_.stable_after)},
          {"failure_timeout", text(config_.failure_timeout)}};
}

// Those that disturb, but endanger nothing: of both the values.
std::string ControlPlane::other_settings(const JoinRequest& request) const {
  std::string result;
  for (const Setting& mine : settings()) {
    for (const Setting& theirs : request.settings) {
      if (theirs.name != mine.name || theirs.value == mine.value) continue;
      result += (result.empty() ? "" : "; ") + mine.name + " is " + mine.value + " on '" +
                config_.self.name + "', " + theirs.value + " on '" + request.node.name + "'";
    }
  }
  return result;
}

// Not remembered: only its answer needs its address.
void ControlPlane::refuse(const JoinRequest& request, JoinRefused refusal) {
  event(Severity::warn, "join.refuse", request.node.name + ": " + refusal.text);
  outputs_.emplace_back(SendControl{request.node.key, request.node, std::move(refusal)});
}

// Code 0: welcome. The text shows both values.
JoinRefused ControlPlane::check_join(const JoinRequest& request) const {
  const auto refuse = [](Errc code, std::string text) {
    return JoinRefused{static_cast<std::uint16_t>(code), std::move(text)};
  };
  if (request.cluster != config_.cluster) {
    return refuse(Errc::cluster_mismatch, "node '" + config_.self.name + "' is of cluster '" +
                                              config_.cluster + "', node '" + request.node.name +
                                              "' of '" + request.cluster + "'");
  }
  if (gone_.contains(request.node.key)) {
    return refuse(Errc::stale_incarnation, "incarnation " +
                                               std::to_string(request.node.incarnation) +
                                               " was removed from the cluster");
  }
  for (const Member& member : membership_.set().members) {
    const NodeInfo& node = member.node;
    if (node.name != request.node.name) continue;
    if (node.peer != request.node.peer && !contains(dead_, node.key)) {
      return duplicate(node, request.node);
    }
    if (node.key == self_ || node.incarnation >= request.node.incarnation) {
      return refuse(Errc::stale_incarnation,
                    "incarnation " + std::to_string(node.incarnation) + " of '" + node.name +
                        "' is known, " + std::to_string(request.node.incarnation) + " asked");
    }
  }
  // Two policies might each let their own side go on.
  const std::string mine = downing::to_text(config_.downing);
  std::string other = downing::to_text(downing::Rules{});
  for (const Setting& setting : request.settings) {
    if (setting.name == "downing") other = setting.value;
  }
  if (other != mine) {
    return refuse(Errc::config_mismatch,
                  differing_setting("node '" + request.node.name + "'", "downing policy", mine,
                                    other, "downing, with quorum_size and down_if_alone,"));
  }
  return check_types(request);
}

JoinRefused ControlPlane::check_types(const JoinRequest& request) const {
  const auto refuse = [](std::string text) {
    return JoinRefused{static_cast<std::uint16_t>(Errc::config_mismatch), std::move(text)};
  };
  const std::string who = "node '" + request.node.name + "'";
  for (const HostedType& type : request.hosts) {
    const HostedType* placed = find_hosted(known_types_, type.name);
    std::string text;
    if (placed != nullptr) text = differing_type(who, *placed, type);
    if (!text.empty()) return refuse(std::move(text));
    const TypeTable* known = find_type(table_, type.name);
    if (known == nullptr || known->shard_count == type.shard_count) continue;
    return refuse(differing_shard_count(who, type, known->shard_count));
  }
  return {};
}

// A node may begin to host a type after it has joined, or two at the same time: whoever differs
// from the oldest host runs none of its entities.
void ControlPlane::learn_types() {
  if (!std::exchange(types_changed_, false)) return;
  known_types_.clear();
  std::vector<std::string> differences;
  own_differences_.clear();
  for (const Member& member : membership_.set().members) {
    const auto heard = peers_.find(member.node.key);
    const bool self = member.node.key == self_;
    if (!self && heard == peers_.end()) continue;
    for (const HostedType& type : self ? hosts_ : heard->second.hosts) {
      const HostedType* known = find_hosted(known_types_, type.name);
      if (known == nullptr) known_types_.push_back(type);
      if (known == nullptr || known->placement == type.placement) continue;
      differences.push_back(differing_type("node '" + member.node.name + "'", *known, type));
      if (self && own_differences_.empty()) own_differences_ = differences.back();
    }
  }
  std::sort(known_types_.begin(), known_types_.end(),
            [](const HostedType& a, const HostedType& b) { return a.name < b.name; });
  for (const std::string& text : differences) {
    const bool told =
        std::find(differences_.begin(), differences_.end(), text) != differences_.end();
    if (!told) event(Severity::error, "placement.settings_differ", text);
  }
  differences_ = std::move(differences);
}

void ControlPlane::handle(NodeKey /*from*/, const JoinRefused& refusal) {
  if (cluster_id_ != 0) return;
  const Errc code = static_cast<Errc>(refusal.code);
  const ErrorInfo& info = error_info(code);
  // The other node of this name may be an own former life that nobody missed yet.
  // What it is refused for may change: a setting here is another after a restart, one there, too.
  const bool stays = info.retry != Retry::same_call && code != Errc::duplicate_node;
  if (stays) join_at_ = now_ + kRefusedAgain;
  event(Severity::error, "join.refused", std::string(info.name) + ": " + refusal.text);
  if (code != Errc::stale_incarnation) return;
  rare_.hit(Mark::join_stale);
  down_self(refusal.text);
}

void ControlPlane::forget_joiners() {
  std::erase_if(joiner_order_, [this](NodeKey key) {
    const auto joiner = joiners_.find(key);
    const bool over =
        takes_part(membership_.set(), key) || now_ - joiner->second.asked > kJoinerForgotten;
    if (over) joiners_.erase(joiner);
    return over;
  });
}

std::vector<NodeInfo> ControlPlane::joiners() const {
  std::vector<NodeInfo> result;
  for (const NodeKey key : joiner_order_) result.push_back(joiners_.at(key).request.node);
  return result;
}

}  // namespace shardbus::control
