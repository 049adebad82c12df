// Payloads: one msgpack value per message, from and to C++ types.
//
// Shape: whatever msgpack-cxx packs (MSGPACK_DEFINE_MAP for own types; other languages then see a
// map). A struct without fields is an empty map: `struct Get {};`, with or without
// MSGPACK_DEFINE_MAP(). A nil or empty payload gives a value-initialised message, so that
// `ask("get")` of a language without the type works. Limits: 64 Ki elements per array or map,
// depth 32.
#pragma once

#include <exception>
#include <msgpack.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>

#include "shardbus/status.hpp"

// msgpack-cxx cannot expand MSGPACK_DEFINE_MAP() without fields; for whoever includes this it can.
// With fields it stays what it is there.
#undef MSGPACK_DEFINE_MAP_IMPL
#define SHARDBUS_MAP_NO_FIELDS(...) ()
#define SHARDBUS_MAP_FIELDS(...)                                                   \
  MSGPACK_PP_SEQ_TO_TUPLE(MSGPACK_PP_SEQ_FOR_EACH(MSGPACK_DEFINE_MAP_EACH_PROC, 0, \
                                                  MSGPACK_PP_VARIADIC_TO_SEQ(__VA_ARGS__)))
#define SHARDBUS_MAP_PICK(unused, picked, ...) picked
#define MSGPACK_DEFINE_MAP_IMPL(...) /* NOLINT(readability-identifier-naming): theirs */ \
  SHARDBUS_MAP_PICK(~__VA_OPT__(, SHARDBUS_MAP_FIELDS), SHARDBUS_MAP_NO_FIELDS, ~)(__VA_ARGS__)

namespace shardbus {

namespace detail {

// What a small message needs; malloc merges all that is free for a block of 1 KiB or more.
constexpr std::size_t kUnpackZone = 512;

// A message that has a name and nothing else.
template <class T>
concept FieldlessMessage = std::is_empty_v<T> && std::is_aggregate_v<T> &&
    !requires(const T& value, msgpack::packer<msgpack::sbuffer>& packer) {
  value.msgpack_pack(packer);
};

}  // namespace detail

// Packs `value`; the buffer is reused per thread and valid until the next call on this thread.
template <class T>
std::string_view pack(const T& value) {
  thread_local msgpack::sbuffer buffer;
  buffer.clear();
  if constexpr (detail::FieldlessMessage<T>) {
    msgpack::packer<msgpack::sbuffer>(buffer).pack_map(0);
  } else {
    msgpack::pack(buffer, value);
  }
  return {buffer.data(), buffer.size()};
}

inline std::string_view pack_nothing() {
  return std::string_view("\xc0", 1);
}

// Unpacks one value. Errors: decode_failed with what did not fit.
template <class T>
Result<T> unpack(std::string_view payload) {
  T value{};
  if (payload.empty() || payload == pack_nothing()) return value;
  try {
    const msgpack::unpack_limit limit(65536, 65536, UINT32_MAX, UINT32_MAX, 1024, 32);
    msgpack::zone zone(detail::kUnpackZone);
    const msgpack::object object =
        msgpack::unpack(zone, payload.data(), payload.size(), nullptr, nullptr, limit);
    if constexpr (detail::FieldlessMessage<T>) {
      if (object.type != msgpack::type::MAP) throw msgpack::type_error();
    } else {
      object.convert(value);
    }
    return value;
  } catch (const std::bad_cast&) {  // what msgpack says is only that
    return Status(Errc::decode_failed, "a value of the payload is not of its message's type");
  } catch (const std::exception& error) {
    return Status(Errc::decode_failed, error.what());
  }
}

}  // namespace shardbus
