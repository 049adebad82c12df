#include "base/hash.hpp"

#include <array>

namespace shardbus {

NodeKey node_key(std::string_view name, std::uint64_t incarnation) noexcept {
  std::array<char, 9> tail{};
  for (unsigned i = 0; i < 8; ++i) tail[i + 1] = static_cast<char>(incarnation >> (8 * i));
  const std::uint64_t hash = fnv1a64({tail.data(), tail.size()}, fnv1a64(name)) & kMaxWireInteger;
  return NodeKey{hash == 0 ? 1 : hash};
}

}  // namespace shardbus
