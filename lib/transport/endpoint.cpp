#include "transport/endpoint.hpp"

#include <charconv>

namespace shardbus::transport {

std::string Endpoint::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return "tcp://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto wrong = [text](const char* why) {
    return Status(Errc::bad_address, "\"" + std::string(text) + "\": " + why +
                                         "; write tcp://HOST:PORT, for example "
                                         "tcp://127.0.0.1:7400");
  };
  constexpr std::string_view kScheme = "tcp://";
  if (!text.starts_with(kScheme)) return wrong("does not start with tcp://");
  const std::string_view rest = text.substr(kScheme.size());
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong("has no host or no port");
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.find_first_of("/[] ") != std::string_view::npos) {
    return wrong("has a host that cannot be one");
  }
  const std::string_view digits = rest.substr(colon + 1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port > 65535) {
    return wrong("has a port that is not a number from 0 to 65535");
  }
  return Endpoint{std::string(host), static_cast<std::uint16_t>(port)};
}

}  // namespace shardbus::transport
