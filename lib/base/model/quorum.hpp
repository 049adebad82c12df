// How much right to decide a count of agreeing members gives (protocols.md section 2, rules 6, 7).
#pragma once

#include <cstdint>
#include <functional>

#include "base/model/keys.hpp"

namespace shardbus {

// `evidence`: a quorum only because proven dead members left the denominator. Ordered.
enum class Authority : std::uint8_t { none, evidence, full };

// Given by the downing policy: the authority of `agreeing` over a member set, where `dead` are
// proven dead and never count as agreeing.
using Quorum =
    std::function<Authority(const MemberSet&, const KeySet& agreeing, const KeySet& dead)>;

}  // namespace shardbus
