// What follows from what was heard: feeds each core with the outputs of the others until nothing
// changes any more.
#include <algorithm>

#include "base/model/table.hpp"
#include "base/model/text.hpp"
#include "base/overloaded.hpp"
#include "runtime/control/control_plane.hpp"

namespace shardbus::control {
namespace {

// A set of one counts at once, so a round may lead to the next; more than this means a fault.
constexpr int kMaxRounds = 16;
constexpr std::size_t kStrangersMax = 64;

}  // namespace

void ControlPlane::settle() {
  forget_joiners();
  for (int round = 0; round < kMaxRounds; ++round) {
    sync_members();
    feed_downing();
    if (stopped_) return;
    feed_election();
    apply(election_.step(now_, election::Tick{}));
    maybe_leave();
    if (stopped_ || !decide_members()) break;
  }
  if (stopped_) return;
  note_doubted();
  learn_types();
  decide_shards();
  ask_to_join();
}

void ControlPlane::sync_members() {
  const MemberSet& set = membership_.set();
  const auto buried = [&](NodeKey key) { return !takes_part(set, key); };
  if (std::erase_if(dead_, buried) > 0) unheard_stale_ = true;
  std::erase_if(heard_at_, [&](const auto& heard) { return !takes_part(set, heard.first); });
  for (const Member& member : set.members) {
    const NodeKey key = member.node.key;
    if (key == self_ || detector_.watches(key)) continue;
    apply(detector_.step(now_, failure::Watch{key}));
    unheard_stale_ = true;
    if (contains(dead_, key)) apply(detector_.step(now_, failure::ProofOfDeath{key}));
  }
  for (const NodeKey key : detector_.watched()) {
    if (takes_part(set, key)) continue;
    apply(detector_.step(now_, failure::Forget{key}));
    unheard_stale_ = true;
  }
  forget_strangers();
}

// Strangers are remembered only to tell their old digests from new ones; many of them are not worth
// the memory.
void ControlPlane::forget_strangers() {
  if (peers_.size() <= membership_.set().members.size() + kStrangersMax) return;
  std::erase_if(peers_, [this](const auto& peer) {
    return !takes_part(membership_.set(), peer.first) && !joiners_.contains(peer.first);
  });
  const auto needed = [this](NodeKey key) {
    return key == self_ || connected_.contains(key) || peers_.contains(key) ||
           takes_part(membership_.set(), key) || joiners_.contains(key) || loads_.contains(key);
  };
  std::erase_if(infos_, [&](const auto& info) { return !needed(info.first); });
  std::erase_if(answered_at_, [&](const auto& answer) { return !needed(answer.first); });
}

void ControlPlane::apply(const std::vector<failure::Output>& outputs) {
  for (const failure::Output& output : outputs) {
    if (const auto* pause = std::get_if<failure::SelfPaused>(&output)) {
      own_pause(pause->late);
      continue;
    }
    const auto& changed = std::get<failure::Changed>(output);
    look_again();
    const bool good = changed.reach == failure::Reach::reachable;
    event(good ? Severity::info : Severity::warn, "failure.reach", to_text(output));
  }
}

// While this process stood still the others may have decided without it, if they were enough to.
// The policy knows whose side they have given up for by now.
void ControlPlane::own_pause(Duration late) {
  event(Severity::warn, "failure.self_paused", shardbus::to_text(late));
  lease_.step(now_, lease::Drop{});
  apply(election_.step(now_, election::GiveUp{}));
  if (!in_set()) return;
  const bool stays =
      downing::survives_own_pause(config_.downing, membership_.set(), all_leaving(), self_);
  if (!stays) down_self("paused for " + shardbus::to_text(late));
}

void ControlPlane::apply(const std::vector<membership::Output>& outputs) {
  for (const membership::Output& output : outputs) {
    look_again();
    types_changed_ = true;
    event(Severity::info, "membership.change", to_text(output));
    if (!std::holds_alternative<membership::SelfRemoved>(output)) continue;
    if (leaving_) {
      stopped_ = true;
      outputs_.emplace_back(LeaveDone{});
      return;
    }
    report_overlap(own_available_shards(), "the others removed this node");
    down_self("removed from the member set");
    return;
  }
}

void ControlPlane::apply(const std::vector<election::Output>& outputs) {
  for (const election::Output& output : outputs) {
    if (const auto* answer = std::get_if<election::AnswerWithMine>(&output)) {
      Time& last = answered_at_[answer->to];
      const bool recent = last != Time{} && now_ < last + config_.digest_interval / 4;
      if (recent) continue;
      last = now_;
      send(answer->to, numbered_digest(true));
      continue;
    }
    event(Severity::info, "election.change", to_text(output));
  }
}

void ControlPlane::apply(std::vector<coordinator::Output> outputs) {
  const auto deliver = [this](NodeKey to, ControlMessage message) {
    if (to == self_) {
      outputs_.emplace_back(TellRegion{std::move(message)});
    } else {
      send(to, std::move(message));
    }
  };
  for (coordinator::Output& output : outputs) {
    std::visit(Overloaded{[&](coordinator::Command& o) {
                            std::visit([&](auto& m) { deliver(o.to, std::move(m)); }, o.command);
                          },
                          [&](coordinator::AskReport& o) { deliver(o.to, o.request); },
                          [&](coordinator::Publish& o) {
                            note_delta(o.delta);
                            table_ = coordinator_.table();
                            outputs_.emplace_back(PublishDelta{std::move(o.delta)});
                          },
                          [](coordinator::Ordered&) {},  // order() has taken it
                          [&](coordinator::Note& o) {
                            event(Severity::info, o.name.c_str(), std::move(o.text));
                          }},
               output);
  }
}

void ControlPlane::apply(const std::vector<downing::Output>& outputs) {
  to_remove_.clear();
  KeySet gone;
  for (const downing::Output& output : outputs) {
    const auto* down = std::get_if<downing::DownSelf>(&output);
    rare_.hit(down != nullptr ? Mark::steps_down : Mark::silent_removed);
    if (down != nullptr) {
      report_overlap(own_available_shards(), down->reason);
      down_self(down->reason);
    } else if (const auto* without = std::get_if<downing::GoOnWithout>(&output)) {
      gone = without->members;
    } else {
      to_remove_ = std::get<downing::RemoveUnreachable>(output).members;
    }
  }
  presume(gone);
}

void ControlPlane::presume(const KeySet& gone) {
  if (gone == presumed_) return;
  const bool more = std::any_of(gone.begin(), gone.end(),
                                [this](NodeKey key) { return !contains(presumed_, key); });
  presumed_ = gone;
  look_again();
  if (more) {
    event(Severity::warn, "downing.goes_on",
          downing::to_text(config_.downing) + ": without " + shardbus::to_text(gone));
  }
}

void ControlPlane::feed_election() {
  if (!view_changed_) return;
  view_changed_ = false;
  lease_.step(now_, lease::View{membership_.set()});
  apply(election_.step(
      now_, election::View{membership_.set(), unheard().unreachable, dead_, leaving(), presumed_}));
}

// Returns whether the set changed, so that everything has to be looked at again.
bool ControlPlane::decide_members() {
  if (!deciding()) return false;
  const auto outputs = membership_.step(now_, membership::Decide{election_.vote().term, wishes()});
  apply(outputs);
  confirmed_ = confirmed_ && membership_.set().evidence;
  return !outputs.empty();
}

membership::Wishes ControlPlane::wishes() {
  membership::Wishes result;
  result.dead = dead_;
  result.presumed = presumed_;
  result.unreachable = to_remove_;
  result.reachable = keys_of(membership_.set().members);
  for (const NodeKey key : unheard().unreachable) erase(result.reachable, key);
  result.leaving = leaving();
  erase(result.leaving, self_);
  for (const Member& member : membership_.set().members) {
    const NodeKey key = member.node.key;
    const bool done = member.state == MemberState::leaving && coordinator_.drained(key);
    if (done) insert(result.drained, key);
  }
  result.joiners = joiners();
  // Whoever was removed since then, or will be next, the operator has not spoken of.
  result.confirmed = confirmed_ && confirmed_in_ == vote().term && dead_.empty() &&
                     to_remove_.empty() && presumed_.empty() &&
                     confirmed_members_ == keys_of(membership_.set().members);
  return result;
}

void ControlPlane::decide_shards() {
  confirmed_ = confirmed_ && deciding() && confirmed_in_ == vote().term;
  note_removals();
  if (!deciding()) {
    apply(coordinator_.step(now_, coordinator::Stop{}));
    apply(coordinator_.step(now_, coordinator::Tick{}));
    return;
  }
  note_held_back();
  apply(coordinator_.step(now_, coordinator_view()));
  apply(coordinator_.step(now_, coordinator::Decide{election_.vote().term, table_}));
  apply(coordinator_.step(now_, coordinator::Tick{}));
}

std::size_t ControlPlane::members_up() const {
  const std::vector<Member>& members = membership_.set().members;
  return static_cast<std::size_t>(
      std::count_if(members.begin(), members.end(),
                    [](const Member& member) { return member.state == MemberState::up; }));
}

// What had an owner once gets another one, however few are left: it is waited for.
std::string ControlPlane::held_back() const {
  const std::size_t up = members_up();
  if (!in_set() || up >= config_.min_members) return {};
  const auto waits = [this](const HostedType& type) {
    const TypeTable* table = find_type(table_, type.name);
    return table == nullptr ||
           std::any_of(table->entries.begin(), table->entries.end(),
                       [](const TableEntry& entry) { return !entry.generation.known(); });
  };
  if (std::none_of(hosts_.begin(), hosts_.end(), waits)) return {};
  return "below minimum members: " + std::to_string(up) + " of " +
         std::to_string(config_.min_members) + ", not allocating";
}

// Who was removed since the set counted in full, as far as this node saw it.
void ControlPlane::note_doubted() {
  const MemberSet& set = membership_.set();
  if (!set.evidence) doubted_.clear();
  if (!set.counted) return;
  for (const Member& member : last_counted_) {
    const bool left = member.state == MemberState::leaving || member.state == MemberState::exiting;
    const bool gone = find_member(set, member.node.key) == nullptr;
    if (set.evidence && gone && !left) doubted_.insert(member.node.name);
  }
  if (last_counted_ != set.members) last_counted_ = set.members;
}

std::string ControlPlane::strict_waits() const {
  const bool strict = std::any_of(known_types_.begin(), known_types_.end(),
                                  [](const HostedType& type) { return type.placement.strict; });
  if (!strict || !in_set() || !membership_.set().evidence) return {};
  std::string names;
  for (const std::string& name : doubted_) {
    const std::vector<Member>& members = membership_.set().members;
    const bool again = std::any_of(members.begin(), members.end(),
                                   [&](const Member& member) { return member.node.name == name; });
    names += (names.empty() ? "" : ", ") + name + (again ? " (before it started again)" : "");
  }
  const bool one = doubted_.size() == 1;
  return "strict types wait: " + (names.empty() ? "members" : names) + (one ? " was" : " were") +
         " removed by evidence alone; `shardbusctl confirm` if " + (one ? "it is" : "they are") +
         " gone for good";
}

void ControlPlane::note_strict_waits() {
  std::string now = strict_waits();
  if (now == strict_waits_) return;
  strict_waits_ = std::move(now);
  if (strict_waits_.empty()) {
    event(Severity::info, "strict.may_run", "the member set counts in full again");
  } else {
    event(Severity::warn, "strict.waits", strict_waits_);
  }
}

void ControlPlane::note_held_back() {
  std::string now = held_back();
  if (now == held_back_) return;
  held_back_ = std::move(now);
  if (!held_back_.empty()) {
    event(Severity::warn, "coordinator.held_back", held_back_);
  } else if (members_up() >= config_.min_members) {
    event(Severity::info, "coordinator.minimum_reached",
          std::to_string(members_up()) + " members are up, allocating");
  }
}

// Rule 13: a removed owner of strict shards runs them for a lease after the removal counted, at
// most; counted here, from when this node saw it.
void ControlPlane::note_removals() {
  const MemberSet& set = membership_.set();
  const bool sure = election_.authority() == Authority::full && set.counted && !set.evidence;
  if (!sure) {
    unchanged_since_ = kNever;
    return;
  }
  KeySet members = keys_of(set.members);
  const bool removed = std::any_of(counted_members_.begin(), counted_members_.end(),
                                   [&](NodeKey key) { return !contains(members, key); });
  if (unchanged_since_ == kNever || counted_in_ != vote().term || removed) unchanged_since_ = now_;
  counted_in_ = vote().term;
  counted_members_ = std::move(members);
}

// Clocks run at nearly the same rate: a quarter more is a wide margin.
Time ControlPlane::strict_free_at() const {
  if (unchanged_since_ == kNever || !dead_.empty()) return kNever;
  return unchanged_since_ + config_.lease + config_.lease / 4;
}

// Who differs in a type's settings runs none of its entities: it might take a strict one for
// another.
std::vector<HostedType> ControlPlane::agreeing(const std::vector<HostedType>& hosts) const {
  if (differences_.empty()) return hosts;
  std::vector<HostedType> result;
  for (const HostedType& type : hosts) {
    const HostedType* known = find_hosted(known_types_, type.name);
    if (known == nullptr || known->placement == type.placement) result.push_back(type);
  }
  return result;
}

coordinator::View ControlPlane::coordinator_view() const {
  coordinator::View view;
  view.first_homes = members_up() >= config_.min_members;
  view.strict_homes = now_ >= strict_free_at();
  for (const Member& member : membership_.set().members) {
    const NodeKey key = member.node.key;
    coordinator::Peer peer;
    peer.key = key;
    peer.name = member.node.name;
    peer.state = member.state;
    peer.dead = contains(dead_, key);
    const auto heard = peers_.find(key);
    if (key == self_) {
      peer.hosts = agreeing(hosts_);
      peer.traits = config_.traits;
      peer.leaving = leaving_;
    } else {
      peer.reachable = detector_.reach(key) == failure::Reach::reachable;
      peer.heard = heard != peers_.end();
      if (peer.heard) {
        peer.hosts = agreeing(heard->second.hosts);
        peer.traits = heard->second.traits;
        peer.leaving = heard->second.leaving;
      }
    }
    const bool newer = peer.reachable && !peer.dead && heard != peers_.end() &&
                       heard->second.table > table_.version;
    view.newer_table = view.newer_table || newer;
    view.peers.push_back(std::move(peer));
  }
  return view;
}

// The cores compare whole sets: that is for changes, not for each digest.
void ControlPlane::look_again() {
  unheard_stale_ = true;
  view_changed_ = true;
  downing_due_ = true;
}

void ControlPlane::feed_downing() {
  if (!takes_part(membership_.set(), self_)) return;
  if (!downing_due_ && now_ < downing_.next_deadline()) return;
  downing_due_ = false;
  downing::View view{membership_.set(), unheard().unreachable, dead_, {}, all_leaving()};
  for (const auto& [key, digest] : peers_) {
    if (detector_.reach(key) != failure::Reach::reachable) continue;
    if (takes_part(view.set, key)) view.unreachable_by[key] = digest.unreachable;
  }
  apply(downing_.step(now_, view));
  warn_of_members();
}

void ControlPlane::warn_of_members() {
  const std::size_t members = membership_.set().members.size();
  const bool many = downing::too_many_members(config_.downing, members);
  if (many == warned_of_members_) return;
  warned_of_members_ = many;
  if (!many) return;
  event(Severity::warn, "downing.too_many_members",
        std::to_string(members) + " members, quorum_size is " +
            std::to_string(config_.downing.quorum_size) + ": any split downs all of them");
}

void ControlPlane::maybe_leave() {
  if (!leaving_) return;
  if (others_stay() && election_.claiming()) {
    apply(election_.step(now_, election::GiveUp{}));
  }
  if (cluster_id_ != 0 && !nobody_else()) return;  // SelfRemoved will tell
  stopped_ = true;
  outputs_.emplace_back(LeaveDone{});
}

// Of a version that removes this node, those that it leaves behind say whether it counts.
bool ControlPlane::nobody_else() const {
  const std::vector<Member>& members = membership_.set().members;
  return !in_set() && !members.empty() &&
         std::all_of(members.begin(), members.end(),
                     [this](const Member& member) { return contains(dead_, member.node.key); });
}

// Those that left before it learn from it alone that the version without them counts, so the last
// one goes when it has said so.
void ControlPlane::leave_as_last() {
  const MemberSet& set = membership_.set();
  const bool alone = in_set() && set.members.size() == 1 && set.counted;
  if (!leaving_ || stopped_ || !alone || published_.set != brief_of(set)) return;
  rare_.hit(Mark::last_leaves);
  stopped_ = true;
  outputs_.emplace_back(LeaveDone{});
}

bool ControlPlane::others_stay() const {
  return !staying().empty();
}

// The others that are here and will be.
KeySet ControlPlane::staying() const {
  KeySet result;
  const KeySet going = leaving();
  for (const Member& member : membership_.set().members) {
    const NodeKey key = member.node.key;
    const bool stays = key != self_ && member.state == MemberState::up && !contains(going, key) &&
                       !contains(dead_, key) && detector_.reach(key) == failure::Reach::reachable;
    if (stays) insert(result, key);
  }
  return result;
}

std::vector<std::string> ControlPlane::only_here() const {
  std::vector<std::string> result;
  const KeySet others = leaving_ && !stopped_ ? staying() : KeySet{};
  if (others.empty()) return result;
  for (const HostedType& type : hosts_) {
    const bool elsewhere = std::any_of(others.begin(), others.end(), [&](NodeKey key) {
      const auto peer = peers_.find(key);
      return peer != peers_.end() && find_hosted(peer->second.hosts, type.name) != nullptr;
    });
    if (!elsewhere) result.push_back(type.name);
  }
  return result;
}

const ControlPlane::Unheard& ControlPlane::unheard() {
  if (!std::exchange(unheard_stale_, false)) return unheard_;
  unheard_ = Unheard{};
  for (const NodeKey key : detector_.watched()) {
    if (key == self_ || contains(dead_, key)) continue;
    const bool silent = detector_.reach(key) != failure::Reach::reachable;
    if (silent) insert(unheard_.unreachable, key);
    if (silent || !peers_.contains(key)) insert(unheard_.told, key);
  }
  return unheard_;
}

KeySet ControlPlane::all_leaving() const {
  KeySet result = leaving();
  for (const Member& member : membership_.set().members) {
    const bool stays = member.state == MemberState::up || member.state == MemberState::joining;
    if (!stays) insert(result, member.node.key);
  }
  return result;
}

KeySet ControlPlane::leaving() const {
  KeySet result;
  if (leaving_) insert(result, self_);
  for (const Member& member : membership_.set().members) {
    const auto peer = peers_.find(member.node.key);
    if (peer != peers_.end() && peer->second.leaving) insert(result, member.node.key);
  }
  return result;
}

void ControlPlane::learn_dead(NodeKey node, const std::string& why) {
  if (node == self_) {
    down_self("declared dead: " + why);
    return;
  }
  if (!takes_part(membership_.set(), node)) {
    ++ignored_.unknown_death;
    rare_.hit(Mark::death_of_stranger);
    return;
  }
  if (!insert(dead_, node)) return;
  // Also of who came and died between two looks: the table may still name it.
  const auto connection = connected_.find(node);
  if (connection == connected_.end()) {
    note_gone(node);
  } else {
    connection->second.member = true;
    connection->second.leaves = false;
  }
  look_again();
  event(Severity::warn, "failure.dead", shardbus::to_text(node) + ": " + why);
  apply(detector_.step(now_, failure::ProofOfDeath{node}));
}

// The others may have given shards away since a majority of them was heard last. `available` types
// went on all the time; this node tells, as nobody else can.
void ControlPlane::report_overlap(std::uint64_t shards, const std::string& why) {
  const Duration since = now_ - majority_heard_at();
  if (shards == 0 || since <= config_.digest_interval) return;
  event(Severity::warn, "owner.overlap",
        std::to_string(shards) + " shards may have had two owners for at most " +
            shardbus::to_text(since) + ": " + why);
}

// Those of strict types stop by themselves.
std::uint64_t ControlPlane::own_available_shards() const {
  std::uint64_t shards = 0;
  for (const TypeTable& type : table_.types) {
    const HostedType* known = find_hosted(known_types_, type.name);
    if (known != nullptr && known->placement.strict) continue;
    shards += static_cast<std::uint64_t>(
        std::count_if(type.entries.begin(), type.entries.end(),
                      [this](const TableEntry& entry) { return entry.owner == self_; }));
  }
  return shards;
}

// When the last of the members that make a majority with this node was heard.
Time ControlPlane::majority_heard_at() const {
  const std::vector<Member>& members = membership_.set().members;
  std::vector<Time> times;
  for (const Member& member : members) {
    const auto heard = heard_at_.find(member.node.key);
    if (member.node.key == self_) times.push_back(now_);
    if (heard != heard_at_.end()) times.push_back(heard->second);
  }
  const std::size_t needed = members.size() / 2 + 1;
  if (times.size() < needed) return now_;
  std::sort(times.begin(), times.end(), std::greater<>());
  return times[needed - 1];
}

void ControlPlane::down_self(const std::string& reason) {
  if (stopped_) return;
  stopped_ = true;
  event(Severity::error, "downing.down_self", reason);
  outputs_.emplace_back(DownSelf{reason});
}

}  // namespace shardbus::control
