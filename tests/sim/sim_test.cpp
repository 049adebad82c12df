// Seeds that must hold, and broken rules that must be noticed.
#include <gtest/gtest.h>

#include "sim/breaks.hpp"
#include "sim/scenario.hpp"

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
