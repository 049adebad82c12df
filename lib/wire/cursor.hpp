// Reads msgpack values one after the other. Total: a bad byte stops it, and every later read then
// gives an empty value, so that callers check once, at the end.
//
// Two kinds of failure: `malformed` stops the cursor; a value over its limit is passed over and
// only noted, so that the end of the envelope is still found and its sender can be told.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "base/ids.hpp"
#include "shardbus/status.hpp"
#include "wire/big_endian.hpp"

namespace shardbus::wire {

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) noexcept
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] Errc error() const noexcept { return error_; }
  [[nodiscard]] bool ok() const noexcept { return error_ == Errc::ok; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  [[nodiscard]] const char* at() const noexcept { return at_; }
  [[nodiscard]] std::size_t remaining() const noexcept {
    return static_cast<std::size_t>(end_ - at_);
  }

  // Stops with `error`, unless stopped before.
  void fail(Errc error = Errc::malformed) noexcept;
  void note_too_large() noexcept {
    if (error_ == Errc::ok) error_ = Errc::too_large;
  }

  // An integer of 0..max in any encoding, integral floats included; everything else is malformed.
  std::uint64_t uint(std::uint64_t max = kMaxWireInteger) noexcept {
    std::uint64_t value = 0;
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) {
      value = static_cast<unsigned char>(*at_++);
    } else if (remaining() > 8 && static_cast<unsigned char>(*at_) == 0xcf) {  // keys of nodes
      value = load_big_endian(at_ + 1, 8);
      at_ += 9;
    } else {
      value = long_uint();
    }
    if (value > max) fail();
    return value;
  }
  // The same cut to the size of T, whose largest value is the largest that is accepted.
  template <class T>
  T narrow() noexcept {
    return static_cast<T>(uint(std::numeric_limits<T>::max()));
  }
  // An integer; above `max` it is too large instead of malformed.
  std::uint64_t limited(std::uint64_t max) noexcept {
    const std::uint64_t value = uint();
    if (value > max) note_too_large();
    return value;
  }
  bool boolean() noexcept;
  // Takes a nil off if one is next.
  bool take_nil() noexcept {
    if (at_ == end_ || static_cast<unsigned char>(*at_) != 0xc0) return false;
    ++at_;
    return true;
  }
  // str or bin. `text` has to be UTF-8.
  std::string_view bytes(std::size_t limit) noexcept {
    if (at_ != end_ && (static_cast<unsigned char>(*at_) & 0xe0) == 0xa0) {
      const std::size_t size = static_cast<unsigned char>(*at_++) & 0x1f;
      return take(size, limit);
    }
    return long_bytes(limit);
  }
  std::string_view text(std::size_t limit) noexcept;
  // Number of elements that follow: never more than there are bytes left.
  std::uint32_t array(std::uint32_t limit = std::numeric_limits<std::uint32_t>::max()) noexcept {
    if (at_ != end_ && (static_cast<unsigned char>(*at_) & 0xf0) == 0x90) {
      return counted(static_cast<unsigned char>(*at_++) & 0x0f, 1, limit);
    }
    return long_array(limit);
  }
  std::uint32_t map() noexcept;  // number of key-value pairs
  void skip(std::uint64_t values = 1) noexcept {
    if (values != 0) skip_some(values);
  }
  // The next value as it stands.
  std::string_view raw() noexcept;

 private:
  std::uint64_t big_endian(unsigned width) noexcept;
  std::uint64_t long_uint() noexcept;
  std::uint64_t from_float(double value) noexcept;
  std::string_view long_bytes(std::size_t limit) noexcept;
  std::uint32_t long_array(std::uint32_t limit) noexcept;
  void skip_some(std::uint64_t values) noexcept;
  std::uint64_t skip_head() noexcept;
  std::uint64_t skip_long_head(unsigned char head) noexcept;
  void skip_bytes(std::uint64_t size) noexcept;

  std::string_view take(std::size_t size, std::size_t limit) noexcept {
    if (size > remaining()) {
      fail();
      return {};
    }
    const std::string_view value(at_, size);
    at_ += size;
    if (size <= limit) return value;
    note_too_large();
    return {};
  }
  std::uint32_t counted(std::uint32_t count, unsigned values_each, std::uint32_t limit) noexcept {
    if (std::uint64_t{count} * values_each > remaining()) {
      fail();
      return 0;
    }
    if (count <= limit) return count;
    fail(Errc::too_large);
    return 0;
  }

  const char* at_;
  const char* end_;
  Errc error_ = Errc::ok;
  bool stopped_ = false;
};

}  // namespace shardbus::wire
