#include "base/model/text.hpp"

#include <array>

namespace shardbus {
namespace {

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

std::string triple(Term term, NodeKey claimant, std::uint64_t value) {
  return number(term.value) + "/" + to_text(claimant) + "/" + number(value);
}

std::string text(const BeginHandoff& m) {
  return "begin " + to_text(m.shard) + " " + to_text(m.generation) + " next " + to_text(m.next);
}
std::string text(const PrepareHandoff& m) {
  return "prepare " + to_text(m.shard) + " " + to_text(m.generation) + " from " + to_text(m.from);
}
std::string text(const FreezeShard& m) {
  return "freeze " + to_text(m.shard) + " " + to_text(m.generation) + " from " + to_text(m.from);
}
std::string text(const RehomeShard& m) {
  return "rehome " + to_text(m.shard) + " " + to_text(m.generation) +
         (m.frozen.known() ? " frozen " + to_text(m.frozen) : "");
}
std::string text(const RegionAnswer& m) {
  return std::string(to_text(m.kind)) + " " + to_text(m.shard) + " " + to_text(m.generation) +
         " by " + to_text(m.node);
}
std::string text(const ReportRequest& m) {
  return "report? " + number(m.term.value) + "/" + to_text(m.claimant);
}
std::string text(const RegionReport& m) {
  std::string out = "report " + number(m.term.value) + " by " + to_text(m.node);
  for (const ReportedShard& shard : m.shards) {
    out +=
        " " + to_text(shard.shard) + "=" + to_text(shard.state) + "@" + to_text(shard.generation);
    if (shard.other != kNoNode) out += ">" + to_text(shard.other);
  }
  return out;
}
std::string text(const JoinRequest& m) {
  return "join? " + m.node.name + " " + to_text(m.node.key) + " hosts " + number(m.hosts.size());
}
std::string text(const JoinRefused& m) {
  return "refused " + number(m.code) + " " + m.text;
}
std::string text(const TablePull& m) {
  return "pull " + to_text(m.have);
}
std::string text(const TablePart& m) {
  return "table " + to_text(m.table);
}
std::string text(const DownRequest& m) {
  return "down " + to_text(m.node);
}
std::string text(const Digest& m) {
  return "digest " + to_text(m);
}
std::string text(const TableDelta& m) {
  return "delta " + to_text(m);
}

}  // namespace

std::string to_text(NodeKey key) {
  return key == kNoNode ? "-" : "n" + number(key.value);
}

std::string to_text(const std::vector<NodeKey>& keys) {
  std::string out = "[";
  for (const NodeKey key : keys) out += (out.size() > 1 ? " " : "") + to_text(key);
  return out + "]";
}

std::string to_text(Duration duration) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  std::string out = std::to_string(us / 1000);
  if (us % 1000 == 0) return out + "ms";
  std::string fraction = std::to_string(us % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  while (fraction.back() == '0') fraction.pop_back();
  return out + "." + fraction + "ms";
}

std::string to_text(const Generation& generation) {
  return triple(generation.term, generation.claimant, generation.counter);
}
std::string to_text(const Stamp& stamp) {
  return triple(stamp.term, stamp.claimant, stamp.number);
}
std::string to_text(const TableVersion& version) {
  return triple(version.term, version.claimant, version.number);
}
std::string to_text(const Vote& vote) {
  return number(vote.term.value) + "/" + to_text(vote.claimant) + "#" + number(vote.digest);
}

const char* to_text(MemberState state) {
  static constexpr std::array kNames = {"joining", "up", "leaving", "exiting", "down", "removed"};
  return kNames.at(static_cast<std::size_t>(state));
}
const char* to_text(RegionState state) {
  static constexpr std::array kNames = {"none",    "owner",    "sending",
                                        "forward", "incoming", "frozen"};
  return kNames.at(static_cast<std::size_t>(state));
}
const char* to_text(RegionAnswerKind kind) {
  return kind == RegionAnswerKind::owned ? "owned" : "frozen";
}
const char* to_text(Authority authority) {
  static constexpr std::array kNames = {"none", "evidence", "full"};
  return kNames.at(static_cast<std::size_t>(authority));
}

std::string to_text(const MemberSet& set) {
  std::string out = to_text(set.stamp) + (set.counted ? " counted" : " uncounted") +
                    (set.evidence ? " evidence" : "");
  if (is_brief(set)) return out;
  out += " [";
  bool first = true;
  for (const Member& member : set.members) {
    out += (first ? "" : " ") + to_text(member.node.key) + ":" + to_text(member.state);
    first = false;
  }
  out += "]";
  if (!set.counted) out += " previous " + to_text(set.previous);
  return out;
}

std::string to_text(const PlacementSettings& settings) {
  return settings.strategy + (settings.role.empty() ? "" : " on role " + settings.role) +
         (settings.spread_zones ? " spread over zones" : "") +
         (settings.strict ? " with consistency strict" : "");
}

std::string to_text(const NodeTraits& traits) {
  std::string out = "zone '" + traits.zone + "' roles [";
  for (std::size_t i = 0; i < traits.roles.size(); ++i) out += (i > 0 ? " " : "") + traits.roles[i];
  return out + "] capacity " + number(traits.capacity) + " version '" + traits.version + "'";
}

std::string to_text(const Digest& digest) {
  std::string out = to_text(digest.from.key) + "#" + number(digest.number) + " vote " +
                    to_text(digest.vote) + " set " + to_text(digest.set) + " table " +
                    to_text(digest.table);
  if (digest.resigned.value != 0) out += " resigned " + number(digest.resigned.value);
  if (!digest.unreachable.empty()) out += " unreachable " + to_text(digest.unreachable);
  if (!digest.dead.empty()) out += " dead " + to_text(digest.dead);
  if (!digest.hosts.empty()) {
    out += " hosts";
    for (const HostedType& type : digest.hosts) {
      out += " " + type.name;
      if (type.placement != PlacementSettings{}) out += "(" + to_text(type.placement) + ")";
    }
  }
  if (digest.traits != NodeTraits{}) out += " traits " + to_text(digest.traits);
  return out + (digest.leaving ? " leaving" : "");
}

std::string to_text(const ShardName& shard) {
  return shard.type + ":" + number(shard.shard.value);
}
std::string to_text(const TableEntry& entry) {
  return to_text(entry.owner) + "@" + to_text(entry.generation);
}

std::string to_text(const AllocationTable& table) {
  std::string out = to_text(table.version);
  for (const TypeTable& type : table.types) {
    out += " " + type.name + "(";
    bool first = true;
    for (const TableEntry& entry : type.entries) {
      out += (first ? "" : " ") + to_text(entry);
      first = false;
    }
    out += ")";
  }
  return out;
}

std::string to_text(const TableDelta& delta) {
  std::string out = to_text(delta.from) + "->" + to_text(delta.to);
  for (const TableChange& change : delta.changes) {
    out += " " + to_text(change.shard) + "=" + to_text(change.entry) + " " + to_text(change.cause);
    if (!change.actor.empty()) out += " by " + change.actor;
  }
  return delta.new_orders ? out + " " + to_text(delta.orders) : out;
}

const char* to_text(Cause cause) {
  static constexpr std::array kNames = {"placed",  "lost",   "balance", "leaving",  "drained",
                                        "ordered", "pinned", "undone",  "reported", "unhosted"};
  return kNames.at(static_cast<std::size_t>(cause));
}

std::string to_text(const Orders& orders) {
  std::string out = "orders";
  for (const std::string& name : orders.cordoned) out += " cordon " + name;
  for (const std::string& name : orders.draining) out += " drain " + name;
  for (const Pin& pin : orders.pins) out += " pin " + to_text(pin.shard) + " " + pin.node;
  return orders.suspended ? out + " suspended" : out;
}

std::string to_text(const ControlMessage& message) {
  return std::visit([](const auto& m) { return text(m); }, message);
}

}  // namespace shardbus
