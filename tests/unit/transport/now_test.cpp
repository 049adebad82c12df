#include "transport/now.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

namespace shardbus::transport {
namespace {

constexpr int kCannot = 77;
constexpr auto kSuspended = std::chrono::seconds(1000);

// In a process whose machine seems to have been suspended for so long since it started.
int check_after_suspension() {
  if (unshare(CLONE_NEWTIME) != 0) return kCannot;
  std::ofstream offsets("/proc/self/timens_offsets");
  offsets << "boottime " << kSuspended.count() << " 0" << std::endl;
  if (!offsets.good()) return kCannot;
  const pid_t inside = fork();
  if (inside == 0) {
    const Duration awake = std::chrono::steady_clock::now().time_since_epoch();
    _exit(now().time_since_epoch() - awake >= kSuspended ? 0 : 1);
  }
  int status = 0;
  waitpid(inside, &status, 0);
  return WEXITSTATUS(status);
}

TEST(Now, GoesOnWhileTheMachineIsSuspended) {
  const pid_t child = fork();
  if (child == 0) _exit(check_after_suspension());
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kCannot) GTEST_SKIP() << "needs the right to make a time namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Now, NeverGoesBack) {
  Time before = now();
  for (int i = 0; i < 100'000; ++i) {
    const Time next = now();
    ASSERT_GE(next, before);
    before = next;
  }
}

}  // namespace
}  // namespace shardbus::transport
