#include "shardbus/entity.hpp"

#include <array>
#include <charconv>
#include <limits>

namespace shardbus {

std::string_view Context::sender() const {
  thread_local std::array<char, std::numeric_limits<std::uint64_t>::digits10 + 1> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), sender_);
  return {text.data(), static_cast<std::size_t>(end - text.data())};
}

bool Entity::save(std::string& state) {
  (void)state;
  return false;
}

Status Entity::load(std::string_view state) {
  (void)state;
  return {};
}

}  // namespace shardbus
