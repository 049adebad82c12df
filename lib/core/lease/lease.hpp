// How long this node may run what it owns of strict types (protocols.md section 2, rules 11 to 14).
//
// A strict majority of the member set has to have repeated one of this node's digests lately; the
// age counts from the sending of that digest. Whoever repeats a set without this node repeats no
// digest of it any more, so one lease after such a set counts, this node has stopped. The rules for
// single entries (rule 12: what members store of them) are replaced by a simpler one of the
// coordinator: it gives no strict shard a home while any member has not reported to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "base/model/keys.hpp"
#include "base/sent_digests.hpp"
#include "base/time.hpp"

namespace shardbus::lease {

struct Config {
  NodeKey self;
  Duration lease = std::chrono::seconds(1);
};

// --- inputs ---
struct View {
  MemberSet set;
};  // whenever it changed
struct DigestSent {
  std::uint64_t number = 0;
};
struct DigestSeen {
  NodeKey from;
  std::uint64_t repeated = 0;  // the number of this node's digest that it repeats; 0: none
};
struct Drop {};  // this node stood still, or lost its place: nothing that was repeated counts
using Input = std::variant<View, DigestSent, DigestSeen, Drop>;

// Invariant: `until` never lies further ahead than one lease after a digest that a majority of
// every list that counts has repeated.
class Lease {
 public:
  explicit Lease(const Config& config) : config_(config) {}

  void step(Time now, const Input& input);
  // Handlers of strict types may start before this instant, which is in the past where there is no
  // majority. A cluster of one has a lease ahead of it, too, and renews it: what comes late to who
  // asks for it must end by itself.
  [[nodiscard]] Time until() const { return until_; }
  [[nodiscard]] std::string state_text() const;

 private:
  [[nodiscard]] Time until_of(Time now, const KeySet& members) const;
  void measure(Time now);

  Config config_;
  MemberSet set_;
  SentDigests sent_;
  std::map<NodeKey, Time> repeated_;  // when what they repeat was sent
  Time until_{};
};

}  // namespace shardbus::lease
