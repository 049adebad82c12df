#include "wire/cursor.hpp"

#include <array>
#include <bit>
#include <cmath>

#include "wire/big_endian.hpp"
#include "wire/limits.hpp"
#include "wire/text.hpp"

namespace shardbus::wire {

void Cursor::fail(Errc error) noexcept {
  if (stopped_) return;
  stopped_ = true;
  error_ = error;
  at_ = end_;
}

std::uint64_t Cursor::big_endian(unsigned width) noexcept {
  if (width > remaining()) {
    fail();
    return 0;
  }
  const std::uint64_t value = load_big_endian(at_, width);
  at_ += width;
  return value;
}

std::uint64_t Cursor::from_float(double value) noexcept {
  // The comparison is false for NaN.
  if (!(value >= 0 && value <= static_cast<double>(kMaxWireInteger) &&
        value == std::floor(value))) {
    fail();
    return 0;
  }
  return static_cast<std::uint64_t>(value);
}

std::uint64_t Cursor::long_uint() noexcept {
  if (at_ == end_) {
    fail();
    return 0;
  }
  const auto head = static_cast<unsigned char>(*at_++);
  if (head < 0x80) return head;
  if (head >= 0xcc && head <= 0xcf) return big_endian(1U << (head - 0xcc));
  if (head >= 0xd0 && head <= 0xd3) {
    const unsigned width = 1U << (head - 0xd0);
    const std::uint64_t value = big_endian(width);
    const bool negative = (value >> (8 * width - 1) & 1) != 0;
    if (negative) fail();
    return negative ? 0 : value;
  }
  if (head == 0xca) {
    return from_float(std::bit_cast<float>(static_cast<std::uint32_t>(big_endian(4))));
  }
  if (head == 0xcb) return from_float(std::bit_cast<double>(big_endian(8)));
  fail();
  return 0;
}

bool Cursor::boolean() noexcept {
  const unsigned head = at_ == end_ ? 0xc1U : static_cast<unsigned char>(*at_);
  if (head != 0xc2 && head != 0xc3) {
    fail();
    return false;
  }
  ++at_;
  return head == 0xc3;
}

std::string_view Cursor::long_bytes(std::size_t limit) noexcept {
  if (at_ == end_) {
    fail();
    return {};
  }
  const auto head = static_cast<unsigned char>(*at_++);
  if ((head & 0xe0) == 0xa0) return take(head & 0x1f, limit);
  if (head >= 0xc4 && head <= 0xc6) return take(big_endian(1U << (head - 0xc4)), limit);
  if (head >= 0xd9 && head <= 0xdb) return take(big_endian(1U << (head - 0xd9)), limit);
  fail();
  return {};
}

std::string_view Cursor::text(std::size_t limit) noexcept {
  const std::string_view value = bytes(limit);
  if (valid_utf8(value)) return value;
  fail();
  return {};
}

std::uint32_t Cursor::long_array(std::uint32_t limit) noexcept {
  const unsigned head = at_ == end_ ? 0xc1U : static_cast<unsigned char>(*at_++);
  if ((head & 0xf0) == 0x90) return counted(head & 0x0f, 1, limit);
  if (head == 0xdc || head == 0xdd) {
    const auto count = static_cast<std::uint32_t>(big_endian(head == 0xdc ? 2 : 4));
    return counted(count, 1, limit);
  }
  fail();
  return 0;
}

std::uint32_t Cursor::map() noexcept {
  constexpr auto kAny = std::numeric_limits<std::uint32_t>::max();
  const unsigned head = at_ == end_ ? 0xc1U : static_cast<unsigned char>(*at_++);
  if ((head & 0xf0) == 0x80) return counted(head & 0x0f, 2, kAny);
  if (head == 0xde || head == 0xdf) {
    const auto count = static_cast<std::uint32_t>(big_endian(head == 0xde ? 2 : 4));
    return counted(count, 2, kAny);
  }
  fail();
  return 0;
}

std::string_view Cursor::raw() noexcept {
  const char* start = at_;
  skip();
  return stopped_ ? std::string_view{}
                  : std::string_view(start, static_cast<std::size_t>(at_ - start));
}

void Cursor::skip_bytes(std::uint64_t size) noexcept {
  if (size > remaining()) return fail();
  at_ += size;
}

// The rest of a head that carries its size in more bytes. Returns the number of values inside.
std::uint64_t Cursor::skip_long_head(unsigned char head) noexcept {
  switch (head) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
      return 0;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      skip_bytes(big_endian(1U << (head - 0xc4)));
      return 0;
    case 0xc7:
    case 0xc8:
    case 0xc9:
      skip_bytes(big_endian(1U << (head - 0xc7)) + 1);
      return 0;
    case 0xca:
      skip_bytes(4);
      return 0;
    case 0xcb:
      skip_bytes(8);
      return 0;
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      skip_bytes(1U << (head - 0xcc));
      return 0;
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      skip_bytes(1U << (head - 0xd0));
      return 0;
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      skip_bytes((1U << (head - 0xd4)) + 1);
      return 0;
    case 0xd9:
    case 0xda:
    case 0xdb:
      skip_bytes(big_endian(1U << (head - 0xd9)));
      return 0;
    case 0xdc:
      return big_endian(2);
    case 0xdd:
      return big_endian(4);
    case 0xde:
      return 2 * big_endian(2);
    case 0xdf:
      return 2 * big_endian(4);
    default:
      fail();
      return 0;  // 0xc1 is never used
  }
}

std::uint64_t Cursor::skip_head() noexcept {
  if (at_ == end_) {
    fail();
    return 0;
  }
  const auto head = static_cast<unsigned char>(*at_++);
  if (head < 0x80 || head >= 0xe0) return 0;
  if (head < 0x90) return std::uint64_t{2} * (head & 0x0f);
  if (head < 0xa0) return head & 0x0f;
  if (head < 0xc0) {
    skip_bytes(head & 0x1f);
    return 0;
  }
  return skip_long_head(head);
}

void Cursor::skip_some(std::uint64_t values) noexcept {
  // left[i]: values still to pass in the i-th open container. The envelope's own array is open
  // already, so one level less than kDepthMax may be opened here.
  std::array<std::uint64_t, kDepthMax> left;
  std::size_t top = 0;
  left[0] = values;
  while (!stopped_) {
    if (left[top] == 0) {
      if (top == 0) return;
      --top;
      continue;
    }
    --left[top];
    const std::uint64_t inside = skip_head();
    if (inside == 0) continue;
    if (inside > remaining() || top + 1 == kDepthMax) return fail();
    left[++top] = inside;
  }
}

}  // namespace shardbus::wire
