// One lock around some sockets and what is decided with them, and the thread that waits for input
// (the poller).
//
// Whoever holds the lock is in a *pass* and may use the sockets. The poller waits outside the lock,
// on descriptors. Other threads take the lock if it is free and do their work at once; else they
// leave it in the inbox of whoever holds it, so that a burst becomes one batch.
//
// The traps behind the details: a send takes the edge of a socket's descriptor, so a pass that sent
// looks at its sockets again; the eventfd is read whenever poll reports it; a bounded sleep is a
// net whose catches are counted, since under load they mean that an event was missed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "shardbus/function.hpp"
#include "transport/dealers.hpp"
#include "transport/placement.hpp"
#include "transport/wakeup.hpp"

namespace shardbus::transport {

struct ReadOutcome {
  bool any = false;   // something was read
  bool more = false;  // something may be left
  bool held = false;  // nothing may be read for now, whatever is ready: look again at the deadline
};

// What a pass does. All calls come with the lock held.
class PassHooks {
 public:
  virtual ~PassHooks() = default;
  virtual void begin_pass(Time now) = 0;
  // Reads some input. `ready`: descriptors that poll reported.
  virtual ReadOutcome read(const std::vector<int>& ready) = 0;
  // Runs what became ready, and sends.
  virtual void end_pass() = 0;
  // Whether sockets that were sent to have something to read.
  virtual bool input_left() = 0;
  virtual Time next_deadline() = 0;
};

class Reactor final : public DescriptorSet {
 public:
  using Work = UniqueFunction<void()>;
  static constexpr std::size_t kInboxMax = 65536;
  static constexpr std::size_t kInboxBytesMax = 64U << 20;

  // `follow_thread`: id of the I/O thread to keep on the poller's core; 0: none.
  Reactor(PassHooks& hooks, const char* thread_name, int follow_thread);
  ~Reactor() override;
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  void start();
  // Ends the poller. Work may still be run, on the threads that bring it. Not from within a pass.
  void stop();

  // Holds the lock for one pass; ends the pass when it goes.
  class Pass {
   public:
    explicit Pass(Reactor& reactor) : reactor_(&reactor) {}
    Pass(Pass&& other) noexcept
        : reactor_(std::exchange(other.reactor_, nullptr)),
          lock_(std::move(other.lock_)),
          before_(other.before_) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (reactor_ != nullptr && lock_.owns_lock()) reactor_->leave(*this);
    }

   private:
    friend class Reactor;
    Reactor* reactor_;
    std::unique_lock<std::mutex> lock_;  // empty: nested in a pass of this thread
    const Reactor* before_ = nullptr;
  };
  // A pass right now, or nothing if another thread is in one.
  std::optional<Pass> try_pass();
  // Runs `work` within a pass: now if the lock is free or held by this thread, else soon. `bytes`:
  // what it keeps in memory until then.
  void run(Work work, std::size_t bytes = 0);
  // True while the inbox holds as much as callers may leave there: their messages are refused with
  // `overloaded` then. The library's own work is never refused.
  [[nodiscard]] bool crowded() const {
    return inbox_depth_.load() >= kInboxMax || inbox_bytes_.load() >= kInboxBytesMax;
  }
  [[nodiscard]] std::size_t inbox_depth() const { return inbox_depth_.load(); }
  // Runs `work` within a pass and waits for it. Not from within a pass.
  void run_and_wait(Work work);
  // Runs `work` under the lock, without the beginning and end of a pass. Not from within a pass.
  void run_exclusively(Work work);
  // True on a thread that is inside a pass of any reactor: it must not wait for one.
  [[nodiscard]] static bool inside_pass();
  [[nodiscard]] std::uint64_t net_catches() const { return net_catches_.load(); }
  [[nodiscard]] const Follower& follower() const { return follower_; }

  void watch(int descriptor) override;
  void unwatch(int descriptor) override;

 private:
  void poll_loop();
  void wait(std::vector<int>& ready);
  void wait_held();
  // One whole turn under the lock: reads, runs, flushes, until nothing is left to read.
  void turn(const std::vector<int>& ready);
  void run_inbox();
  // After the poller has ended: runs what was left in the inbox on this thread.
  void run_left_over();
  void leave(Pass& pass);

  PassHooks& hooks_;
  const char* thread_name_;
  Follower follower_;
  Wakeup wakeup_;
  int epoll_;
  std::mutex mutex_;
  Time wake_at_{};           // written by the poller under mutex_; it alone reads it outside
  bool running_ = false;     // guarded by mutex_
  bool held_ = false;        // of the poller: its last read was held
  std::mutex inbox_mutex_;   // taken under mutex_, never the other way round
  std::vector<Work> inbox_;  // guarded by inbox_mutex_
  std::atomic<std::size_t> inbox_depth_{0};  // written under inbox_mutex_, as is inbox_bytes_
  std::atomic<std::size_t> inbox_bytes_{0};
  std::atomic<bool> poller_wants_lock_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> net_catches_{0};
  std::thread poller_;
};

}  // namespace shardbus::transport
