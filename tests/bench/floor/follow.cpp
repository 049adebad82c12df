#include "bench/floor/follow.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "bench/floor/protocol.hpp"

namespace shardbus_floor {
namespace {

constexpr int kLooks = 5000;

}  // namespace

Follower::Follower(bool on) {
  // A thread gives itself its name, some time after it has started.
  for (int looks = 0; on && thread_ == 0 && looks < kLooks; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(entry.path() / "comm"), name);
      if (name.starts_with("ZMQbg/IO")) thread_ = std::stoi(entry.path().filename().string());
    }
  }
  must(!on || thread_ != 0, "no I/O thread to follow");
}

void Follower::pass() {
  if (thread_ == 0 || ++passes_ % kFollowEvery != 1) return;
  const int core = sched_getcpu();
  if (core == core_) return;
  core_ = core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(core), &one);
  must(sched_setaffinity(thread_, sizeof one, &one) == 0, "affinity");
}

}  // namespace shardbus_floor
