// The one-line text of every value of the cluster: the same in traces, golden files and logs.
#pragma once

#include <string>
#include <vector>

#include "base/model/allocation.hpp"
#include "base/model/quorum.hpp"
#include "base/time.hpp"

namespace shardbus {

std::string to_text(NodeKey key);                       // "n7"; nobody is "-"
std::string to_text(const std::vector<NodeKey>& keys);  // "[n1 n2]"
std::string to_text(Duration duration);                 // "12.5ms"
std::string to_text(const Generation& generation);      // "term/claimant/counter"
std::string to_text(const Stamp& stamp);
std::string to_text(const TableVersion& version);
std::string to_text(const Vote& vote);  // "term/claimant#digest"
const char* to_text(MemberState state);
const char* to_text(RegionState state);
const char* to_text(RegionAnswerKind kind);
const char* to_text(Authority authority);
std::string to_text(const MemberSet& set);
std::string to_text(const PlacementSettings& settings);
std::string to_text(const NodeTraits& traits);
std::string to_text(const Digest& digest);
std::string to_text(const ShardName& shard);   // "type:shard"
std::string to_text(const TableEntry& entry);  // "owner@generation"
std::string to_text(const AllocationTable& table);
std::string to_text(const TableDelta& delta);
const char* to_text(Cause cause);
std::string to_text(const Orders& orders);
std::string to_text(const ControlMessage& message);

}  // namespace shardbus
