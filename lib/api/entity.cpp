#include "shardbus/entity.hpp"

namespace shardbus {

bool Entity::save(std::string& state) {
  (void)state;
  return false;
}

Status Entity::load(std::string_view state) {
  (void)state;
  return {};
}

}  // namespace shardbus
