// The node's way to its log sink: names the node, and keeps a repeated event from flooding.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.hpp"
#include "shardbus/options.hpp"

namespace shardbus::runtime {

class Log {
 public:
  Log(LogSink sink, std::string node);
  // Before the first write.
  void name_node(std::string node) { node_ = std::move(node); }
  // At most 20 lines per second of one event; the rest is counted and told with the next one.
  void write(LogLevel level, std::string_view event, std::string_view text);

 private:
  struct Rate {
    std::int64_t second = 0;
    std::uint32_t written = 0;
    std::uint64_t dropped = 0;
  };
  LogSink sink_;
  std::string node_;
  std::mutex mutex_;
  std::map<std::string, Rate, std::less<>> rates_;  // guarded by mutex_; event names are few
};

}  // namespace shardbus::runtime
