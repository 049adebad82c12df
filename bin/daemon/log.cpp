#include "daemon/log.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
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

// Of a pipe, whether PIPE_BUF bytes go in at once. Whoever reads the log and has stopped must not
// stop the node with it.
bool takes_more(int fd) {
  pollfd one{fd, POLLOUT, 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & (POLLOUT | POLLERR)) != 0;
}

bool write_line(int fd, std::string_view line) {
  while (!line.empty()) {
    if (!takes_more(fd)) return false;
    const ssize_t written = ::write(fd, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return false;
    if (written <= 0) return true;  // nobody is left to tell
    line.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
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
  struct State {
    std::mutex writing;  // between asking for room and writing nobody else may take it
    std::uint64_t lost = 0;
  };
  const auto state = std::make_shared<State>();
  return [format, least, state](LogLevel level, std::string_view event, std::string_view text) {
    if (level < least) return;
    const std::lock_guard lock(state->writing);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    const auto put = [&](LogLevel as, std::string_view name, std::string_view words) {
      return write_line(STDERR_FILENO, format_log_line(format, ms, as, name, words) + "\n");
    };
    if (state->lost > 0) {
      const std::string told =
          std::to_string(state->lost) + " lines before this one: stderr was full";
      if (put(LogLevel::warn, "log.lost", told)) state->lost = 0;
    }
    if (!put(level, event, text)) ++state->lost;
  };
}

}  // namespace shardbusd
