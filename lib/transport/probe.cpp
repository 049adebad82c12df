#include "transport/probe.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>

namespace shardbus::transport {
namespace {

constexpr Duration kPatience = std::chrono::seconds(1);

Prober::Outcome outcome_of(int error) {
  if (error == 0) return Prober::Outcome::connected;
  return error == ECONNREFUSED ? Prober::Outcome::refused : Prober::Outcome::unknown;
}

}  // namespace

int begin_connect(int& descriptor, const Endpoint& endpoint) {
  sockaddr_storage address{};
  socklen_t size = 0;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (inet_pton(AF_INET, endpoint.host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(endpoint.port);
    size = sizeof *v4;
  } else if (inet_pton(AF_INET6, endpoint.host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(endpoint.port);
    size = sizeof *v6;
  } else {
    return EINVAL;
  }
  descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  return connect(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0 ? 0 : errno;
}

Prober::~Prober() {
  for (const Attempt& attempt : attempts_) close(attempt.descriptor);
}

void Prober::start(std::uint64_t peer, const std::string& endpoint, Time now) {
  for (const Attempt& attempt : attempts_) {
    if (attempt.peer == peer) return;
  }
  const Result<Endpoint> parsed = parse_endpoint(endpoint);
  int descriptor = -1;
  const int error = parsed ? begin_connect(descriptor, *parsed) : EINVAL;
  if (error == EINPROGRESS) {
    attempts_.push_back({peer, descriptor, now + kPatience});
    return;
  }
  if (descriptor >= 0) close(descriptor);
  done_.push_back({peer, outcome_of(error)});
}

std::vector<Prober::Finding> Prober::collect(Time now) {
  std::vector<Finding> found;
  found.swap(done_);
  std::erase_if(attempts_, [&](const Attempt& attempt) {
    pollfd item{attempt.descriptor, POLLOUT, 0};
    const bool ready = poll(&item, 1, 0) == 1;
    if (!ready && now < attempt.deadline) return false;
    int error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (ready) getsockopt(attempt.descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    close(attempt.descriptor);
    found.push_back({attempt.peer, outcome_of(error)});
    return true;
  });
  return found;
}

std::vector<int> Prober::descriptors() const {
  std::vector<int> all;
  all.reserve(attempts_.size());
  for (const Attempt& attempt : attempts_) all.push_back(attempt.descriptor);
  return all;
}

}  // namespace shardbus::transport
