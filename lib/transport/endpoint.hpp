// "tcp://host:port" taken apart and put together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shardbus/status.hpp"

namespace shardbus::transport {

// Shape: host is a name, an IPv4 literal, or an IPv6 literal without its brackets.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  [[nodiscard]] std::string text() const;
};

// Errors: bad_address with the text and what is wrong with it.
Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace shardbus::transport
