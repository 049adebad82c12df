// How fast silence is noticed, and what is not mistaken for it.
#include "core/failure/failure.hpp"

#include <gtest/gtest.h>

namespace shardbus::failure {
namespace {

using namespace std::chrono_literals;

constexpr NodeKey kPeer{2};

// Steps every 50 ms, so that the own pause detection stays out of it.
class DetectorTest : public testing::Test {
 protected:
  void run(Duration time, Duration digest_every) {
    const Time until = now_ + time;
    while (now_ < until) {
      now_ += 50ms;
      const bool digest = digest_every.count() > 0 && now_ - last_digest_ >= digest_every;
      if (digest) last_digest_ = now_;
      digest ? detector_.step(now_, Heard{kPeer}) : detector_.step(now_, Tick{});
      if (detector_.reach(kPeer) != Reach::reachable && noticed_ == Time{}) noticed_ = now_;
    }
  }

  Detector detector_{Config{}};
  Time now_ = Time{} + 1s;
  Time last_digest_ = now_;
  Time noticed_{};
};

TEST_F(DetectorTest, NoticesAStoppedPeerWithinTwoSeconds) {
  detector_.step(now_, Watch{kPeer});
  run(20s, 200ms);
  ASSERT_EQ(noticed_, Time{});
  run(3s, 0ms);
  EXPECT_LE(noticed_ - last_digest_, 2s);
  EXPECT_GE(noticed_ - last_digest_, 1200ms);
}

TEST_F(DetectorTest, AHiccupOfOneSecondRaisesNoAlarm) {
  detector_.step(now_, Watch{kPeer});
  for (int i = 0; i < 20; ++i) {
    run(2s, 200ms);
    run(1s, 0ms);
  }
  EXPECT_EQ(noticed_, Time{});
}

TEST_F(DetectorTest, IsAsFastAfterManyHiccupsAsTheBoundSays) {
  detector_.step(now_, Watch{kPeer});
  for (int i = 0; i < 20; ++i) {
    run(2s, 200ms);
    run(1s, 0ms);
  }
  run(1s, 200ms);
  run(4s, 0ms);
  EXPECT_LE(noticed_ - last_digest_, 2500ms);
}

TEST_F(DetectorTest, ManyQuickDigestsDoNotMakeItImpatient) {
  detector_.step(now_, Watch{kPeer});
  run(10s, 50ms);
  run(1s, 0ms);
  EXPECT_EQ(noticed_, Time{});
}

TEST_F(DetectorTest, TheDeadlineIsTheInstantAtWhichPhiReachesTheThreshold) {
  Config config;
  config.tick = 1h;
  Detector detector(config);
  detector.step(now_, Watch{kPeer});
  const Time alarm = detector.next_deadline();
  EXPECT_LT(detector.phi(alarm - 1ms, kPeer), config.threshold);
  EXPECT_GE(detector.phi(alarm + 1ms, kPeer), config.threshold);
  EXPECT_TRUE(detector.step(alarm - 1us, Tick{}).empty());
  EXPECT_EQ(detector.step(alarm, Tick{}).size(), 1U);
}

TEST_F(DetectorTest, SilenceNeverLowersSuspicion) {
  detector_.step(now_, Watch{kPeer});
  double before = 0;
  for (int i = 0; i < 60; ++i) {
    now_ += 50ms;
    const double phi = detector_.phi(now_, kPeer);
    EXPECT_GE(phi, before);
    before = phi;
  }
}

}  // namespace
}  // namespace shardbus::failure
