// Lets one thread run on the core of another.
//
// A wake-up across cores costs more than the rest of a message's path, so the ZeroMQ I/O thread
// follows its poller. Only that thread is confined; the mask it had at first bounds where it may
// go.
#pragma once

#include <atomic>
#include <string>

namespace shardbus::transport {

class Follower {
 public:
  // `thread`: id of the thread to be moved; 0 turns following off.
  explicit Follower(int thread);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Moves the thread to the caller's core if that has changed. Cheap when it has not.
  void follow();
  // Why following went off; empty while it works. Safe from any thread.
  [[nodiscard]] std::string trouble() const { return failed_.load() ? trouble_ : std::string(); }

 private:
  int thread_;
  int core_ = -1;
  bool active_ = false;
  std::string trouble_;  // written once, before failed_
  std::atomic<bool> failed_{false};
};

}  // namespace shardbus::transport
