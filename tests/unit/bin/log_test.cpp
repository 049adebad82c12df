// The log of shardbusd on a pipe that nobody empties.
#include "daemon/log.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <string>

namespace shardbusd {
namespace {

using shardbus::LogLevel;

// Stands in for stderr. The writer waits on a full pipe, as one that was inherited does.
class StoppedReader {
 public:
  StoppedReader() {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    ::dup2(ends_[1], STDERR_FILENO);
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~StoppedReader() {
    ::dup2(before_, STDERR_FILENO);
    for (const int fd : {ends_[0], ends_[1], before_}) ::close(fd);
  }
  StoppedReader(const StoppedReader&) = delete;
  StoppedReader& operator=(const StoppedReader&) = delete;

  // Room for `pages` writes of PIPE_BUF bytes.
  void limit(int pages) { EXPECT_GE(::fcntl(ends_[1], F_SETPIPE_SZ, pages * PIPE_BUF), 0); }

  std::string read_all() {
    std::string all;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::read(ends_[0], part.data(), part.size())) > 0;) {
      all.append(part.data(), static_cast<std::size_t>(n));
    }
    return all;
  }

 private:
  std::array<int, 2> ends_{};
  int before_ = ::dup(STDERR_FILENO);
};

TEST(StderrSink, CountsWhatAFullPipeDoesNotTake) {
  StoppedReader reader;
  reader.limit(1);
  const shardbus::LogSink sink = stderr_sink(LogFormat::text, LogLevel::info);
  for (int i = 0; i < 100; ++i) sink(LogLevel::info, "some.event", std::string(1000, 'x'));
  const std::string first = reader.read_all();
  EXPECT_GE(first.size(), 1000U);
  EXPECT_LE(first.size(), static_cast<std::size_t>(PIPE_BUF));
  sink(LogLevel::info, "last.event", "");
  EXPECT_THAT(reader.read_all(), testing::HasSubstr(" lines before this one: stderr was full"));
}

TEST(StderrSink, ALineThatWasCutEndsBeforeTheNextOne) {
  StoppedReader reader;
  reader.limit(2);
  const shardbus::LogSink sink = stderr_sink(LogFormat::text, LogLevel::info);
  sink(LogLevel::info, "long.event", std::string(4 * PIPE_BUF, 'x'));
  const std::string first = reader.read_all();
  EXPECT_EQ(first.size(), static_cast<std::size_t>(2 * PIPE_BUF));
  EXPECT_THAT(first, testing::Not(testing::HasSubstr("\n")));
  sink(LogLevel::info, "next.event", "");
  const std::string next = reader.read_all();
  EXPECT_THAT(next, testing::StartsWith("\n"));
  EXPECT_THAT(next, testing::HasSubstr("log.lost 1 lines before this one"));
  EXPECT_THAT(next, testing::EndsWith("next.event\n"));
}

}  // namespace
}  // namespace shardbusd
