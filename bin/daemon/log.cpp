#include "daemon/log.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace shardbusd {
namespace {

using shardbus::LogLevel;

std::string_view level_name(LogLevel level) {
  constexpr std::array<std::string_view, 4> kNames{"debug", "info", "warn", "error"};
  return kNames.at(static_cast<std::size_t>(level));
}

std::string utc(std::int64_t time_ms) {
  const std::time_t seconds = time_ms / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> date{}, all{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(all.data(), all.size(), "%.20s.%03dZ", date.data(),
                static_cast<int>(time_ms % 1000));
  return all.data();
}

// A line break in a value would make two events of one.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

}  // namespace

std::string format_log_line(LogFormat format, std::int64_t time_ms, LogLevel level,
                            std::string_view event, std::string_view text) {
  if (format == LogFormat::json) {
    const nlohmann::ordered_json line = {
        {"time", utc(time_ms)}, {"level", level_name(level)}, {"event", event}, {"text", text}};
    return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::string line = utc(time_ms) + " " + std::string(level_name(level));
  line += std::string(level_name(level).size() == 4 ? "  " : " ") + std::string(event);
  if (!text.empty()) line += " " + one_line(text);
  return line;
}

shardbus::LogSink stderr_sink(LogFormat format, LogLevel least) {
  return [format, least](LogLevel level, std::string_view event, std::string_view text) {
    if (level < least) return;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    const std::string line = format_log_line(format, ms, level, event, text) + "\n";
    // Nobody is left to tell if stderr is gone.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  };
}

}  // namespace shardbusd
