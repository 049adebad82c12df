#include "transport/seeds.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

namespace shardbus::transport {
namespace {

constexpr std::string_view kName = "dns://";
constexpr std::string_view kFile = "file://";
constexpr std::size_t kAddressesMax = 256;

bool is_literal(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return host == "*" || inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

std::vector<std::string> in_order(std::vector<std::string> addresses) {
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  addresses.resize(std::min(addresses.size(), kAddressesMax));
  return addresses;
}

Result<std::vector<std::string>> resolve(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_INET;  // as the sockets are
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), nullptr, &hints, &list);
  // A name may come to life with the first node that stands behind it.
  if (error == EAI_NONAME || error == EAI_NODATA) return std::vector<std::string>{};
  if (error != 0) {
    return Status(Errc::bad_address, endpoint.host + ": " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> host{};
    const int named = getnameinfo(one->ai_addr, one->ai_addrlen, host.data(), host.size(), nullptr,
                                  0, NI_NUMERICHOST);
    if (named == 0) addresses.push_back(Endpoint{host.data(), endpoint.port}.text());
  }
  return in_order(std::move(addresses));
}

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

// A comment begins the line, or stands behind the address and a space.
std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool starts = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
    if (line[i] == '#' && starts) return trimmed(line.substr(0, i));
  }
  return trimmed(line);
}

// The addresses of one line, or what is wrong with it.
Result<std::vector<std::string>> read_line(std::string_view text) {
  const auto parsed = parse_seed(text);
  if (!parsed) return parsed.error();
  if (parsed->kind == SeedKind::file) {
    return Status(Errc::bad_address, "a file of seeds names no other file");
  }
  if (parsed->kind == SeedKind::address) return std::vector<std::string>{parsed->text};
  return resolve(parsed->endpoint);
}

// A line that is wrong costs that line alone.
LookedUp read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) return {false, {}, path + ": " + std::strerror(errno)};
  LookedUp found{true, {}, {}};
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = without_comment(line);
    if (text.empty()) continue;
    const auto addresses = read_line(text);
    if (addresses) {
      found.addresses.insert(found.addresses.end(), addresses->begin(), addresses->end());
      continue;
    }
    found.trouble += (found.trouble.empty() ? "" : "; ") + path + ":" + std::to_string(number) +
                     ": " + addresses.error().text();
  }
  found.known = found.trouble.empty();
  found.addresses = in_order(std::move(found.addresses));
  return found;
}

}  // namespace

Result<SeedSource> parse_seed(std::string_view text) {
  SeedSource source;
  source.text = text;
  if (text.starts_with(kFile)) {
    source.kind = SeedKind::file;
    source.path = text.substr(kFile.size());
    if (source.path.size() > 1 && source.path.front() == '/') return source;
    return Status(Errc::bad_address,
                  "\"" + source.text + "\": a file is written as file:///PATH, from the root");
  }
  const bool name = text.starts_with(kName);
  const std::string address =
      name ? "tcp://" + std::string(text.substr(kName.size())) : std::string(text);
  const auto parsed = parse_endpoint(address);
  if (!parsed) return parsed.error();
  if (parsed->port == 0) {
    return Status(Errc::bad_address, "\"" + source.text + "\": nobody can be reached at port 0");
  }
  source.endpoint = *parsed;
  source.kind = name                       ? SeedKind::name
                : is_literal(parsed->host) ? SeedKind::address
                                           : SeedKind::host;
  return source;
}

LookedUp look_up(const SeedSource& source) {
  switch (source.kind) {
    case SeedKind::address:
      return {true, {source.text}, {}};
    case SeedKind::file:
      return read_lines(source.path);
    case SeedKind::host:
    case SeedKind::name:
      break;
  }
  const auto addresses = resolve(source.endpoint);
  if (!addresses) return {false, {}, addresses.error().text()};
  return {true, *addresses, {}};
}

bool names_one_node(const std::vector<std::string>& addresses) {
  if (addresses.size() == 1) return true;
  return !addresses.empty() &&
         std::all_of(addresses.begin(), addresses.end(),
                     [](const std::string& address) { return address.starts_with("tcp://127."); });
}

}  // namespace shardbus::transport
