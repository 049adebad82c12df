#include "base/model/type_settings.hpp"

namespace shardbus {
namespace {

std::string on_off(bool value) {
  return value ? "true" : "false";
}

}  // namespace

std::string differing_setting(const std::string& who, const std::string& what,
                              const std::string& cluster, const std::string& other,
                              const std::string& option) {
  return what + ": the cluster has " + cluster + ", " + who + " has " + other + "; set " + option +
         " to the same on all nodes";
}

std::string differing_type(const std::string& who, const HostedType& cluster,
                           const HostedType& other) {
  const PlacementSettings& a = cluster.placement;
  const PlacementSettings& b = other.placement;
  const std::string type = " of type '" + cluster.name + "'";
  const auto option = [](const char* name, const char* builtin) {
    return std::string("TypeOptions::") + name + " (of the built-in types: " + builtin + ")";
  };
  if (a.strategy != b.strategy) {
    return differing_setting(who, "placement" + type, a.strategy, b.strategy,
                             option("placement", "builtin_placement"));
  }
  if (a.role != b.role) {
    return differing_setting(who, "role" + type, "'" + a.role + "'", "'" + b.role + "'",
                             option("role", "builtin_role"));
  }
  if (a.spread_zones != b.spread_zones) {
    return differing_setting(who, "spread_zones" + type, on_off(a.spread_zones),
                             on_off(b.spread_zones),
                             option("spread_zones", "builtin_spread_zones"));
  }
  if (a.strict != b.strict) {
    const auto name = [](bool strict) { return std::string(strict ? "strict" : "available"); };
    return differing_setting(who, "consistency" + type, name(a.strict), name(b.strict),
                             option("consistency", "builtin_consistency"));
  }
  return {};
}

std::string differing_shard_count(const std::string& who, const HostedType& other,
                                  std::uint32_t cluster) {
  return differing_setting(who, "shard count of type '" + other.name + "'", std::to_string(cluster),
                           std::to_string(other.shard_count), "TypeOptions::shard_count");
}

}  // namespace shardbus
