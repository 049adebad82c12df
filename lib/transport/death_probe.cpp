#include "transport/death_probe.hpp"

#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transport/probe.hpp"

namespace shardbus::transport {
namespace {

constexpr Duration kPatience = std::chrono::seconds(1);
constexpr Duration kPauseMin = std::chrono::milliseconds(1);
constexpr Duration kPauseMax = std::chrono::milliseconds(64);

bool signalled(int descriptor, short events) {
  pollfd item{descriptor, events, 0};
  return ::poll(&item, 1, 0) == 1;
}

// Whether the other end has closed the connection. What it says on it does not matter.
bool ended(int descriptor) {
  std::array<char, 256> bytes{};
  ssize_t size = 0;
  do {
    size = ::recv(descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT);
  } while (size > 0);
  return size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace

DeathProbe::~DeathProbe() {
  for (Watch& watch : watches_) close_connection(watch);
}

void DeathProbe::start(std::uint64_t peer, const std::string& endpoint, Time now) {
  const Result<Endpoint> parsed = parse_endpoint(endpoint);
  if (!parsed) return;
  auto watch = std::find_if(watches_.begin(), watches_.end(),
                            [peer](const Watch& one) { return one.peer == peer; });
  if (watch == watches_.end()) {
    watches_.push_back({peer, *parsed});
    watch = std::prev(watches_.end());
  }
  watch->until = now + kPatience;
  watch->next_try = now;
  watch->pause = kPauseMin;
}

std::vector<std::uint64_t> DeathProbe::collect(Time now) {
  std::vector<std::uint64_t> dead;
  std::erase_if(watches_, [&](Watch& watch) {
    const Step step = look(watch, now);
    if (step == Step::proven) dead.push_back(watch.peer);
    if (step == Step::waits && now < watch.until) return false;
    close_connection(watch);
    return true;
  });
  return dead;
}

DeathProbe::Step DeathProbe::look(Watch& watch, Time now) {
  switch (watch.state) {
    case State::pausing:
      if (now < watch.next_try) return Step::waits;
      return judge(watch, begin_connect(watch.descriptor, watch.endpoint), now);
    case State::connecting: {
      if (!signalled(watch.descriptor, POLLOUT)) return Step::waits;
      int error = ETIMEDOUT;
      socklen_t size = sizeof error;
      getsockopt(watch.descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
      return judge(watch, error, now);
    }
    case State::connected:
      return ended(watch.descriptor) ? judge(watch, ECONNRESET, now) : Step::waits;
  }
  return Step::waits;
}

DeathProbe::Step DeathProbe::judge(Watch& watch, int error, Time now) {
  if (error == ECONNREFUSED) return Step::proven;
  if (error == EINVAL) return Step::vain;
  if (error == 0 || error == EINPROGRESS) {
    watch.state = error == 0 ? State::connected : State::connecting;
    return Step::waits;
  }
  close_connection(watch);
  watch.state = State::pausing;
  watch.next_try = now + watch.pause;
  watch.pause = std::min(2 * watch.pause, kPauseMax);
  return Step::waits;
}

void DeathProbe::close_connection(Watch& watch) {
  if (watch.descriptor >= 0) ::close(std::exchange(watch.descriptor, -1));
}

void DeathProbe::add_waits(std::vector<pollfd>& items) const {
  for (const Watch& watch : watches_) {
    if (watch.state == State::connecting) items.push_back({watch.descriptor, POLLOUT, 0});
    if (watch.state == State::connected) items.push_back({watch.descriptor, POLLIN, 0});
  }
}

Time DeathProbe::next_deadline() const {
  Time next = kNever;
  for (const Watch& watch : watches_) {
    next = std::min(next, watch.until);
    if (watch.state == State::pausing) next = std::min(next, watch.next_try);
  }
  return next;
}

}  // namespace shardbus::transport
