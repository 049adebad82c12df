#include "vectors/to_json.hpp"

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "support/wire_recode.hpp"

namespace shardbus::test {
namespace {

using Json = nlohmann::ordered_json;

std::string_view take(std::string_view& rest, std::size_t size) {
  const std::string_view front = rest.substr(0, size);
  rest.remove_prefix(size);
  return front;
}

std::uint64_t number(std::string_view& rest, std::size_t width) {
  std::uint64_t value = 0;
  for (const char c : take(rest, width)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

Json array(std::string_view& rest, std::uint64_t count) {
  Json out = Json::array();
  while (count-- > 0) out.push_back(to_json(rest));
  return out;
}

Json map(std::string_view& rest, std::uint64_t count) {
  Json out = Json::object();
  while (count-- > 0) {
    const std::string key = to_json(rest).get<std::string>();
    out[key] = to_json(rest);
  }
  return out;
}

Json bin(std::string_view bytes) {
  return {{"bin", hex(bytes)}};
}

Json long_form(std::string_view& rest, unsigned head) {
  switch (head) {
    case 0xc0:
      return nullptr;
    case 0xc2:
      return false;
    case 0xc3:
      return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return bin(take(rest, number(rest, 1U << (head - 0xc4))));
    case 0xcb:
      return std::bit_cast<double>(number(rest, 8));
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return number(rest, 1U << (head - 0xcc));
    case 0xd0:
      return static_cast<std::int8_t>(number(rest, 1));
    case 0xd3:
      return static_cast<std::int64_t>(number(rest, 8));
    case 0xd9:
    case 0xda:
    case 0xdb:
      return std::string(take(rest, number(rest, 1U << (head - 0xd9))));
    case 0xdc:
      return array(rest, number(rest, 2));
    case 0xde:
      return map(rest, number(rest, 2));
    default:
      throw std::invalid_argument("vectors have no msgpack of head " + std::to_string(head));
  }
}

}  // namespace

Json to_json(std::string_view& rest) {
  const unsigned head = static_cast<unsigned char>(take(rest, 1).at(0));
  if (head < 0x80) return head;
  if (head < 0x90) return map(rest, head & 0x0f);
  if (head < 0xa0) return array(rest, head & 0x0f);
  if (head < 0xc0) return std::string(take(rest, head & 0x1f));
  if (head >= 0xe0) return static_cast<std::int8_t>(head);
  return long_form(rest, head);
}

}  // namespace shardbus::test
