#include "transport/validate.hpp"

#include <algorithm>
#include <cctype>

#include "transport/endpoint.hpp"
#include "transport/seeds.hpp"
#include "wire/limits.hpp"

namespace shardbus::transport {
namespace {

Status bad(const std::string& what, const std::string& value, const std::string& range) {
  return {Errc::invalid_argument, what + " is " + value + "; allowed: " + range};
}

// Of a text that may be of any length.
std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string quoted = "\"" + std::string(text.substr(0, kShown)) + "\"";
  if (text.size() <= kShown) return quoted;
  return quoted + "... (" + std::to_string(text.size()) + " bytes)";
}

Status in_range(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return bad(name, std::to_string(value), std::to_string(low) + " to " + std::to_string(high));
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= wire::kNodeNameBytesMax &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == ':' || c == '-';
         });
}

Status traits(const NodeOptions& options) {
  const char* letters = "64 of letters, digits and . _ : -";
  if (!options.zone.empty() && !is_name(options.zone)) {
    return bad("zone", "\"" + options.zone + "\"", std::string("0 to ") + letters);
  }
  for (const std::string& role : options.roles) {
    if (!is_name(role)) return bad("a role", "\"" + role + "\"", std::string("1 to ") + letters);
  }
  if (options.roles.size() > wire::kRolesMax) {
    return bad("number of roles", std::to_string(options.roles.size()),
               "0 to " + std::to_string(wire::kRolesMax));
  }
  return in_range("capacity", options.capacity, 1, wire::kCapacityMax);
}

Status addresses(const NodeOptions& options) {
  const auto listen = transport::parse_endpoint(options.listen);
  if (!listen) return listen.error();
  const bool follows = options.peer_listen.empty() || options.gossip_listen.empty();
  if (follows && listen->port > 65533) {
    return {Errc::bad_address, options.listen +
                                   ": the ports after it are taken for nodes and "
                                   "gossip; choose one below 65534"};
  }
  for (const std::string* address : {&options.peer_listen, &options.gossip_listen}) {
    if (address->empty()) continue;
    const auto parsed = transport::parse_endpoint(*address);
    if (!parsed) return parsed.error();
  }
  for (const std::string& seed : options.seeds) {
    const auto parsed = parse_seed(seed);
    if (!parsed) return {Errc::bad_address, "seed " + parsed.error().text()};
  }
  const bool wildcard = listen->host == "0.0.0.0" || listen->host == "*" || listen->host == "::";
  if (wildcard && options.advertise.empty()) {
    return {Errc::invalid_argument,
            "listen is " + options.listen + ": set advertise to the host that others dial"};
  }
  return {};
}

Status downing(const NodeOptions& options) {
  const bool by_size = options.downing == DowningPolicy::static_quorum;
  if (by_size && options.quorum_size == 0) {
    return {Errc::invalid_argument,
            "downing = static-quorum needs quorum_size: how many members must reach each other"};
  }
  if (!by_size && options.quorum_size != 0) {
    return {Errc::invalid_argument, "quorum_size belongs to downing = static-quorum alone"};
  }
  if (!options.down_if_alone && options.downing != DowningPolicy::keep_oldest) {
    return {Errc::invalid_argument, "down_if_alone belongs to downing = keep-oldest alone"};
  }
  if (options.downing == DowningPolicy::lease_majority) {
    return {Errc::invalid_argument,
            "downing = lease-majority needs a lease store, not available yet"};
  }
  return {};
}

}  // namespace

Status validate(const NodeOptions& options) {
  if (options.cluster.empty() || options.cluster.size() > wire::kNodeNameBytesMax) {
    return bad("cluster", "\"" + options.cluster + "\"", "1 to 64 bytes");
  }
  if (!options.name.empty() && !is_name(options.name)) {
    return bad("name", "\"" + options.name + "\"", "1 to 64 of letters, digits and . _ : -");
  }
  Status endpoints = addresses(options);
  if (!endpoints) return endpoints;
  Status policy = downing(options);
  if (!policy) return policy;
  Status placed = traits(options);
  if (!placed) return placed;
  for (const Status& checked :
       {in_range("workers", options.workers, 0, 256),
        in_range("gossip_interval ms", options.gossip_interval.count(), 20, 300),
        in_range("failure_timeout ms", options.failure_timeout.count(), 500, 60'000),
        in_range("stable_after ms", options.stable_after.count(), 100, 300'000),
        in_range("quorum_size", options.quorum_size, 0, wire::kMembersMax),
        in_range("min_members", options.min_members, 1, wire::kMembersMax),
        in_range("handoff_timeout ms", options.handoff_timeout.count(), 100, 600'000),
        in_range("ping_interval ms", options.ping_interval.count(), 100, 60'000),
        in_range("client_credit", options.client_credit, 1, 1 << 20),
        in_range("peer_credit", options.peer_credit, 64, 1 << 20),
        in_range("buffered_messages", options.buffered_messages, 1, 1 << 24),
        in_range("sessions", options.sessions, 1, 1 << 20),
        in_range("pending_asks", options.pending_asks, 1, (1 << 24) - 1)}) {
    if (!checked) return checked;
  }
  return {};
}

Status validate(const EntityType& type) {
  if (type.name.empty() || type.name.size() > wire::kTypeBytesMax || type.name.front() == '$') {
    return bad("entity type", shown(type.name), "1 to 64 bytes, not starting with $");
  }
  if (!type.create) return bad("create of type " + type.name, "empty", "a function");
  Status shards = in_range("shard_count", type.options.shard_count, 1, wire::kShardCountMax);
  if (!shards) return shards;
  if (!type.options.role.empty() && !is_name(type.options.role)) {
    return bad("role of type " + type.name, "\"" + type.options.role + "\"",
               "0 to 64 of letters, digits and . _ : -");
  }
  return in_range("mailbox_messages", type.options.mailbox_messages, 1, 1'000'000);
}

Status validate(const Outgoing& message) {
  if (message.type.empty() || message.type.size() > wire::kTypeBytesMax) {
    return bad("entity type", shown(message.type), "1 to 64 bytes");
  }
  const bool admin = message.type.front() == '$';
  if ((message.id.empty() && !admin) || message.id.size() > wire::kEntityIdBytesMax) {
    return bad("entity id", shown(message.id), "1 to 256 bytes");
  }
  if (message.method.empty() || message.method.size() > wire::kMethodBytesMax) {
    return bad("method", shown(message.method), "1 to 128 bytes");
  }
  if (message.payload.size() > wire::kPayloadBytesMax) {
    return {Errc::too_large, "the payload has " + std::to_string(message.payload.size()) +
                                 " bytes; the limit is " + std::to_string(wire::kPayloadBytesMax)};
  }
  return {};
}

Status validate(const Outgoing& message, milliseconds timeout) {
  Status valid = validate(message);
  if (!valid) return valid;
  return in_range("timeout ms", timeout.count(), 1, wire::kTimeLeftMsMax);
}

}  // namespace shardbus::transport
