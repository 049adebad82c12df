#include "demo/readings.hpp"

#include <algorithm>
#include <optional>

#include "demo/workload.hpp"

namespace shardbus_demo {
namespace {

struct WhereRequest {
  std::string type;
  std::vector<char> id;  // packed as bin
  MSGPACK_DEFINE_MAP(type, id)
};
struct WhereReply {
  std::optional<std::string> owner;
  MSGPACK_DEFINE_MAP(owner)
};

}  // namespace

std::vector<std::string> owners(const shardbus::Client& client,
                                const std::vector<Entity>& entities) {
  std::vector<std::string> names;
  for (const Entity& entity : entities) {
    const WhereRequest request{entity.kind->type, {entity.id.begin(), entity.id.end()}};
    names.push_back(client.entity("$node", "")
                        .ask<WhereReply>("where", request, kAskTimeout)
                        .value()
                        .owner.value_or(""));
  }
  return names;
}

std::vector<std::uint64_t> read_all(const std::vector<shardbus::Client>& clients,
                                    const std::vector<Entity>& entities) {
  std::vector<std::uint64_t> values;
  for (const Entity& entity : entities) {
    std::uint64_t value = 0;
    for (const shardbus::Client& client : clients) {
      const auto reply = client.entity(entity.kind->type, entity.id)
                             .ask<std::uint64_t>(entity.kind->get, msgpack::type::nil_t());
      value = std::max(value, reply.value());
    }
    values.push_back(value);
  }
  return values;
}

std::vector<std::string> wrong_counters(const std::vector<Entity>& entities, const Death& death,
                                        const std::vector<std::uint64_t>& values) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < entities.size(); ++i) {
    const std::string wrong = what_is_wrong(entities[i], death, values[i]);
    if (!wrong.empty()) lines.push_back(entities[i].id + " of " + entities[i].owner + ": " + wrong);
  }
  return lines;
}

}  // namespace shardbus_demo
