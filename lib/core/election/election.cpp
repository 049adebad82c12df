#include "core/election/election.hpp"

#include <algorithm>

#include "base/model/text.hpp"
#include "base/overloaded.hpp"

namespace shardbus::election {
Election::Election(Config config) : config_(std::move(config)), random_(config_.seed) {}

std::vector<Output> Election::step(Time now, const Input& input) {
  now_ = now;
  std::vector<Output> out;
  std::visit(Overloaded{[&](const View& view) {
                          view_ = view;
                          std::erase_if(peers_, [this](const auto& peer) {
                            return !takes_part(view_.set, peer.first);
                          });
                          max_term_ = std::max(max_term_, view_.set.stamp.term);
                        },
                        [&](const DigestSeen& digest) { digest_seen(now, digest, out); },
                        [&](const DigestSent& sent) { sent_.add(sent.number, now, config_.lease); },
                        [&](const TermSeen& seen) { max_term_ = std::max(max_term_, seen.term); },
                        [&](const GiveUp&) {
                          if (claiming()) resign(now, out);
                        },
                        [](const Tick&) {}},
             input);
  settle(now, out);
  return out;
}

void Election::digest_seen(Time now, const DigestSeen& digest, std::vector<Output>& out) {
  if (!takes_part(view_.set, digest.from) || contains(view_.dead, digest.from)) {
    ++ignored_;
    return;
  }
  Peer& peer = peers_[digest.from];
  if (digest.number <= peer.number) {
    ++ignored_;
    return;
  }
  peer.number = digest.number;
  if (!(peer.vote == digest.vote)) peer.changed = now;
  peer.vote = digest.vote;
  peer.resigned = std::max(peer.resigned, digest.resigned);
  max_term_ = std::max(max_term_, digest.vote.term);
  note_support(digest, peer);
  const bool claims = digest.vote.claimant == digest.from && digest.resigned < digest.vote.term;
  if (claims) consider(now, digest, out);
}

// The age of a repeat is counted from when I asked, not from when the answer came.
void Election::note_support(const DigestSeen& digest, Peer& peer) {
  if (digest.vote.claimant != config_.self || digest.vote.term != vote_.term || !claiming()) {
    peer.supports_until = Time{};
    return;
  }
  const auto sent = sent_.when(digest.vote.digest);
  rare_.hit_if(!sent && digest.vote.digest != 0, Mark::repeat_too_late);
  if (sent) peer.supports_until = *sent + config_.lease;
}

void Election::consider(Time now, const DigestSeen& digest, std::vector<Output>& out) {
  if (!takes_part(view_.set, config_.self)) return;
  if (digest.stamp < view_.set.stamp) {
    ++refused_;
    rare_.hit(Mark::older_set_shown);
    out.emplace_back(AnswerWithMine{digest.from});
    return;
  }
  // Without a quorum the own claim is worth nothing: give way to a later one.
  if (claiming() && authority_ == Authority::none && digest.vote.term > vote_.term) {
    rare_.hit(Mark::claim_gives_way);
    resign(now, out);
  }
  if (!may_repeat(now, digest)) {
    ++refused_;
    note_refusal(digest.vote);
    return;
  }
  const bool news = vote_.term != digest.vote.term || vote_.claimant != digest.from;
  vote_ = Vote{digest.vote.term, digest.from, digest.number};
  promise_until_ = now + config_.lease;
  if (news) out.emplace_back(Repeated{vote_});
}

void Election::note_refusal(const Vote& vote) {
  if (vote.term < vote_.term) return rare_.hit(Mark::lower_term_refused);
  rare_.hit(vote.term == vote_.term ? Mark::second_claimant_refused : Mark::promise_kept);
}

bool Election::may_repeat(Time now, const DigestSeen& digest) const {
  if (find_member(view_.set, digest.from) == nullptr) return false;
  if (config_.break_repeat_lower_term && !claiming()) return true;
  if (digest.vote.term < vote_.term) return false;
  if (digest.vote.term == vote_.term) return digest.from == vote_.claimant;
  if (claiming()) return false;
  return digest.from == vote_.claimant || promise_over(now);
}

bool Election::released(NodeKey claimant, Term term) const {
  if (claimant == config_.self) return resigned_ >= term;
  const auto peer = peers_.find(claimant);
  return peer != peers_.end() && peer->second.resigned >= term;
}

bool Election::promise_over(Time now) const {
  return vote_.claimant == kNoNode || now >= promise_until_ ||
         contains(view_.dead, vote_.claimant) || released(vote_.claimant, vote_.term);
}

// Whether a member seems to be bound to somebody else who is alive. Only saves useless claims,
// which would disturb a coordinator that this node cannot hear; safety does not rest on it.
bool Election::promised_elsewhere(Time now, const Peer& peer) const {
  const NodeKey claimant = peer.vote.claimant;
  return claimant != kNoNode && claimant != config_.self && !contains(view_.dead, claimant) &&
         !released(claimant, peer.vote.term) && now < peer.changed + config_.lease;
}

Authority Election::measure(Time now) const {
  if (!claiming() || !takes_part(view_.set, config_.self)) return Authority::none;
  KeySet agreeing{config_.self};
  for (const auto& [key, peer] : peers_) {
    if (peer.supports_until > now) insert(agreeing, key);
  }
  return count(agreeing);
}

Authority Election::count(const KeySet& agreeing) const {
  return config_.quorum(view_.set, agreeing, joined(view_.dead, view_.presumed));
}

bool Election::reaches_quorum(Time now) const {
  KeySet reached{config_.self};
  for (const auto& [key, peer] : peers_) {
    if (contains(view_.unreachable, key) || !takes_part(view_.set, key)) continue;
    if (!promised_elsewhere(now, peer)) insert(reached, key);
  }
  return count(reached) != Authority::none;
}

// Who is up and stays; if nobody of the living is, anybody who lives: the set must not be orphaned.
std::vector<NodeKey> Election::candidates() const {
  std::vector<NodeKey> staying;
  std::vector<NodeKey> living;
  for (const Member& member : view_.set.members) {
    const NodeKey key = member.node.key;
    if (contains(view_.dead, key) || contains(view_.presumed, key)) continue;
    living.push_back(key);
    const bool stays = member.state == MemberState::up && !contains(view_.leaving, key);
    if (stays) staying.push_back(key);
  }
  return staying.empty() ? living : staying;
}

int Election::rank() const {
  int older = 0;
  for (const NodeKey key : candidates()) {
    if (key == config_.self) return older;
    if (!contains(view_.unreachable, key)) ++older;
  }
  return -1;
}

// Whether a member cannot repeat this term, because it repeated a higher one or gave its repeat of
// this one to somebody else: then only a new term can win it.
bool Election::contested() const {
  return max_term_ > vote_.term ||
         std::any_of(peers_.begin(), peers_.end(), [this](const auto& peer) {
           return peer.second.vote.term == vote_.term && peer.second.vote.claimant != config_.self;
         });
}

void Election::settle(Time now, std::vector<Output>& out) {
  if (claiming()) {
    leaderless_ = false;
    const Authority before = authority_;
    set_authority(measure(now), out);
    if (authority_ != Authority::none) {
      const bool alone = view_.set.members.size() == 1;
      rare_.hit_if(alone && before == Authority::full, Mark::lone_claim_kept);
      if (contested()) {
        rare_.hit(Mark::claims_above);
        claim(out);
      }
    } else if (before != Authority::none) {
      rare_.hit(Mark::quorum_lost);
      without_quorum_since_ = now;
    } else if (now >= without_quorum_since_ + config_.lease) {
      resign(now, out);
    }
    return;
  }
  set_authority(Authority::none, out);
  if (!promise_over(now)) {
    leaderless_ = false;
    return;
  }
  if (!leaderless_) leaderless_since_ = now;
  leaderless_ = true;
  const int older = rank();
  // The younger wait in turn, in case none of the older ones can do it.
  if (older < 0 || now < back_off_until_ || now < leaderless_since_ + 2 * older * config_.lease)
    return;
  if (reaches_quorum(now)) claim(out);
}

void Election::resign(Time now, std::vector<Output>& out) {
  resigned_ = vote_.term;
  set_authority(Authority::none, out);
  const auto lease = static_cast<std::uint64_t>(config_.lease.count());
  back_off_until_ = now + Duration(static_cast<std::int64_t>(random_.below(lease)));
  out.emplace_back(Resigned{resigned_});
}

void Election::claim(std::vector<Output>& out) {
  max_term_ = Term{std::max(max_term_, vote_.term).value + 1};
  vote_ = Vote{max_term_, config_.self, 0};
  promise_until_ = Time{};
  without_quorum_since_ = now_;
  for (auto& [key, peer] : peers_) peer.supports_until = Time{};
  out.emplace_back(Claimed{vote_.term});
  set_authority(measure(now_), out);
}

void Election::set_authority(Authority authority, std::vector<Output>& out) {
  const Term term = claiming() ? vote_.term : authority_term_;
  if (authority == authority_ && term == authority_term_) return;
  const bool silent = authority == Authority::none && authority_ == Authority::none;
  authority_ = authority;
  authority_term_ = term;
  if (!silent) out.emplace_back(AuthorityChanged{authority, term});
}

NodeKey Election::coordinator() const {
  if (contains(view_.dead, vote_.claimant) || released(vote_.claimant, vote_.term)) return kNoNode;
  return vote_.claimant;
}

Time Election::next_deadline() const {
  Time next = kNever;
  const auto at = [&](Time when) {
    if (when > now_) next = std::min(next, when);
  };
  for (const auto& [key, peer] : peers_) {
    if (claiming()) {
      at(peer.supports_until);
    } else {
      at(peer.changed + config_.lease);
    }
  }
  if (claiming()) {
    if (authority_ == Authority::none) at(without_quorum_since_ + config_.lease);
    return next;
  }
  if (rank() < 0) return kNever;
  at(promise_until_);
  at(back_off_until_);
  if (leaderless_) at(leaderless_since_ + 2 * rank() * config_.lease);
  return next;
}

std::string to_text(const Output& output) {
  return std::visit(
      Overloaded{
          [](const Claimed& o) { return "claimed " + std::to_string(o.term.value); },
          [](const Repeated& o) { return "repeated " + shardbus::to_text(o.vote); },
          [](const Resigned& o) { return "resigned " + std::to_string(o.term.value); },
          [](const AnswerWithMine& o) { return "answer_with_mine " + shardbus::to_text(o.to); },
          [](const AuthorityChanged& o) {
            return std::string("authority ") + shardbus::to_text(o.authority) + " in " +
                   std::to_string(o.term.value);
          }},
      output);
}

std::string Election::state_text() const {
  std::string out = "election vote " + shardbus::to_text(vote_) + " resigned " +
                    std::to_string(resigned_.value) + " authority " +
                    shardbus::to_text(authority_) + " max_term " + std::to_string(max_term_.value);
  for (const auto& [key, peer] : peers_) {
    out += " " + shardbus::to_text(key) + ":" + shardbus::to_text(peer.vote);
  }
  return out + " ignored=" + std::to_string(ignored_) + " refused=" + std::to_string(refused_);
}

}  // namespace shardbus::election
