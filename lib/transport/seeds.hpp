// Where the seeds of a node come from: an address, a name with any number of addresses, or a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardbus/status.hpp"
#include "transport/endpoint.hpp"

namespace shardbus::transport {

// "tcp://10.0.0.1:7400", "tcp://db1:7400", "dns://shardbus.svc:7400", "file:///etc/seeds".
enum class SeedKind : std::uint8_t { address, host, name, file };
struct SeedSource {
  SeedKind kind = SeedKind::address;
  std::string text;    // as configured
  Endpoint endpoint;   // of all but a file
  std::string path{};  // of a file
};

// Errors: bad_address with the text and what is wrong with it.
Result<SeedSource> parse_seed(std::string_view text);

// The tcp:// addresses that stand behind a source now, ordered, without repeats; at most 256. Of a
// file with mistakes those of its other lines.
struct LookedUp {
  bool known = false;  // these are all; else there may be more, or others
  std::vector<std::string> addresses;
  std::string trouble;  // what went wrong
};
// Blocks for as long as the name server takes.
LookedUp look_up(const SeedSource& source);

// Whether who has this address, and listens there, is the only one that can: so it may take a first
// seed that is written as a name for itself.
bool names_one_node(const std::vector<std::string>& addresses);

}  // namespace shardbus::transport
