#include "observe/log.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

namespace shardbus::observe {
namespace {

constexpr std::uint32_t kLinesPerSecond = 20;

void to_stderr(LogLevel level, std::string_view event, std::string_view text) {
  if (level < LogLevel::warn) return;
  std::fprintf(stderr, "shardbus %s %.*s %.*s\n", level == LogLevel::warn ? "warn" : "error",
               static_cast<int>(event.size()), event.data(), static_cast<int>(text.size()),
               text.data());
}

}  // namespace

Log::Log(LogSink sink, std::string who)
    : sink_(sink ? std::move(sink) : LogSink(to_stderr)), who_(std::move(who)) {}

void Log::write(LogLevel level, std::string_view event, std::string_view text) {
  std::string line = who_ + " " + std::string(text);
  {
    const std::lock_guard lock(mutex_);
    auto found = rates_.find(event);
    if (found == rates_.end()) found = rates_.emplace(std::string(event), Rate{}).first;
    Rate& rate = found->second;
    const auto second = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::steady_clock::now().time_since_epoch())
                            .count();
    if (rate.second != second) rate = {second, 0, rate.dropped};
    if (++rate.written > kLinesPerSecond) {
      ++rate.dropped;
      return;
    }
    if (rate.dropped > 0) line += " repeats_not_shown=" + std::to_string(rate.dropped);
    rate.dropped = 0;
  }
  sink_(level, event, line);
}

}  // namespace shardbus::observe
