#include "common/duration.hpp"

#include <algorithm>
#include <charconv>

namespace shardbus_tools {

std::optional<milliseconds> parse_duration(std::string_view text) {
  constexpr std::uint64_t kMax = 1ULL << 50;
  const std::size_t unit_at = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = text.substr(unit_at);
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + unit_at, number);
  if (unit_at == 0 || error != std::errc() || stop != text.data() + unit_at) return {};
  std::uint64_t factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s") factor = 1000;
  if (unit == "m") factor = 60'000;
  if (factor == 0 || number > kMax / factor) return {};
  return milliseconds(static_cast<milliseconds::rep>(number * factor));
}

std::string format_duration(milliseconds duration) {
  const auto ms = duration.count();
  if (ms != 0 && ms % 1000 == 0) return std::to_string(ms / 1000) + "s";
  return std::to_string(ms) + "ms";
}

}  // namespace shardbus_tools
