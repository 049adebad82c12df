// Distinct types for the numbers that must not be mixed up; conversion is always explicit.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace shardbus {

// Integers of the wire stay exact in languages whose numbers are doubles.
inline constexpr std::uint64_t kMaxWireInteger = (std::uint64_t{1} << 53) - 1;

template <class Tag, class T>
struct StrongId {
  T value{};
  constexpr StrongId() = default;
  constexpr explicit StrongId(T v) : value(v) {}
  // clang-tidy 14 takes the defaulted comparison's zero for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

// Names one incarnation of one node: `node_key(name, incarnation)`, 53 bits. Zero names nobody.
using NodeKey = StrongId<struct NodeKeyTag, std::uint64_t>;
// Number of a shard within its entity type.
using ShardId = StrongId<struct ShardIdTag, std::uint32_t>;
// One coordinator's reign; only grows. Zero: none yet.
using Term = StrongId<struct TermTag, std::uint64_t>;

inline constexpr NodeKey kNoNode{};

// The right of one owner to one shard. Ordered by term, then claimant, then counter, so that two
// coordinators that know nothing of each other never give the same one
// (PROTOCOL.md section "Generations"). The default value is older than every real generation.
struct Generation {
  Term term;
  NodeKey claimant;
  std::uint64_t counter = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): a defaulted <=> compares with 0
  friend constexpr auto operator<=>(const Generation&, const Generation&) = default;
  [[nodiscard]] constexpr bool known() const { return term.value != 0; }
};

}  // namespace shardbus

template <class Tag, class T>
struct std::hash<shardbus::StrongId<Tag, T>> {
  std::size_t operator()(const shardbus::StrongId<Tag, T>& id) const noexcept {
    return std::hash<T>{}(id.value);
  }
};
