// In which setting two nodes differ, told so that either one's operator can mend it.
#pragma once

#include <cstdint>
#include <string>

#include "base/model/allocation.hpp"

namespace shardbus {

// "`what`: the cluster has `cluster`, `who` has `other`; set `option` to the same on all nodes".
// `who` is "node 'b'" where the text is read at other nodes, too.
std::string differing_setting(const std::string& who, const std::string& what,
                              const std::string& cluster, const std::string& other,
                              const std::string& option);

// The first setting of placement in which `other`, a type that `who` hosts, differs from what the
// cluster has; empty: none. Numbers of shards are not looked at: the table has them for good.
std::string differing_type(const std::string& who, const HostedType& cluster,
                           const HostedType& other);

std::string differing_shard_count(const std::string& who, const HostedType& other,
                                  std::uint32_t cluster);

}  // namespace shardbus
