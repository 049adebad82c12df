#include "transport/reactor.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <condition_variable>

#include "transport/now.hpp"
#include "transport/threads.hpp"

namespace shardbus::transport {
namespace {

constexpr Duration kNet = std::chrono::milliseconds(50);

// The reactor whose pass is on this thread's stack.
thread_local const Reactor* current_pass = nullptr;

}  // namespace

Reactor::Reactor(PassHooks& hooks, const char* thread_name, int follow_thread)
    : hooks_(hooks),
      thread_name_(thread_name),
      follower_(follow_thread),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  watch(wakeup_.descriptor());
}

Reactor::~Reactor() {
  stop();
  close(epoll_);
}

void Reactor::start() {
  {
    const std::lock_guard lock(mutex_);
    running_ = true;
  }
  poller_ = start_thread(thread_name_, [this] { poll_loop(); });
}

void Reactor::stop() {
  if (stopping_.exchange(true)) return;
  wakeup_.signal();
  if (poller_.joinable()) poller_.join();
  run_left_over();  // what came too late for the poller
}

void Reactor::run_left_over() {
  const std::lock_guard lock(mutex_);
  if (!running_) return;
  const Reactor* const before = std::exchange(current_pass, this);
  hooks_.begin_pass(now());
  run_inbox();
  hooks_.end_pass();
  current_pass = before;
}

bool Reactor::inside_pass() {
  return current_pass != nullptr;
}

std::optional<Reactor::Pass> Reactor::try_pass() {
  std::optional<Pass> pass(std::in_place, *this);
  if (current_pass == this) return pass;
  if (!poller_wants_lock_.load(std::memory_order_relaxed)) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock() && running_) {
      pass->lock_ = std::move(lock);
      pass->before_ = std::exchange(current_pass, this);
      hooks_.begin_pass(now());
      run_inbox();  // what this thread left there earlier comes first
      return pass;
    }
  }
  pass.reset();
  return pass;
}

void Reactor::leave(Pass& pass) {
  hooks_.end_pass();
  bool wake = hooks_.input_left() || hooks_.next_deadline() < wake_at_;
  current_pass = pass.before_;
  pass.lock_.unlock();
  // Somebody may have left work after our last look at the inbox.
  wake = wake || inbox_depth_.load() > 0;
  if (wake) wakeup_.signal();
}

void Reactor::run(Work work, std::size_t bytes) {
  if (auto pass = try_pass()) {
    work();
    return;
  }
  bool wake = false;
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(std::move(work));
    inbox_bytes_ += bytes;
    wake = inbox_depth_.fetch_add(1) == 0;
  }
  if (wake) wakeup_.signal();
  // Nobody looks at the inbox any more, unless the stopping thread has not come to that yet.
  if (stopping_.load()) run_left_over();
}

void Reactor::run_and_wait(Work work) {
  if (stopping_.load()) return run_exclusively(std::move(work));
  std::mutex done_mutex;
  std::condition_variable done_signal;
  bool done = false;
  run([&] {
    work();
    const std::lock_guard lock(done_mutex);
    done = true;
    done_signal.notify_one();
  });
  std::unique_lock lock(done_mutex);
  done_signal.wait(lock, [&] { return done; });
}

void Reactor::run_exclusively(Work work) {
  const std::lock_guard lock(mutex_);
  const Reactor* const before = std::exchange(current_pass, this);
  work();
  current_pass = before;
}

void Reactor::run_inbox() {
  while (inbox_depth_.load() > 0) {
    std::vector<Work> taken;
    {
      const std::lock_guard lock(inbox_mutex_);
      taken.swap(inbox_);
      inbox_depth_ = 0;
      inbox_bytes_ = 0;
    }
    for (Work& work : taken) work();
  }
}

// --- the poller ---

void Reactor::poll_loop() {
  std::vector<int> ready;
  while (!stopping_.load()) {
    follower_.follow();
    wait(ready);
    poller_wants_lock_ = true;
    const std::lock_guard lock(mutex_);
    poller_wants_lock_ = false;
    turn(ready);
  }
}

// Descriptors that nobody reads stay ready, so they cannot be waited for.
void Reactor::wait_held() {
  pollfd wakeup{wakeup_.descriptor(), POLLIN, 0};
  poll(&wakeup, 1, 1);
}

void Reactor::wait(std::vector<int>& ready) {
  if (held_) wait_held();
  std::array<epoll_event, 64> events{};
  const Duration left = std::clamp<Duration>(wake_at_ - now(), Duration::zero(), kNet);
  const auto timeout =
      static_cast<int>((left + std::chrono::microseconds(999)) / std::chrono::milliseconds(1));
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                               inbox_depth_.load() > 0 ? 0 : timeout);
  ready.clear();
  for (int i = 0; i < count; ++i) {
    const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
    if (descriptor == wakeup_.descriptor()) wakeup_.clear();
    ready.push_back(descriptor);
  }
}

void Reactor::turn(const std::vector<int>& ready) {
  const Reactor* const before = std::exchange(current_pass, this);
  const bool net = ready.empty();
  bool first = true;
  bool more = true;
  while (more) {
    hooks_.begin_pass(now());
    run_inbox();
    const ReadOutcome read = hooks_.read(first ? ready : std::vector<int>{});
    held_ = read.held;
    if (net && first && read.any) ++net_catches_;
    first = false;
    hooks_.end_pass();
    // A stop is not kept waiting by input that does not end.
    more = !stopping_.load() && (read.more || inbox_depth_.load() > 0 || hooks_.input_left());
  }
  wake_at_ = hooks_.next_deadline();
  current_pass = before;
}

void Reactor::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
}

void Reactor::unwatch(int descriptor) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

}  // namespace shardbus::transport
