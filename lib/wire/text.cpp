#include "wire/text.hpp"

#include <cstdint>
#include <cstring>

#include "wire/limits.hpp"

namespace shardbus::wire {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080ULL;

bool is_ascii(std::string_view text) noexcept {
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    if ((word & kHighBits) != 0) return false;
  }
  unsigned seen = 0;
  for (; left > 0; ++at, --left) seen |= static_cast<unsigned char>(*at);
  return seen < 0x80;
}

// Length of the character at the front of `text`, 0 if it is not UTF-8 (Unicode 15, table 3-7).
std::size_t character(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto in = [](unsigned value, unsigned low, unsigned high) {
    return value >= low && value <= high;
  };
  const auto tail = [&](std::size_t i) { return in(byte(i), 0x80, 0xbf); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (in(first, 0xc2, 0xdf)) return tail(1) ? 2 : 0;
  if (in(first, 0xe0, 0xef)) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return in(byte(1), low, high) && tail(2) ? 3 : 0;
  }
  if (in(first, 0xf0, 0xf4)) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return in(byte(1), low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool valid_utf8(std::string_view text) noexcept {
  if (is_ascii(text)) return true;
  while (!text.empty()) {
    const std::size_t length = character(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string_view clean_text(std::string_view text, std::string& scratch) {
  if (text.size() <= kTextBytesMax && valid_utf8(text)) return text;
  scratch.clear();
  while (!text.empty()) {
    const std::size_t length = character(text);
    const std::size_t taken = length == 0 ? 1 : length;
    if (scratch.size() + taken > kTextBytesMax) break;
    scratch += length == 0 ? std::string_view("?") : text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return scratch;
}

}  // namespace shardbus::wire
