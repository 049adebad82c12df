#include "transport/placement.hpp"

#include <sched.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace shardbus::transport {

Follower::Follower(int thread) : thread_(thread) {
  cpu_set_t mask;
  if (thread == 0 || sched_getaffinity(thread, sizeof mask, &mask) != 0) return;
  active_ = CPU_COUNT(&mask) > 1;
}

Follower::~Follower() = default;

void Follower::follow() {
  if (!active_) return;
  const int core = sched_getcpu();
  if (core < 0 || core == core_) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<unsigned>(core), &mask);
  if (sched_setaffinity(thread_, sizeof mask, &mask) == 0) {
    core_ = core;
    return;
  }
  active_ = false;
  trouble_ = std::string("cannot move the I/O thread: ") + std::strerror(errno);
  failed_ = true;
}

}  // namespace shardbus::transport
