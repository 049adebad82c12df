// SIGTERM and SIGINT as something to wait for, beside the end of a piece of work.
#pragma once

#include <functional>
#include <thread>

namespace shardbusd {

// A piece of work on a thread of its own. The destructor waits for its end.
class Background {
 public:
  explicit Background(std::function<void()> work);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  // Becomes readable when the work has ended.
  [[nodiscard]] int descriptor() const { return done_; }

 private:
  int done_ = -1;
  std::thread thread_;
};

// Blocks SIGTERM and SIGINT in this thread and in those that it starts later, and reads them from a
// descriptor. Ignores SIGPIPE. Make it before any other thread.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Waits for a signal and gives its number, or for the end of the work (if any) and gives 0.
  int wait(const Background* work = nullptr);

 private:
  int descriptor_ = -1;
};

}  // namespace shardbusd
