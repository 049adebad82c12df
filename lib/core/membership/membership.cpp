#include "core/membership/membership.hpp"

#include <algorithm>

#include "base/model/text.hpp"

namespace shardbus::membership {

std::vector<Output> Membership::step(Time now, const Input& input) {
  now_ = now;
  std::vector<Output> out;
  if (const auto* created = std::get_if<Create>(&input)) create(created->node, out);
  if (const auto* set = std::get_if<Seen>(&input)) seen(*set, out);
  if (const auto* turn = std::get_if<Decide>(&input)) decide(*turn, out);
  was_member_ = was_member_ || in_set();
  return out;
}

void Membership::create(const NodeInfo& node, std::vector<Output>& out) {
  set_ =
      MemberSet{Stamp{Term{1}, node.key, 1}, {Member{node, MemberState::up, 1}}, {}, true, false};
  out.emplace_back(Proposed{set_.stamp, "created"});
}

void Membership::seen(const Seen& input, std::vector<Output>& out) {
  Stamp& repeated = repeated_[input.from];
  repeated = std::max(repeated, input.set.stamp);
  const Stamp before = set_.stamp;
  const bool counted_before = set_.counted;
  if (input.set.stamp < set_.stamp) {
    ++ignored_old_;
    return;
  }
  if (input.set.stamp == set_.stamp) {
    merge_equal(input.set, out);
  } else if (is_brief(input.set)) {
    if (!takes_part(set_, input.from)) repeated_.erase(input.from);
    out.emplace_back(Missing{input.set.stamp});
    return;
  } else {
    rare_.hit_if(input.set.stamp.number == set_.stamp.number, Mark::two_versions_of_number);
    set_ = input.set;
    out.emplace_back(Adopted{set_.stamp});
  }
  if (!takes_part(set_, input.from)) repeated_.erase(input.from);
  if (set_.stamp == before && set_.counted == counted_before) return;
  std::erase_if(repeated_, [this](const auto& entry) { return !takes_part(set_, entry.first); });
  note_removal(out);
}

// The flags travel: whoever knows that a version counted tells the others.
void Membership::merge_equal(const MemberSet& other, std::vector<Output>& out) {
  rare_.hit_if(other.evidence && !set_.evidence, Mark::evidence_travels);
  set_.evidence = set_.evidence || other.evidence;
  if (set_.counted || !other.counted) return;
  set_.counted = true;
  set_.previous.clear();
  out.emplace_back(Counted{set_.stamp, set_.evidence});
}

// Only a counted removal is one: an uncounted version may still be given up. A version that does
// not even count this node jointly follows one that counted.
void Membership::note_removal(std::vector<Output>& out) {
  if (removed_ || !was_member_ || takes_part(set_, config_.self)) return;
  removed_ = true;
  rare_.hit(Mark::removed_itself);
  out.emplace_back(SelfRemoved{set_.stamp});
}

void Membership::decide(const Decide& input, std::vector<Output>& out) {
  if (set_.members.empty()) return;
  if (set_.stamp.term != input.term || set_.stamp.claimant != config_.self) {
    rare_.hit_if(!set_.counted, Mark::uncounted_taken_over);
    propose(set_.members, input.term, "own term", out);
  }
  // A set of one counts at once, so several changes may follow each other here.
  for (int changes = 0; changes < 16; ++changes) {
    if (!set_.counted && !try_count(input.wishes, out)) return;
    if (!change(input.wishes, out)) return;
  }
}

// Evidence stays with the set for good. Where those that are heard are enough for more, it waits
// for their repeats.
bool Membership::try_count(const Wishes& wishes, std::vector<Output>& out) {
  const KeySet dead = joined(wishes.dead, wishes.presumed);
  KeySet agreeing{config_.self};
  for (const auto& [key, stamp] : repeated_) {
    if (stamp == set_.stamp) insert(agreeing, key);
  }
  const Authority authority = config_.quorum(set_, agreeing, dead);
  if (authority == Authority::none) return false;
  const bool worth_waiting = authority == Authority::evidence && !set_.evidence &&
                             now_ < proposed_at_ + config_.full_patience &&
                             config_.quorum(set_, wishes.reachable, dead) == Authority::full;
  if (worth_waiting) return false;
  set_.counted = true;
  set_.previous.clear();
  set_.evidence = set_.evidence || authority == Authority::evidence;
  rare_.hit_if(set_.evidence, Mark::counted_by_evidence);
  out.emplace_back(Counted{set_.stamp, set_.evidence});
  return true;
}

bool Membership::change(const Wishes& wishes, std::vector<Output>& out) {
  return remove_first(wishes.dead, "dead", out) ||
         remove_first(wishes.unreachable, "unreachable", out) || confirm(wishes, out) ||
         add_first(wishes.joiners, out) || advance_states(wishes, out);
}

// The lineage begins anew: if a majority of the whole set repeats this version, it counts in full.
bool Membership::confirm(const Wishes& wishes, std::vector<Output>& out) {
  if (!wishes.confirmed || !set_.evidence) return false;
  set_.evidence = false;
  propose(set_.members, set_.stamp.term, "confirmed", out);
  return true;
}

bool Membership::remove_first(const KeySet& keys, const char* why, std::vector<Output>& out) {
  for (const NodeKey key : keys) {
    if (key == config_.self || find_member(set_, key) == nullptr) continue;
    std::vector<Member> members = set_.members;
    std::erase_if(members, [key](const Member& member) { return member.node.key == key; });
    propose(std::move(members), set_.stamp.term,
            "remove " + shardbus::to_text(key) + " (" + why + ")", out);
    return true;
  }
  return false;
}

// A new incarnation takes the place of the old one in the same version.
bool Membership::add_first(const std::vector<NodeInfo>& joiners, std::vector<Output>& out) {
  for (const NodeInfo& joiner : joiners) {
    const auto same_name =
        std::find_if(set_.members.begin(), set_.members.end(),
                     [&](const Member& member) { return member.node.name == joiner.name; });
    const bool known = same_name != set_.members.end();
    if (known && same_name->node.incarnation >= joiner.incarnation) continue;
    if (known && same_name->node.key == config_.self) continue;
    std::vector<Member> members = set_.members;
    std::erase_if(members, [&](const Member& member) { return member.node.name == joiner.name; });
    members.push_back(Member{joiner, MemberState::joining, set_.stamp.number + 1});
    propose(std::move(members), set_.stamp.term,
            std::string(known ? "replace " : "add ") + shardbus::to_text(joiner.key), out);
    return true;
  }
  return false;
}

bool Membership::advance_states(const Wishes& wishes, std::vector<Output>& out) {
  std::vector<Member> members = set_.members;
  for (auto member = members.begin(); member != members.end(); ++member) {
    const NodeKey key = member->node.key;
    const auto repeated = repeated_.find(key);
    const bool in_view =
        key == config_.self || (repeated != repeated_.end() && repeated->second == set_.stamp);
    const bool still_decides = keeps_quorum(key, wishes);
    std::string what = shardbus::to_text(key);
    if (member->state == MemberState::joining && in_view) {
      member->state = MemberState::up;
    } else if (member->state == MemberState::up && contains(wishes.leaving, key)) {
      member->state = MemberState::leaving;
    } else if (member->state == MemberState::leaving && contains(wishes.drained, key)) {
      member->state = MemberState::exiting;
    } else if (member->state == MemberState::exiting && key != config_.self && still_decides) {
      members.erase(member);
      propose(std::move(members), set_.stamp.term, "remove " + what + " (exiting)", out);
      return true;
    } else {
      const bool waits = member->state == MemberState::exiting && key != config_.self;
      rare_.hit_if(waits, Mark::leaver_keeps_quorum);
      continue;
    }
    what += std::string(" ") + shardbus::to_text(member->state);
    propose(std::move(members), set_.stamp.term, what, out);
    return true;
  }
  return false;
}

// Who leaves in good order must not take the quorum along: it waits until enough others are heard.
bool Membership::keeps_quorum(NodeKey without, const Wishes& wishes) const {
  MemberSet after = set_;
  std::erase_if(after.members, [&](const Member& m) { return m.node.key == without; });
  return config_.quorum(after, wishes.reachable, joined(wishes.dead, wishes.presumed)) !=
         Authority::none;
}

// The list that counted last stays in the denominator until the new one counts.
void Membership::propose(std::vector<Member> members, Term term, std::string what,
                         std::vector<Output>& out) {
  if (set_.counted) set_.previous = keys_of(set_.members);
  set_.members = std::move(members);
  set_.stamp = Stamp{term, config_.self, set_.stamp.number + 1};
  set_.counted = false;
  proposed_at_ = now_;
  out.emplace_back(Proposed{set_.stamp, std::move(what)});
}

std::string to_text(const Output& output) {
  if (const auto* adopted = std::get_if<Adopted>(&output)) {
    return "adopted " + shardbus::to_text(adopted->stamp);
  }
  if (const auto* counted = std::get_if<Counted>(&output)) {
    return "counted " + shardbus::to_text(counted->stamp) + (counted->evidence ? " evidence" : "");
  }
  if (const auto* proposed = std::get_if<Proposed>(&output)) {
    return "proposed " + shardbus::to_text(proposed->stamp) + " " + proposed->change;
  }
  if (const auto* missing = std::get_if<Missing>(&output)) {
    return "missing " + shardbus::to_text(missing->stamp);
  }
  return "self_removed " + shardbus::to_text(std::get<SelfRemoved>(output).stamp);
}

std::string Membership::state_text() const {
  std::string out = "membership " + shardbus::to_text(set_) + " repeated";
  for (const auto& [key, stamp] : repeated_) {
    out += " " + shardbus::to_text(key) + "=" + shardbus::to_text(stamp);
  }
  return out + " ignored_old=" + std::to_string(ignored_old_);
}

}  // namespace shardbus::membership
