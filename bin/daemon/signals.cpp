#include "daemon/signals.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace shardbusd {
namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace

Background::Background(std::function<void()> work)
    : done_(checked(::eventfd(0, EFD_CLOEXEC), "eventfd")), thread_([this, work = std::move(work)] {
        work();
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(done_, &one, sizeof one);
      }) {}

Background::~Background() {
  thread_.join();
  ::close(done_);
}

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  checked(-::pthread_sigmask(SIG_BLOCK, &set, nullptr), "pthread_sigmask");
  (void)std::signal(SIGPIPE, SIG_IGN);  // Cannot fail for SIGPIPE.
  descriptor_ = checked(::signalfd(-1, &set, SFD_CLOEXEC), "signalfd");
}

Signals::~Signals() {
  ::close(descriptor_);
}

int Signals::wait(const Background* work) {
  const int done = work == nullptr ? -1 : work->descriptor();  // poll() skips -1
  std::array<pollfd, 2> ready{pollfd{descriptor_, POLLIN, 0}, pollfd{done, POLLIN, 0}};
  while (::poll(ready.data(), ready.size(), -1) < 0 && errno == EINTR) {
  }
  // The work first: a signal that came together with its end is for what follows.
  if ((ready[1].revents & POLLIN) != 0) return 0;
  signalfd_siginfo info{};
  if (::read(descriptor_, &info, sizeof info) != sizeof info) return SIGTERM;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace shardbusd
