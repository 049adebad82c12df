// Decides whom this node repeats as coordinator, and whether it may itself decide
// (protocols.md section 2, rules 1 to 8 and 14).
// It knows nothing of shards, and it learns reachability and the member set from outside.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/marks.hpp"
#include "base/model/quorum.hpp"
#include "base/random.hpp"
#include "base/sent_digests.hpp"
#include "base/time.hpp"

namespace shardbus::election {

struct Config {
  NodeKey self;
  Duration lease = std::chrono::seconds(1);
  std::uint64_t seed = 1;
  Quorum quorum;
  // Only for the demonstration that the simulator sees it: repeat a lower term after a higher one.
  bool break_repeat_lower_term = false;
};

// --- inputs ---
struct View {  // whenever one of these changed
  MemberSet set;
  KeySet unreachable;
  KeySet dead;
  KeySet leaving;  // do not claim
  // Taken for gone by the downing policy: they leave the count as the dead do, but no promise to
  // them is broken.
  KeySet presumed{};
};
struct DigestSeen {
  NodeKey from;
  std::uint64_t number = 0;
  Vote vote;
  Term resigned;
  Stamp stamp;
};
struct DigestSent {
  std::uint64_t number;
};  // own; the lease counts from here
// Somebody has decided in this term: a coordinator of an older one has to claim a newer.
struct TermSeen {
  Term term;
};
struct GiveUp {};  // resign: paused too long, or leaving
struct Tick {};
using Input = std::variant<View, DigestSeen, DigestSent, TermSeen, GiveUp, Tick>;

// --- outputs ---
struct Claimed {
  Term term;
};
struct Repeated {
  Vote vote;
};  // another claimant or term than before
struct Resigned {
  Term term;
};
struct AnswerWithMine {
  NodeKey to;
};  // its set is older than ours: show it
struct AuthorityChanged {
  Authority authority;
  Term term;
};
using Output = std::variant<Claimed, Repeated, Resigned, AnswerWithMine, AuthorityChanged>;

std::string to_text(const Output& output);

// Invariants: the repeated term never goes back; one claimant per term; a promise is broken only
// for the same claimant, one that resigned, or one proven dead; authority is never claimed from
// repeats that answer a digest older than the lease.
class Election {
 public:
  explicit Election(Config config);

  std::vector<Output> step(Time now, const Input& input);
  [[nodiscard]] Time next_deadline() const;
  [[nodiscard]] std::string state_text() const;

  [[nodiscard]] const Vote& vote() const { return vote_; }
  [[nodiscard]] Term resigned() const { return resigned_; }
  [[nodiscard]] Authority authority() const { return authority_; }
  [[nodiscard]] bool claiming() const {
    return vote_.claimant == config_.self && vote_.term > resigned_;
  }
  // The claimant this node believes in; nobody where it resigned or died.
  [[nodiscard]] NodeKey coordinator() const;
  // Digests of nodes outside the set, or older than one already seen.
  [[nodiscard]] std::uint64_t ignored() const { return ignored_; }
  // Claims that this node did not repeat.
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] const Marks& marks() const { return rare_; }

 private:
  struct Peer {
    std::uint64_t number = 0;
    Vote vote;
    Term resigned;
    Time changed{};         // when its vote last changed: somebody it believes in is alive
    Time supports_until{};  // it repeated my digest; counted from its sending
  };

  void digest_seen(Time now, const DigestSeen& digest, std::vector<Output>& out);
  void note_support(const DigestSeen& digest, Peer& peer);
  void consider(Time now, const DigestSeen& digest, std::vector<Output>& out);
  [[nodiscard]] bool may_repeat(Time now, const DigestSeen& digest) const;
  void note_refusal(const Vote& vote);
  [[nodiscard]] bool released(NodeKey claimant, Term term) const;
  [[nodiscard]] bool promise_over(Time now) const;
  [[nodiscard]] bool promised_elsewhere(Time now, const Peer& peer) const;
  [[nodiscard]] Authority measure(Time now) const;
  [[nodiscard]] Authority count(const KeySet& agreeing) const;
  [[nodiscard]] bool contested() const;
  [[nodiscard]] bool reaches_quorum(Time now) const;
  [[nodiscard]] std::vector<NodeKey> candidates() const;  // oldest first
  [[nodiscard]] int rank() const;  // older members that should claim first; -1: must not claim
  void settle(Time now, std::vector<Output>& out);
  void resign(Time now, std::vector<Output>& out);
  void claim(std::vector<Output>& out);
  void set_authority(Authority authority, std::vector<Output>& out);

  Config config_;
  Random random_;
  View view_;
  std::map<NodeKey, Peer> peers_;
  Vote vote_;
  Time promise_until_{};
  Term resigned_;
  Term max_term_;
  Authority authority_ = Authority::none;
  Term authority_term_;
  SentDigests sent_;
  Time now_{};
  Time without_quorum_since_{};
  Time leaderless_since_{};
  bool leaderless_ = false;
  Time back_off_until_{};
  std::uint64_t ignored_ = 0;
  std::uint64_t refused_ = 0;
  Marks rare_;
};

}  // namespace shardbus::election
