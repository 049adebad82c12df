// Integers in network order, as single loads and stores.
#pragma once

#include <cstdint>
#include <cstring>

namespace shardbus::wire {

// `width` bytes at `at`: 1, 2, 4 or 8.
inline std::uint64_t load_big_endian(const char* at, unsigned width) noexcept {
  const auto load = [at]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (width) {
    case 1:
      return static_cast<unsigned char>(*at);
    case 2:
      return __builtin_bswap16(load(std::uint16_t{}));
    case 4:
      return __builtin_bswap32(load(std::uint32_t{}));
    default:
      return __builtin_bswap64(load(std::uint64_t{}));
  }
}

// The low `width` bytes of `value`: 1, 2, 4 or 8, at most Widest. Returns the first byte behind
// them.
template <unsigned Widest = 8>
char* store_big_endian(char* at, std::uint64_t value, unsigned width) noexcept {
  const std::uint64_t swapped = __builtin_bswap64(value << (64 - 8 * width));
  const auto store = [at](auto part) { std::memcpy(at, &part, sizeof part); };
  switch (width) {
    case 1:
      store(static_cast<std::uint8_t>(swapped));
      break;
    case 2:
      store(static_cast<std::uint16_t>(swapped));
      break;
    case 4:
      store(static_cast<std::uint32_t>(swapped));
      break;
    default:
      if constexpr (Widest == 8) store(swapped);
      break;
  }
  return at + width;
}

}  // namespace shardbus::wire
