// The reactor's inbox: its bound, and what happens to work that meets the end.
#include "transport/reactor.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

namespace shardbus::transport {
namespace {

class NoHooks final : public PassHooks {
 public:
  void begin_pass(Time) override { ++passes; }
  ReadOutcome read(const std::vector<int>&) override { return {false, endless, held}; }
  void end_pass() override {}
  bool input_left() override { return false; }
  Time next_deadline() override { return kNever; }
  int passes = 0;
  bool endless = false;  // there is always more to read
  std::atomic<bool> held = false;
};

class ReactorTest : public testing::Test {
 protected:
  ReactorTest() { reactor_.start(); }

  // Runs `work` while another thread is in a pass.
  template <class Work>
  void while_busy(Work work) {
    std::latch busy(1);
    std::latch done(1);
    std::thread other([&] {
      reactor_.run_and_wait([&] {
        busy.count_down();
        done.wait();
      });
    });
    busy.wait();
    work();
    done.count_down();
    other.join();
  }

  NoHooks hooks_;
  Reactor reactor_{hooks_, "sb-test", 0};
};

TEST_F(ReactorTest, TheInboxIsBoundedInNumber) {
  std::atomic<std::size_t> ran = 0;
  while_busy([&] {
    while (!reactor_.crowded()) reactor_.run([&] { ++ran; });
    EXPECT_EQ(reactor_.inbox_depth(), Reactor::kInboxMax);
    reactor_.run([&] { ++ran; });  // the library's own work is taken all the same
  });
  reactor_.run_and_wait([] {});
  EXPECT_FALSE(reactor_.crowded());
  EXPECT_EQ(ran, Reactor::kInboxMax + 1);
}

TEST_F(ReactorTest, TheInboxIsBoundedInBytes) {
  while_busy([&] {
    while (!reactor_.crowded()) reactor_.run([] {}, 1U << 20);
    EXPECT_EQ(reactor_.inbox_depth(), 64U);
  });
  reactor_.run_and_wait([] {});
  EXPECT_FALSE(reactor_.crowded());
}

TEST_F(ReactorTest, WorkIsStillRunWhileNothingMayBeRead) {
  hooks_.held = true;
  reactor_.run_and_wait([] {});
  bool ran = false;
  while_busy([&] { reactor_.run([&] { ran = true; }); });
  reactor_.run_and_wait([] {});
  EXPECT_TRUE(ran);
}

// A thread that found another one in a pass left its work in the inbox, and nobody came for it.
TEST_F(ReactorTest, WorkThatComesAfterTheEndRunsOnTheThreadThatBringsIt) {
  reactor_.stop();
  std::thread::id ran_on;
  std::thread late;
  std::thread::id late_id;
  while_busy([&] {
    late = std::thread([&] { reactor_.run([&] { ran_on = std::this_thread::get_id(); }); });
    late_id = late.get_id();
    while (reactor_.inbox_depth() == 0) std::this_thread::yield();
  });
  late.join();
  EXPECT_EQ(ran_on, late_id);
}

TEST_F(ReactorTest, WorkLeftAtTheEndMayBringMore) {
  reactor_.stop();
  bool ran = false;
  reactor_.run_exclusively([&] { reactor_.run([&] { ran = true; }); });
  EXPECT_TRUE(ran);
}

TEST_F(ReactorTest, EndlessInputDoesNotKeepItFromStopping) {
  reactor_.run_and_wait([&] { hooks_.endless = true; });
  reactor_.stop();
}

}  // namespace
}  // namespace shardbus::transport
