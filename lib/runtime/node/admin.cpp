#include "runtime/node/admin.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "base/hash.hpp"
#include "runtime/node/admin_writer.hpp"
#include "shardbus/codec.hpp"
#include "shardbus/version.hpp"
#include "transport/now.hpp"

namespace shardbus::runtime {
namespace {

struct TypeFilter {
  std::optional<std::string> type;
  MSGPACK_DEFINE_MAP(type)
};
struct EntityName {
  std::string type;
  std::string id;
  MSGPACK_DEFINE_MAP(type, id)
};

std::string_view state_name(MemberState state) {
  static constexpr std::array<std::string_view, 6> kNames{"joining", "up",   "leaving",
                                                          "exiting", "down", "removed"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view region_name(RegionState state) {
  static constexpr std::array<std::string_view, 6> kNames{"none",    "owner",    "sending",
                                                          "forward", "incoming", "frozen"};
  return kNames[static_cast<std::size_t>(state)];
}

class AdminAnswers {
 public:
  AdminAnswers(const ClusterView& view, const LinkCounters& link, DataPlane& plane)
      : view_(view), link_(link), plane_(plane) {}

  void status();
  void members();
  void shards(const std::string& only);
  void where(const EntityName& entity);
  void load(const std::string& only);
  [[nodiscard]] std::string_view result() const { return out_.result(); }

 private:
  [[nodiscard]] std::string name_of(NodeKey node) const;
  [[nodiscard]] bool gone(NodeKey node) const;
  void owner(NodeKey node);
  void generation(const Generation& generation);
  void cluster_entries();
  void data_entries(const DataStatus& data);

  const ClusterView& view_;
  const LinkCounters& link_;
  DataPlane& plane_;
  AdminWriter out_;
};

std::string AdminAnswers::name_of(NodeKey node) const {
  if (node == view_.status.self.key) return view_.status.self.name;
  for (const auto& member : view_.status.members) {
    if (member.member.node.key == node) return member.member.node.name;
  }
  const auto stranger = view_.status.strangers.find(node);
  if (stranger != view_.status.strangers.end()) return stranger->second;
  if (const NodeInfo* info = plane_.links().info(node)) return info->name;
  return "#" + std::to_string(node.value);
}

bool AdminAnswers::gone(NodeKey node) const {
  const auto& members = view_.status.members;
  return std::none_of(members.begin(), members.end(), [node](const auto& member) {
    return member.member.node.key == node && member.reach != failure::Reach::dead;
  });
}

void AdminAnswers::owner(NodeKey node) {
  if (node == kNoNode) return out_.nil();
  out_.value(std::string_view(name_of(node) + (gone(node) ? " (gone)" : "")));
}

void AdminAnswers::generation(const Generation& generation) {
  if (!generation.known()) return out_.nil();
  out_.array(3);
  out_.value(generation.term.value);
  out_.value(std::string_view(name_of(generation.claimant)));
  out_.value(generation.counter);
}

void AdminAnswers::cluster_entries() {
  const control::ControlStatus& status = view_.status;
  std::uint64_t up = 0;
  std::uint64_t unreachable = 0;
  std::string_view state = status.in_cluster ? "up" : "joining";
  for (const auto& member : status.members) {
    up += member.member.state == MemberState::up ? 1 : 0;
    unreachable += member.reach == failure::Reach::reachable ? 0 : 1;
    if (member.member.node.key == status.self.key) state = state_name(member.member.state);
  }
  static constexpr std::array<std::string_view, 3> kAuthority{"none", "evidence", "full"};
  out_.entry("node", status.self.name);
  out_.entry("key", status.self.key.value);
  out_.entry("incarnation", status.self.incarnation);
  out_.entry("state", state);
  out_.entry("cluster_id", status.cluster_id);
  out_.entry("term", status.term.value);
  out_.value(std::string_view("coordinator"));
  owner(status.coordinator);
  out_.entry("authority", kAuthority[static_cast<std::size_t>(status.authority)]);
  out_.entry("evidence", status.evidence);
  out_.entry("version", kVersion);
  out_.entry("listen", status.self.front);
  out_.entry("peer", status.self.peer);
  out_.entry("gossip", status.self.gossip);
  out_.entry("members", static_cast<std::uint64_t>(status.members.size()));
  out_.entry("up", up);
  out_.entry("unreachable", unreachable);
  out_.entry("min_members", std::uint64_t{status.min_members});
  out_.entry("held_back", status.held_back);
  out_.entry("downing", status.downing);
  out_.entry("moves_open", static_cast<std::uint64_t>(status.handoffs.size()));
}

void AdminAnswers::data_entries(const DataStatus& data) {
  out_.entry("shards_owned", data.shards_owned);
  out_.entry("entities", data.entities);
  out_.entry("sessions", data.sessions);
  out_.entry("pending_asks", data.pending_asks);
}

void AdminAnswers::status() {
  const DataStatus data = plane_.status();
  std::string why = why_not_ready(view_, 1);
  if (why.empty()) why = data.unsettled;
  out_.map(30);
  cluster_entries();
  data_entries(data);
  out_.entry("cluster", plane_.config().cluster);
  out_.entry("uptime_ms", static_cast<std::uint64_t>(plane_.uptime().count()));
  out_.entry("ready", why.empty());
  out_.entry("why", why);
  out_.value(std::string_view("founded_anew_ms"));
  if (view_.founded_anew == kNever) {
    out_.nil();
  } else {
    const auto ago =
        std::chrono::duration_cast<milliseconds>(transport::now() - view_.founded_anew);
    out_.value(static_cast<std::uint64_t>(ago.count()));
  }
  out_.value(std::string_view("counters"));
  out_.map(data.counters.size() + 3);
  out_.entry("poll_net_catches", link_.net_catches);
  out_.entry("link_inbox", link_.inbox);
  out_.entry("link_inbox_limit", link_.inbox_limit);
  for (const auto& [name, count] : data.counters) out_.entry(name, count);
}

void AdminAnswers::members() {
  const control::ControlStatus& status = view_.status;
  std::uint64_t oldest = UINT64_MAX;
  for (const auto& member : status.members) oldest = std::min(oldest, member.member.age);
  const Orders& orders = view_.table->orders;
  const auto named = [](const std::vector<std::string>& names, const std::string& name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  out_.array(status.members.size());
  for (const auto& member : status.members) {
    const NodeInfo& node = member.member.node;
    out_.map(19);
    out_.entry("name", node.name);
    out_.entry("key", node.key.value);
    out_.entry("incarnation", node.incarnation);
    out_.entry("state", state_name(member.member.state));
    out_.entry("reachable", member.reach == failure::Reach::reachable);
    out_.entry("phi", member.phi);
    out_.entry("age", member.member.age);
    out_.entry("front", node.front);
    out_.entry("peer", node.peer);
    out_.entry("gossip", node.gossip);
    out_.entry("oldest", member.member.age == oldest);
    out_.entry("coordinator", node.key == status.coordinator);
    out_.entry("self", node.key == status.self.key);
    out_.entry("zone", member.traits.zone);
    out_.value(std::string_view("roles"));
    out_.array(member.traits.roles.size());
    for (const std::string& role : member.traits.roles) out_.value(std::string_view(role));
    out_.entry("capacity", std::uint64_t{member.traits.capacity});
    out_.entry("version", member.traits.version);
    out_.entry("cordoned", named(orders.cordoned, node.name));
    out_.entry("draining", named(orders.draining, node.name));
  }
}

void AdminAnswers::shards(const std::string& only) {
  std::size_t count = 0;
  const auto wanted = [&](const TypeTable& type) { return only.empty() || type.name == only; };
  for (const TypeTable& type : view_.table->types) count += wanted(type) ? 1 : 0;
  out_.array(count);
  for (const TypeTable& type : view_.table->types) {
    if (!wanted(type)) continue;
    const Type* local = plane_.dispatch().find_type(type.name);
    out_.map(3);
    out_.entry("type", type.name);
    out_.entry("shard_count", type.shard_count);
    out_.value(std::string_view("shards"));
    out_.array(type.entries.size());
    for (std::size_t i = 0; i < type.entries.size(); ++i) {
      out_.array(4);
      out_.value(static_cast<std::uint64_t>(i));
      owner(type.entries[i].owner);
      generation(type.entries[i].generation);
      const bool known = local != nullptr && i < local->shards.size();
      out_.value(region_name(known ? local->shards[i].region.state() : RegionState::none));
    }
  }
}

// What moves of the shards of this node would take along.
void AdminAnswers::load(const std::string& only) {
  const std::vector<ShardLoad> loads = plane_.loads(only);
  out_.array(loads.size());
  for (const ShardLoad& one : loads) {
    out_.array(4);
    out_.value(std::string_view(one.shard.type));
    out_.value(one.shard.shard.value);
    out_.value(one.entities);
    out_.value(one.bytes);
  }
}

void AdminAnswers::where(const EntityName& entity) {
  const Type* type = plane_.dispatch().find_type(entity.type);
  const std::string_view tag = hash_tag(entity.id);
  std::array<char, 17> hash{};
  std::snprintf(hash.data(), hash.size(), "%016llx", static_cast<unsigned long long>(fnv1a64(tag)));
  out_.map(type == nullptr ? 4 : 8);
  out_.entry("type", entity.type);
  out_.entry("hash", hash.data());
  out_.value(std::string_view("tag"));
  out_.bytes(tag);
  if (type == nullptr) {
    return out_.entry("why", "no node of the cluster hosts this type");
  }
  const ShardId shard = shard_of(entity.id, type->shard_count);
  const core::Route& route = type->shards[shard.value].route;
  out_.entry("shard", shard.value);
  out_.entry("shard_count", type->shard_count);
  out_.value(std::string_view("owner"));
  owner(route.owner());
  out_.value(std::string_view("generation"));
  generation(route.generation());
  std::string why = "shard = fnv1a64(tag) mod shard_count; ";
  if (route.owner() == kNoNode) {
    why += "the shard has no owner now, messages wait";
  } else if (!route.may_send()) {
    why += "the shard has just moved, this node waits for its fence";
  } else {
    why += "the table of term " + std::to_string(view_.table->version.term.value) +
           " gives the shard to this owner";
  }
  out_.entry("why", why);
}

}  // namespace

void answer_admin(const AdminCall& call, const ClusterView& view, const LinkCounters& link,
                  DataPlane& plane) {
  const ReplyAddress to{call.asker.value, call.slot};
  AdminAnswers answers(view, link, plane);
  const auto bad = [&](const Status& error) { plane.answer(to, {error.code(), error.text(), {}}); };
  if (call.method == "status") {
    answers.status();
  } else if (call.method == "members") {
    answers.members();
  } else if (call.method == "shards") {
    const auto filter = unpack<TypeFilter>(call.payload);
    if (!filter) return bad(filter.error());
    answers.shards(filter->type.value_or(""));
  } else if (call.method == "load") {
    const auto filter = unpack<TypeFilter>(call.payload);
    if (!filter) return bad(filter.error());
    answers.load(filter->type.value_or(""));
  } else if (call.method == "where") {
    const auto entity = unpack<EntityName>(call.payload);
    if (!entity) return bad(entity.error());
    answers.where(*entity);
  } else {
    return plane.answer(
        to, {Errc::no_such_method,
             "$node has status, members, shards, where, load, down, order, plan, moves and history",
             {}});
  }
  plane.answer(to, {Errc::ok, {}, answers.result()});
}

Result<DownArguments> admin_down(std::string_view payload) {
  return unpack<DownArguments>(payload);
}

}  // namespace shardbus::runtime
