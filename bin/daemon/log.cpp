#include "daemon/log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
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

// Other processes may fill a pipe between the question and the write, so it has to be one that does
// not wait; their own end is left as it is. Opened only once: the end of the process closes it.
int log_descriptor() {
  struct stat info {};
  if (::fstat(STDERR_FILENO, &info) != 0 || !S_ISFIFO(info.st_mode)) return STDERR_FILENO;
  const int own = ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  return own < 0 ? STDERR_FILENO : own;
}

// The sink of one process. Its caller holds a lock: between asking for room and writing nobody else
// may take it.
class Lines {
 public:
  // Whether all of it went out. What did not is left out, from the next line on.
  bool write(std::string line) {
    line += '\n';
    if (cut_) line.insert(0, 1, '\n');
    std::string_view rest = line;
    while (!rest.empty()) {
      if (!takes_more(descriptor_)) return stop(rest.size() < line.size());
      const ssize_t written =
          ::write(descriptor_, rest.data(), std::min<std::size_t>(rest.size(), PIPE_BUF));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno == EAGAIN) return stop(rest.size() < line.size());
      if (written <= 0) break;  // nobody is left to tell
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    cut_ = false;
    return true;
  }

 private:
  bool stop(bool begun) {
    cut_ = cut_ || begun;
    return false;
  }

  int descriptor_ = log_descriptor();
  bool cut_ = false;  // within a line
};

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
    std::mutex writing;
    Lines lines;
    std::uint64_t lost = 0;
  };
  const auto state = std::make_shared<State>();
  return [format, least, state](LogLevel level, std::string_view event, std::string_view text) {
    if (level < least) return;
    const std::lock_guard lock(state->writing);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    const auto put = [&](LogLevel as, std::string_view name, std::string_view words) {
      return state->lines.write(format_log_line(format, ms, as, name, words));
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
