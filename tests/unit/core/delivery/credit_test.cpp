// Credit is a total: what is lost, repeated or late does no harm, and nobody waits for ever.
#include "core/delivery/credit.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "base/random.hpp"

namespace shardbus::core {
namespace {

TEST(CreditUse, CoversWhatWasGranted) {
  CreditUse use;
  EXPECT_FALSE(use.covers(0));
  use.grant(2, 100);
  EXPECT_TRUE(use.covers(100));
  EXPECT_FALSE(use.covers(101));
  use.use(60);
  EXPECT_FALSE(use.covers(41));
  use.use(40);
  EXPECT_FALSE(use.covers(0));  // two envelopes
  EXPECT_EQ(use.used(), 2U);
}

TEST(CreditUse, OldAndRepeatedGrantsTakeNothingBack) {
  CreditUse use;
  use.grant(10, 1000);
  use.grant(10, 1000);
  use.grant(5, 500);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(use.covers(100));
    use.use(100);
  }
  EXPECT_FALSE(use.covers(1));
}

TEST(CreditGrant, RefusesWhatGoesOver) {
  CreditGrant grant(2, 100);
  EXPECT_TRUE(grant.receive(10));
  EXPECT_TRUE(grant.receive(10));
  EXPECT_FALSE(grant.receive(10));
  CreditGrant bytes(10, 100);
  EXPECT_FALSE(bytes.receive(101));
}

TEST(CreditGrant, IsRenewedAfterHalfTheWindow) {
  CreditGrant grant(4, 1000);
  (void)grant.receive(1);
  EXPECT_FALSE(grant.due());
  (void)grant.receive(1);
  EXPECT_TRUE(grant.due());
  grant.renew();
  EXPECT_EQ(grant.told_envelopes(), 6U);
  EXPECT_FALSE(grant.due());
}

TEST(CreditGrant, OpenWorkKeepsItsShare) {
  CreditGrant grant(4, 1000);
  for (int i = 0; i < 4; ++i) (void)grant.receive(1);
  EXPECT_FALSE(grant.due(4));
  EXPECT_TRUE(grant.due(2));
  grant.renew(2);
  EXPECT_EQ(grant.told_envelopes(), 6U);
}

TEST(CreditGrant, NeverShrinks) {
  CreditGrant grant(4, 1000);
  for (int i = 0; i < 4; ++i) (void)grant.receive(1);
  grant.renew(0);
  const std::uint64_t told = grant.told_envelopes();
  grant.renew(4);
  EXPECT_EQ(grant.told_envelopes(), told);
}

// A sender that always has something to say against a receiver that answers in any order: grants
// are lost, repeated and overtaken, and are told again on the next occasion.
class Conversation {
 public:
  Conversation(std::uint64_t seed, std::uint64_t window)
      : random_(seed), grant_(window, window * 50) {
    use_.grant(grant_.told_envelopes(), grant_.told_bytes());
  }
  void step() {
    if (random_.chance(0.5) && use_.covers(kBytes)) {
      use_.use(kBytes);
      ASSERT_TRUE(grant_.receive(kBytes));
      ++open_;
    } else if (open_ > 0) {
      --open_;
      ++done_;
    }
    if (grant_.due(open_)) {
      grant_.renew(open_);
      const auto told = std::make_pair(grant_.told_envelopes(), grant_.told_bytes());
      const std::uint64_t copies = random_.below(3);
      for (std::uint64_t i = 0; i < copies; ++i) grants_.push_back(told);
    }
    if (!grants_.empty() && random_.chance(0.3)) take_grant(random_.below(grants_.size()));
    ASSERT_LE(open_, grant_.told_envelopes());
  }
  // All grants arrive and all work is done: the sender must be able to go on.
  void settle() {
    open_ = 0;
    if (grant_.due(0)) grant_.renew(0);
    grants_.emplace_back(grant_.told_envelopes(), grant_.told_bytes());
    while (!grants_.empty()) take_grant(0);
    ASSERT_TRUE(use_.covers(kBytes));
  }
  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  static constexpr std::uint64_t kBytes = 10;
  void take_grant(std::uint64_t at) {
    const auto [envelopes, bytes] = grants_[at];
    grants_.erase(grants_.begin() + static_cast<std::ptrdiff_t>(at));
    use_.grant(envelopes, bytes);
  }
  Random random_;
  CreditGrant grant_;
  CreditUse use_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> grants_;
  std::uint64_t open_ = 0;
  std::uint64_t done_ = 0;
};

TEST(Credit, NobodyWaitsForEver) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Conversation conversation(seed, 1 + seed % 9);
    for (int round = 0; round < 50; ++round) {
      for (int i = 0; i < 20; ++i) conversation.step();
      conversation.settle();
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(conversation.done(), 0U);
  }
}

// The window in bytes must hold the largest envelope even when half of it is used.
TEST(Credit, ALargeEnvelopeIsCoveredInTheEnd) {
  constexpr std::uint64_t kWindow = 1000;
  for (std::uint64_t small = 0; small < kWindow / 2; small += 7) {
    CreditGrant grant(100, kWindow);
    (void)grant.receive(small);
    if (grant.due()) grant.renew();
    EXPECT_GE(grant.told_bytes() - small, kWindow / 2);
  }
}

}  // namespace
}  // namespace shardbus::core
