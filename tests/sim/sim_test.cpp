// Seeds that must hold, and broken rules that must be noticed.
#include <gtest/gtest.h>

#include "sim/breaks.hpp"
#include "sim/growth.hpp"
#include "sim/minimise.hpp"
#include "sim/runner.hpp"

namespace shardbus::sim {
namespace {

constexpr std::uint64_t kSeeds = 300;
constexpr std::uint64_t kSeedsToNotice = 500;
constexpr std::uint64_t kPolicySeeds = 40;

// One case per block of seeds, so that a failure names few.
class Seeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, Hold) {
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 30; ++seed) {
    ScenarioOptions options;
    options.seed = seed;
    const ScenarioResult result = run_scenario(options);
    ASSERT_FALSE(result.broken) << "seed " << seed << ": " << *result.broken
                                << "\nreplay: shardbus-sim --seeds 1 --seed " << seed << " --trace";
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, Seeds, testing::Range<std::uint64_t>(1, kSeeds + 1, 30));

class Policies : public testing::TestWithParam<downing::Rules> {};

TEST_P(Policies, Hold) {
  for (std::uint64_t seed = 1; seed <= kPolicySeeds; ++seed) {
    ScenarioOptions options;
    options.seed = seed;
    options.downing = GetParam();
    const ScenarioResult result = run_scenario(options);
    ASSERT_FALSE(result.broken) << downing::to_text(GetParam()) << ", seed " << seed << ": "
                                << *result.broken;
  }
}

INSTANTIATE_TEST_SUITE_P(Beside, Policies,
                         testing::Values(downing::Rules{DowningPolicy::static_quorum},
                                         downing::Rules{DowningPolicy::keep_oldest},
                                         downing::Rules{DowningPolicy::keep_oldest, 0, false},
                                         downing::Rules{DowningPolicy::down_all}));

TEST(Replay, ASeedGivesTheSameRunTwice) {
  for (const std::uint64_t seed : {3U, 17U, 42U}) {
    ScenarioOptions options;
    options.seed = seed;
    options.hash_trace = true;
    EXPECT_EQ(run_scenario(options).trace_hash, run_scenario(options).trace_hash) << seed;
  }
}

TEST(Replay, TheNumberOfThreadsChangesNothing) {
  RunOptions options;
  options.seeds = 12;
  options.twice_every = 5;
  const RunReport alone = run_seeds(options, {});
  options.jobs = 3;
  const RunReport together = run_seeds(options, {});
  EXPECT_FALSE(alone.broken_seed) << alone.broken;
  EXPECT_EQ(alone.runs, 12U);
  EXPECT_EQ(alone.twice, 2U);
  EXPECT_EQ(alone.events, together.events);
  EXPECT_EQ(alone.messages, together.messages);
  EXPECT_EQ(marks_text(alone.marks), marks_text(together.marks));
}

TEST(Replay, TheLowestBrokenSeedIsNamed) {
  RunOptions options;
  options.seeds = 200;
  options.scenario.break_name = "tell-lost";
  const RunReport alone = run_seeds(options, {});
  options.jobs = 3;
  const RunReport together = run_seeds(options, {});
  ASSERT_TRUE(alone.broken_seed);
  EXPECT_EQ(alone.broken_seed, together.broken_seed);
  EXPECT_EQ(alone.broken, together.broken);
  EXPECT_EQ(alone.events, together.events);
}

TEST(Faults, LeavingOneOutChangesNoOther) {
  const auto begun = [](const std::set<int>& without) {
    ScenarioOptions options;
    options.seed = 3;
    options.without = without;
    const ScenarioResult result = run_scenario(options);
    std::vector<std::string> lines;
    for (const PlannedFault& fault : result.plan) lines.push_back(describe(fault));
    return std::pair(lines, result.faults);
  };
  const auto [all, count] = begun({});
  const auto [rest, fewer] = begun({1, 2});
  EXPECT_EQ(all, rest);
  ASSERT_GT(count, 2U);
  EXPECT_EQ(fewer, count - 2);
}

TEST(Minimise, ASmallerFormStillBreaks) {
  ScenarioOptions options;
  options.break_name = "lower-term-repeated";
  while (!run_scenario(options).broken) ++options.seed;
  const Minimised found = minimise(options, [](const std::string&) {});
  ASSERT_TRUE(found.result.broken);
  EXPECT_LE(found.result.plan.size() - found.options.without.size(), 8U);
  const ScenarioResult again = run_scenario(found.options);
  EXPECT_EQ(again.broken, found.result.broken);
}

// Of one sender, in a cluster of four times the nodes: no list in every digest.
TEST(Growth, ASendersBytesDoNotGrowWithTheMembers) {
  const auto told = [](const std::string&) {};
  const GrowthResult small = measure_growth({3, 64}, told);
  const GrowthResult large = measure_growth({12, 64}, told);
  for (const GrowthResult& result : {small, large}) {
    for (const Duration time :
         {result.formed, result.joined_settled, result.crashed_settled, result.decider_settled}) {
      EXPECT_GT(time, Duration{});
      EXPECT_LT(time, std::chrono::seconds(10));
    }
    EXPECT_NEAR(result.digests_per_second, 5, 1);
    EXPECT_NEAR(result.sent_per_second, result.received_per_second, 1);
  }
  EXPECT_LT(large.received_per_second / 11, 1.25 * small.received_per_second / 2);
}

class Breaks : public testing::TestWithParam<std::string> {};

TEST_P(Breaks, AreNoticed) {
  for (std::uint64_t seed = 1; seed <= kSeedsToNotice; ++seed) {
    ScenarioOptions options;
    options.seed = seed;
    options.break_name = GetParam();
    if (run_scenario(options).broken) return;
  }
  FAIL() << GetParam() << " went unnoticed";
}

std::vector<std::string> break_names() {
  std::vector<std::string> names;
  for (const Break& known : all_breaks()) names.emplace_back(known.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Breaks, testing::ValuesIn(break_names()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace shardbus::sim
