// Writes msgpack in the canonical form: each value in its shortest encoding.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "wire/big_endian.hpp"
#include "wire/envelope.hpp"

namespace shardbus::wire {

// --- into memory that is large enough; each returns the first byte behind what it wrote ---

inline constexpr std::size_t kUintBytesMax = 9;
inline char* put_uint(char* at, std::uint64_t value) {
  if (value < 0x80) {
    *at = static_cast<char>(value);
    return at + 1;
  }
  const unsigned power = value < 0x100 ? 0 : value < 0x10000 ? 1 : value < 0x100000000 ? 2 : 3;
  *at = static_cast<char>(0xcc + power);
  return store_big_endian(at + 1, value, 1U << power);
}

// Head of a value with a size: `first` is its 8-bit (or, without one, 16-bit) form.
inline constexpr std::size_t kHeadBytesMax = 5;
inline char* put_sized(char* at, std::size_t size, unsigned first, bool has_8_bit) {
  const unsigned power = size < 0x100 && has_8_bit ? 0 : size < 0x10000 ? 1 : 2;
  *at = static_cast<char>(first + power - (has_8_bit ? 0 : 1));
  return store_big_endian<4>(at + 1, size, 1U << power);
}
inline char* put_str_head(char* at, std::size_t size) {
  if (size >= 32) return put_sized(at, size, 0xd9, true);
  *at = static_cast<char>(0xa0 + size);
  return at + 1;
}
inline char* put_bin_head(char* at, std::size_t size) {
  return put_sized(at, size, 0xc4, true);
}
inline char* put_array_head(char* at, std::size_t size) {
  if (size >= 16) return put_sized(at, size, 0xdc, false);
  *at = static_cast<char>(0x90 + size);
  return at + 1;
}
inline char* put_map_head(char* at, std::size_t size) {
  if (size >= 16) return put_sized(at, size, 0xde, false);
  *at = static_cast<char>(0x80 + size);
  return at + 1;
}
inline char* put_nil(char* at) {
  *at = static_cast<char>(0xc0);
  return at + 1;
}
inline char* put_raw(char* at, std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}

// --- appending ---

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void uint(std::uint64_t value) {
    char buffer[kUintBytesMax];
    append(buffer, put_uint(buffer, value));
  }
  void boolean(bool value) { out_.push_back(static_cast<char>(value ? 0xc3 : 0xc2)); }
  void nil() { out_.push_back(static_cast<char>(0xc0)); }
  void str(std::string_view text) {
    char buffer[kHeadBytesMax];
    append(buffer, put_str_head(buffer, text.size()));
    out_.append(text);
  }
  void bin(std::string_view bytes) {
    char buffer[kHeadBytesMax];
    append(buffer, put_bin_head(buffer, bytes.size()));
    out_.append(bytes);
  }
  void array(std::size_t size) {
    char buffer[kHeadBytesMax];
    append(buffer, put_array_head(buffer, size));
  }
  void map(std::size_t size) {
    char buffer[kHeadBytesMax];
    append(buffer, put_map_head(buffer, size));
  }
  void raw(std::string_view value) { out_.append(value); }
  // Opens an envelope of `items` body elements with no flags and no correlation.
  void envelope(Kind kind, std::size_t items) {
    array(3 + items);
    uint(static_cast<std::uint64_t>(kind));
    uint(0);
    nil();
  }

 private:
  void append(const char* from, const char* to) {
    out_.append(from, static_cast<std::size_t>(to - from));
  }

  std::string& out_;
};

}  // namespace shardbus::wire
