// What a cluster says about the entities of a workload, before and after it.
#pragma once

#include <cstdint>
#include <shardbus/client.hpp>
#include <string>
#include <vector>

#include "demo/ledger.hpp"

namespace shardbus_demo {

// The owner of each entity, by name. Throws std::logic_error where the cluster cannot tell.
std::vector<std::string> owners(const shardbus::Client& client,
                                const std::vector<Entity>& entities);

// Asks every entity through every broker. On each way in an ask follows all tells that went there,
// so the highest answer has them all.
std::vector<std::uint64_t> read_all(const std::vector<shardbus::Client>& clients,
                                    const std::vector<Entity>& entities);

// The entities whose counter is wrong, one line each.
std::vector<std::string> wrong_counters(const std::vector<Entity>& entities, const Death& death,
                                        const std::vector<std::uint64_t>& values);

}  // namespace shardbus_demo
