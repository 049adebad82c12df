// The way to the log sink of a node or client: says who writes, and keeps a repeated event from
// flooding.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.hpp"
#include "shardbus/options.hpp"

namespace shardbus::observe {

class Log {
 public:
  // `who`: starts each line, as "node=a". Without a sink, warnings and errors go to stderr.
  Log(LogSink sink, std::string who);
  // Before the first write.
  void rename(std::string who) { who_ = std::move(who); }
  // At most 20 lines per second of one event; the rest is counted and told with the next one.
  void write(LogLevel level, std::string_view event, std::string_view text);

 private:
  struct Rate {
    std::int64_t second = 0;
    std::uint32_t written = 0;
    std::uint64_t dropped = 0;
  };
  LogSink sink_;
  std::string who_;
  std::mutex mutex_;
  std::map<std::string, Rate, std::less<>> rates_;  // guarded by mutex_; event names are few
};

}  // namespace shardbus::observe
