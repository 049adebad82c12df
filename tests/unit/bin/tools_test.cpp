// The small parts that the programs share: durations, latencies, tables, and the quickstart's
// bookkeeping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "common/duration.hpp"
#include "common/histogram.hpp"
#include "common/nearest.hpp"
#include "common/process.hpp"
#include "ctl/bench/ledger.hpp"
#include "ctl/exit_codes.hpp"
#include "ctl/render.hpp"
#include "demo/ledger.hpp"

namespace {

using shardbus_demo::Death;
using shardbus_demo::Entity;
using shardbus_demo::kTellAmount;
using shardbus_demo::note_reply;
using shardbus_demo::what_is_wrong;
using shardbus_tools::Histogram;
using shardbus_tools::milliseconds;
using shardbus_tools::parse_duration;
using testing::HasSubstr;

TEST(ProcessTest, SaysWhenAProcessStandsStill) {
  const shardbus_tools::Process process({"/bin/sleep", "60"});
  EXPECT_FALSE(shardbus_tools::wait_stopped(process.pid(), milliseconds(1)));
  process.signal(SIGSTOP);
  EXPECT_TRUE(shardbus_tools::wait_stopped(process.pid(), milliseconds(10'000)));
}

TEST(DurationTest, NeedsANumberAndAUnit) {
  EXPECT_EQ(parse_duration("200ms"), milliseconds(200));
  EXPECT_EQ(parse_duration("5s"), milliseconds(5000));
  EXPECT_EQ(parse_duration("2m"), milliseconds(120'000));
  EXPECT_EQ(parse_duration("0ms"), milliseconds(0));
  for (const char* wrong : {"", "5", "s", "5 s", " 5s", "5s ", "-5s", "1.5s", "5S", "5sec",
                            "99999999999999999999s", "99999999999999999m"})
    EXPECT_FALSE(parse_duration(wrong)) << wrong;
}

TEST(DurationTest, IsWrittenInItsLargestExactUnit) {
  for (const char* text : {"1ms", "999ms", "1s", "1500ms", "120s", "0ms"})
    EXPECT_EQ(shardbus_tools::format_duration(*parse_duration(text)), text);
}

TEST(NearestTest, FindsTheWordThatWasMeant) {
  using shardbus_tools::nearest;
  const std::vector<std::string> words{"status", "members", "--timeout", "log.level"};
  EXPECT_EQ(nearest("statsu", words), "status");
  EXPECT_EQ(nearest("--tiemout", words), "--timeout");
  EXPECT_EQ(nearest("LOG_LEVEL", words), "log.level");
  EXPECT_EQ(nearest("explode", words), "");
  EXPECT_EQ(nearest("status", {}), "");
}

TEST(HistogramTest, QuantilesAreWithinThreePercentOfASortedList) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> values;
  Histogram histogram;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t value = random() >> (random() % 60 + 4);
    values.push_back(value);
    histogram.add(value);
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999}) {
    const auto exact = static_cast<double>(
        values[static_cast<std::size_t>(share * static_cast<double>(values.size()))]);
    EXPECT_NEAR(static_cast<double>(histogram.quantile(share)), exact, exact * 0.032 + 1) << share;
  }
  EXPECT_EQ(histogram.max(), values.back());
  EXPECT_EQ(histogram.total(), values.size());
}

TEST(HistogramTest, HoldsTheLargestValueAndNoValue) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0U);
  histogram.add(UINT64_MAX);
  EXPECT_GE(histogram.quantile(1.0), UINT64_MAX / 32 * 31);
}

TEST(TableTest, AlignsTextLeftAndNumbersRight) {
  EXPECT_EQ(shardbusctl::table({{"NAME", "N"}, {"a", "10"}, {"größe", "7"}}),
            "NAME    N\n"
            "a      10\n"
            "größe   7\n");
}

TEST(RenderTest, ShardsAreCountedPerOwner) {
  const auto types = shardbusctl::Json::parse(
      R"([{"type":"cart","shard_count":3,"shards":[[0,"a",[1,"a",2],"owned"],[1,null,null,"free"],
          [2,"a",[1,"a",3],"owned"]]}])");
  EXPECT_EQ(shardbusctl::render_shards(types, false),
            "TYPE  OWNER     SHARDS  OF\n"
            "cart  (nobody)       1   3\n"
            "cart  a              2   3\n");
  EXPECT_THAT(shardbusctl::render_shards(types, true), HasSubstr("cart      0  a      1/a/2"));
}

TEST(RenderTest, AnswersWithFieldsThatAreMissingOrNewAreShown) {
  const auto status = shardbusctl::Json::parse(
      R"({"node":"a","invented":1,"ready":true,"counters":{"dropped":0,"forwarded":7}})");
  EXPECT_EQ(shardbusctl::render_status(status),
            "node   a\nready  yes\n\nCOUNTER    VALUE\nforwarded      7\n");
  EXPECT_THAT(shardbusctl::render_members(shardbusctl::Json::parse(R"([{"name":"a"}])")),
              HasSubstr("a     -      no"));
}

TEST(ExitCodesTest, TheOperatorsGuideListsThoseOfShardbusctl) {
  std::ifstream stream(std::string(std::getenv("SHARDBUS_SOURCE_DIR")) + "/bin/README.md");
  const std::string guide{std::istreambuf_iterator<char>(stream), {}};
  for (const shardbusctl::ExitRow& row : shardbusctl::kExitTable)
    EXPECT_THAT(guide, HasSubstr("| " + std::to_string(static_cast<int>(row.code)) + " | " +
                                 std::string(row.meaning) + " |\n"));
}

TEST(ProcessTest, ReadsLinesAndGivesTheExitCode) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  shardbus_tools::Process process({"/bin/sh", "-c", "echo one; echo two; exit 7"});
  EXPECT_EQ(process.read_line(deadline), "one");
  EXPECT_EQ(process.read_line(deadline), "two");
  EXPECT_FALSE(process.read_line(deadline));
  EXPECT_EQ(process.wait(), 7);
}

TEST(ProcessTest, ItsEndIsSeenBeforeItIsCollected) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  shardbus_tools::Process process({"/bin/sh", "-c", "echo one"});
  EXPECT_TRUE(process.wait_closed(deadline));
  EXPECT_EQ(process.read_line(deadline), "one");
  shardbus_tools::Process waits({"/bin/sleep", "1000"});
  EXPECT_FALSE(waits.wait_closed(std::chrono::steady_clock::now()));
  waits.signal(SIGKILL);
  EXPECT_TRUE(waits.wait_closed(deadline));
  EXPECT_EQ(waits.wait(), 128 + SIGKILL);
}

TEST(ProcessTest, TheChildSeesNoneOfOurVariables) {
  ::setenv("SHARDBUS_SOMETHING", "1", 1);
  shardbus_tools::Process process({"/usr/bin/env"});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (const auto line = process.read_line(deadline))
    EXPECT_FALSE(line->starts_with("SHARDBUS_")) << *line;
  EXPECT_EQ(process.wait(), 0);
}

TEST(ProcessTest, AProgramThatIsNotThereEndsAsTheShellSays) {
  shardbus_tools::Process process({"/no/such/program"});
  EXPECT_EQ(process.wait(), 127);
}

class LedgerTest : public testing::Test {
 protected:
  static shardbus_demo::steady_clock::time_point at(int ms) {
    return shardbus_demo::steady_clock::time_point(milliseconds(ms));
  }
  Death death_{at(100), at(110), "b", 1};
  Death none_;
};

TEST_F(LedgerTest, WithoutADeathEveryAcknowledgedAskAndTellCountsOnce) {
  Entity entity{.owner = "b", .acknowledged = 3, .told = 2, .told_safely = 2};
  EXPECT_EQ(what_is_wrong(entity, none_, 3 + 2 * kTellAmount), "");
  EXPECT_EQ(what_is_wrong(entity, none_, 4 + 2 * kTellAmount), "4 asks counted, expected 3");
  EXPECT_EQ(what_is_wrong(entity, none_, 3 + 1 * kTellAmount), "1 tells counted, expected 2");
}

TEST_F(LedgerTest, AnEntityThatNobodyOwnsIsNotTheDeadNodes) {
  EXPECT_NE(what_is_wrong(Entity{.owner = "", .acknowledged = 3}, none_, 0), "");
}

TEST_F(LedgerTest, ASurvivorMayHaveCountedWhatHasAnUnknownOutcome) {
  Entity entity{.owner = "a", .acknowledged = 3, .unknown = 2, .told = 5, .told_safely = 4};
  for (const std::uint64_t right : {3, 4, 5})
    EXPECT_EQ(what_is_wrong(entity, death_, right + 4 * kTellAmount), "");
  EXPECT_EQ(what_is_wrong(entity, death_, 5 + 5 * kTellAmount), "");
  EXPECT_THAT(what_is_wrong(entity, death_, 2 + 3 * kTellAmount), HasSubstr("expected 3 to 5"));
  EXPECT_THAT(what_is_wrong(entity, death_, 6 + 4 * kTellAmount), HasSubstr("6 asks"));
}

TEST_F(LedgerTest, AnEntityOfTheDeadNodeBeganAgainFromZero) {
  Entity entity{.owner = "b"};
  note_reply(entity, death_, at(50), at(60));    // the old life
  note_reply(entity, death_, at(90), at(105));   // either
  note_reply(entity, death_, at(105), at(115));  // either, as the death was not certain when sent
  note_reply(entity, death_, at(120), at(130));  // the new life
  EXPECT_EQ(what_is_wrong(entity, death_, 0), "0 asks counted, expected 1 to 3");
  for (const std::uint64_t right : {1, 2, 3}) EXPECT_EQ(what_is_wrong(entity, death_, right), "");
  EXPECT_EQ(what_is_wrong(entity, death_, 4), "4 asks counted, expected 1 to 3");
  entity.unknown = 1;
  EXPECT_EQ(what_is_wrong(entity, death_, 4), "");
}

TEST(BenchLedger, TellsLossRepeatsAndDisorderApart) {
  shardbusctl::bench::Account account;
  for (const std::uint64_t number : {0U, 1U, 4U, 2U, 4U, 6U}) account.note(number);
  shardbusctl::bench::Totals totals;
  totals.add(account, 9);  // 3, 5, 7 and 8 never came
  EXPECT_EQ(totals.handled, 5U);
  EXPECT_EQ(totals.lost, 4U);
  EXPECT_EQ(totals.out_of_order, 1U);
  EXPECT_EQ(totals.duplicates, 1U);
}

TEST(BenchLedger, CountsAPauseFromTheEndOfTheOldLife) {
  shardbusctl::bench::Ledger before;
  before.note(2, 0);
  EXPECT_EQ(before.take_pause(5, 7), -1) << "it has not moved";
  shardbusctl::bench::Ledger after;
  after.load(before.save(100), 130);
  EXPECT_EQ(after.accounts().at(2).expected, 1U);
  EXPECT_EQ(after.take_pause(110, 150), 40) << "from its sending, as it was sent in the move";
  EXPECT_EQ(after.take_pause(160, 170), -1) << "each move has one pause";
  after.load(before.save(200), 230);
  EXPECT_EQ(after.take_pause(50, 260), 60) << "it waited since before the move";
  after.load(before.save(300), 330);
  EXPECT_EQ(after.take_pause(500, 900), 30) << "nothing waited";
}

}  // namespace
