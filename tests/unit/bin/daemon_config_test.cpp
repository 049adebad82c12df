// The configuration of shardbusd: precedence, origins, and every kind of mistake (scenario H113).
#include "daemon/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "daemon/exit_codes.hpp"

namespace shardbusd {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class DaemonConfigTest : public testing::Test {
 protected:
  DaemonConfigTest()
      : folder_(testing::TempDir() + "daemon_config_" + std::to_string(::getpid())),
        file_(folder_ / "orders.toml") {
    std::filesystem::create_directories(folder_);
  }
  ~DaemonConfigTest() override { std::filesystem::remove_all(folder_); }
  DaemonConfigTest(const DaemonConfigTest&) = delete;
  DaemonConfigTest& operator=(const DaemonConfigTest&) = delete;

  Config from_file(const std::string& text) {
    std::ofstream(file_) << text;
    return load_config({"--config", file_.string()}, {});
  }
  // The problems, with the folder of the file cut off.
  std::vector<std::string> problems_of(const std::string& text) {
    std::vector<std::string> problems = from_file(text).problems;
    for (std::string& problem : problems) {
      if (problem.starts_with(folder_.string())) problem.erase(0, folder_.string().size() + 1);
    }
    return problems;
  }
  std::string origin_of(const Config& config, std::string_view key) {
    for (std::size_t i = 0; i < option_table().size(); ++i) {
      if (option_table()[i].key == key) return config.origins[i];
    }
    return "no such key";
  }

  std::filesystem::path folder_, file_;
};

TEST_F(DaemonConfigTest, DefaultsAreThoseOfTheLibrary) {
  const Config config = load_config({}, {});
  EXPECT_THAT(config.problems, IsEmpty());
  EXPECT_EQ(config.options.node.listen, shardbus::NodeOptions{}.listen);
  EXPECT_EQ(config.options.node.pending_asks, shardbus::NodeOptions{}.pending_asks);
  EXPECT_TRUE(config.options.builtin_types);
  EXPECT_EQ(origin_of(config, "listen"), "default");
}

TEST_F(DaemonConfigTest, EveryDefaultIsAValidValueOfItsOption) {
  DaemonOptions defaults;
  const Config again = from_file(print_config(load_config({}, {})));
  EXPECT_THAT(again.problems, IsEmpty());
  for (const Option& option : option_table())
    EXPECT_EQ(to_toml(option, again.options), to_toml(option, defaults)) << option.key;
}

TEST_F(DaemonConfigTest, FlagsWinOverFileOverEnvironmentOverDefaults) {
  std::ofstream(file_) << "workers = 2\nsessions = 20\n";
  const Config config = load_config(
      {"--workers", "3", "--config", file_.string()},
      {{"SHARDBUS_WORKERS", "1"}, {"SHARDBUS_SESSIONS", "10"}, {"SHARDBUS_CLUSTER", "orders"}});
  EXPECT_THAT(config.problems, IsEmpty());
  EXPECT_EQ(config.options.node.workers, 3U);
  EXPECT_EQ(config.options.node.sessions, 20U);
  EXPECT_EQ(config.options.node.cluster, "orders");
  EXPECT_EQ(origin_of(config, "workers"), "flag --workers");
  EXPECT_EQ(origin_of(config, "sessions"), file_.string() + ":2");
  EXPECT_EQ(origin_of(config, "cluster"), "environment SHARDBUS_CLUSTER");
}

TEST_F(DaemonConfigTest, EveryOptionCanComeFromEverySource) {
  DaemonOptions defaults;
  for (const Option& option : option_table()) {
    std::string text = to_toml(option, defaults);
    std::erase_if(text, [](char c) { return c == '"' || c == '[' || c == ']'; });
    const Config flag = load_config({flag_name(option) + "=" + text}, {});
    EXPECT_THAT(flag.problems, IsEmpty()) << option.key;
    EXPECT_EQ(origin_of(flag, option.key), "flag " + flag_name(option));
    const Config variable = load_config({}, {{environment_name(option), text}});
    EXPECT_THAT(variable.problems, IsEmpty()) << option.key;
    EXPECT_EQ(origin_of(variable, option.key), "environment " + environment_name(option));
  }
}

TEST_F(DaemonConfigTest, DowningNeedsWhatBelongsToIt) {
  const auto problems = [](std::vector<std::string> flags) {
    return load_config(flags, {}).problems;
  };
  EXPECT_THAT(problems({"--downing", "static-quorum", "--quorum-size", "3"}), IsEmpty());
  EXPECT_THAT(problems({"--downing", "keep-oldest", "--down-if-alone=false"}), IsEmpty());
  EXPECT_THAT(problems({"--down-if-alone=false"}),
              ElementsAre(HasSubstr("down_if_alone: belongs to downing = keep-oldest alone")));
  EXPECT_THAT(problems({"--seeds", "dns://shardbus:0"}),
              ElementsAre("flag --seeds: seeds: \"dns://shardbus:0\": nobody can be reached at "
                          "port 0"));
  EXPECT_THAT(problems({"--downing", "static-quorum"}),
              ElementsAre("flag --downing: downing: static-quorum needs quorum_size: how many "
                          "members must reach each other"));
  EXPECT_THAT(problems({"--quorum-size", "3"}),
              ElementsAre("flag --quorum-size: quorum_size: belongs to downing = static-quorum "
                          "alone"));
  EXPECT_THAT(problems({"--downing", "lease-majority"}),
              ElementsAre("flag --downing: downing: lease-majority needs a lease store, not "
                          "available yet"));
}

TEST_F(DaemonConfigTest, SeedsAreAddressesNamesOrFiles) {
  const std::vector<std::string> all{"tcp://a:1", "dns://shardbus.svc:7400", "file:///etc/seeds"};
  EXPECT_EQ(load_config({"--seeds", all[0] + "," + all[1] + "," + all[2]}, {}).options.node.seeds,
            all);
  for (const char* wrong : {"dns://a", "file://etc/seeds", "file:///", "a:1"}) {
    EXPECT_EQ(load_config({"--seeds", wrong}, {}).problems.size(), 1U) << wrong;
  }
}

TEST_F(DaemonConfigTest, ListsAreRepeatedFlagsOrCommasOrTomlArrays) {
  const std::vector<std::string> both = {"tcp://a:1", "tcp://b:2"};
  EXPECT_EQ(load_config({"--seeds", both[0], "--seeds", both[1]}, {}).options.node.seeds, both);
  EXPECT_EQ(load_config({"--seeds", "tcp://a:1,tcp://b:2"}, {}).options.node.seeds, both);
  EXPECT_EQ(load_config({}, {{"SHARDBUS_SEEDS", "tcp://a:1,tcp://b:2"}}).options.node.seeds, both);
  EXPECT_EQ(from_file("seeds = ['tcp://a:1',\n  'tcp://b:2']").options.node.seeds, both);
  EXPECT_THAT(load_config({"--seeds="}, {{"SHARDBUS_SEEDS", "tcp://a:1"}}).options.node.seeds,
              IsEmpty());
}

TEST_F(DaemonConfigTest, AMisspeltKeyIsRefusedWithLineAndSuggestion) {
  EXPECT_THAT(problems_of("cluster = 'orders'\nsesions = 128\n"),
              ElementsAre("orders.toml:2: unknown key 'sesions'; did you mean 'sessions'?"));
  EXPECT_THAT(problems_of("failure-timeout = '5s'"),
              ElementsAre("orders.toml:1: unknown key 'failure-timeout'; did you mean "
                          "'failure_timeout'?"));
  EXPECT_THAT(problems_of("zzzzzzzzzzzz = 1"),
              ElementsAre("orders.toml:1: unknown key 'zzzzzzzzzzzz'; see shardbusd --help"));
}

TEST_F(DaemonConfigTest, TheRightKeyInTheWrongSectionIsRefused) {
  EXPECT_THAT(problems_of("[log]\nlevel = 'info'\nworkers = 2\n"),
              ElementsAre("orders.toml:3: unknown key 'log.workers'; 'workers' belongs to the top "
                          "of the file, before any [section]"));
  EXPECT_THAT(problems_of("level = 'info'"),
              ElementsAre("orders.toml:1: unknown key 'level'; 'level' belongs into [log]"));
  EXPECT_THAT(problems_of("[node]\nlisten = 'tcp://a:1'"),
              ElementsAre("orders.toml:1: unknown section 'node'", StartsWith("orders.toml:2: ")));
}

TEST_F(DaemonConfigTest, ADuplicateKeyIsRefusedAndTheRestIsStillRead) {
  EXPECT_THAT(problems_of("workers = 1\nworkers = 2\nsesions = 3\n"),
              ElementsAre(AllOf(StartsWith("orders.toml:2: "), HasSubstr("workers")),
                          StartsWith("orders.toml:3: unknown key 'sesions'")));
}

TEST_F(DaemonConfigTest, BrokenTomlIsReportedWithItsLine) {
  EXPECT_THAT(problems_of("cluster = orders\nworkers = 1e\nsessions = 0\n"),
              ElementsAre(StartsWith("orders.toml:1: not valid TOML"),
                          StartsWith("orders.toml:2: not valid TOML"),
                          StartsWith("orders.toml:3: sessions: 0 is out of range")));
  EXPECT_THAT(problems_of("[log\n"), ElementsAre(StartsWith("orders.toml:1: not valid TOML")));
}

TEST_F(DaemonConfigTest, DurationsNeedAUnit) {
  for (const std::string wrong : {"5", "'5'", "'5 s'", "''", "'-1s'", "'1e3ms'", "'5sec'", "5.0"})
    EXPECT_THAT(problems_of("failure_timeout = " + wrong),
                ElementsAre(StartsWith("orders.toml:1: failure_timeout: ")))
        << wrong;
  EXPECT_THAT(problems_of("failure_timeout = 5"), Contains(HasSubstr("\"5s\"")));
  EXPECT_EQ(from_file("failure_timeout = '5s'").options.node.failure_timeout, milliseconds(5000));
  EXPECT_EQ(from_file("failure_timeout = '750ms'").options.node.failure_timeout, milliseconds(750));
  EXPECT_EQ(from_file("stable_after = '2m'").options.node.stable_after, milliseconds(120'000));
}

TEST_F(DaemonConfigTest, NumbersAreWholeAndInRange) {
  for (const std::string wrong : {"-1", "0", "1e3", "'5'", "true", "1_048_577", "[1]"})
    EXPECT_THAT(
        problems_of("sessions = " + wrong),
        ElementsAre(AllOf(StartsWith("orders.toml:1: sessions: "), HasSubstr("number 1..1048576"))))
        << wrong;
  for (const std::string wrong :
       {"-1", "0", "1e3", "5 s", "", " 5", "+5", "0x5", "1048577", "99999999999999999999"})
    EXPECT_THAT(load_config({"--sessions=" + wrong}, {}).problems,
                ElementsAre(AllOf(StartsWith("flag --sessions: "), HasSubstr("number 1..1048576"))))
        << wrong;
}

TEST_F(DaemonConfigTest, RangesOfDurationsAreInTheMessage) {
  EXPECT_THAT(load_config({"--gossip-interval", "19ms"}, {}).problems,
              ElementsAre("flag --gossip-interval: gossip_interval: 19ms is out of range; use "
                          "duration 20ms..300ms"));
  EXPECT_THAT(load_config({"--gossip-interval", "9999999m"}, {}).problems,
              ElementsAre(HasSubstr("out of range")));
}

TEST_F(DaemonConfigTest, AddressesAndNamesAreChecked) {
  for (const std::string wrong : {"127.0.0.1:7400", "tcp://127.0.0.1", "tcp://:7400",
                                  "tcp://a:70000", "tcp://a:-1", "tcp://a b:1", "", "tcp://a:"})
    EXPECT_THAT(load_config({"--listen", wrong}, {}).problems,
                ElementsAre(HasSubstr("use tcp://HOST:PORT")))
        << wrong;
  EXPECT_THAT(load_config({"--listen", "tcp://[::1]:0"}, {}).problems, IsEmpty());
  EXPECT_THAT(load_config({"--name", "a b"}, {}).problems, ElementsAre(HasSubstr("A-Z a-z 0-9")));
  EXPECT_THAT(load_config({"--cluster", std::string(65, 'x')}, {}).problems,
              ElementsAre(HasSubstr("text of 1..64 bytes")));
}

TEST_F(DaemonConfigTest, ChoicesNameTheNearest) {
  EXPECT_THAT(load_config({"--log-level", "inof"}, {}).problems,
              ElementsAre("flag --log-level: log.level: \"inof\" is not one of debug, info, warn, "
                          "error; did you mean \"info\"?"));
}

TEST_F(DaemonConfigTest, UnknownVariablesOfOurPrefixAreRefused) {
  EXPECT_THAT(load_config({}, {{"SHARDBUS_WORKRES", "1"}, {"HOME", "/"}}).problems,
              ElementsAre("environment SHARDBUS_WORKRES: no such option; did you mean "
                          "SHARDBUS_WORKERS?"));
}

TEST_F(DaemonConfigTest, VariablesThatOthersSetAreLeftAlone) {
  EXPECT_THAT(load_config({}, {{"SHARDBUS_NODE", "tcp://a:1"},
                               {"SHARDBUS_SERVICE_HOST", "10.0.0.1"},
                               {"SHARDBUS_PORT", "tcp://10.0.0.1:7400"},
                               {"SHARDBUS_PORT_7400_TCP", "tcp://10.0.0.1:7400"}})
                  .problems,
              IsEmpty());
}

TEST_F(DaemonConfigTest, UnknownFlagsAreRefused) {
  EXPECT_THAT(load_config({"--workres", "3", "stray", "--bogus=1"}, {}).problems,
              ElementsAre("flag --workres: no such flag; did you mean --workers?",
                          "argument \"stray\": shardbusd takes flags only",
                          "flag --bogus: no such flag; see shardbusd --help"));
}

TEST_F(DaemonConfigTest, FlagsWithoutValueOrGivenTwiceAreRefused) {
  EXPECT_THAT(load_config({"--workers", "--sessions", "5"}, {}).problems,
              ElementsAre("flag --workers: needs a value"));
  for (const std::string text : {"--zone", "--seeds", "--name", "--peer-listen"})
    EXPECT_THAT(load_config({text}, {}).problems,
                ElementsAre("flag " + text + ": needs a value; " + text + "= for the empty one"));
  for (const std::string text : {"--zone=", "--name="})
    EXPECT_THAT(load_config({text}, {}).problems, IsEmpty()) << text;
  EXPECT_THAT(load_config({"--zone", ""}, {}).problems, IsEmpty());
  EXPECT_THAT(load_config({"--workers", "1", "--workers", "2"}, {}).problems,
              ElementsAre("flag --workers: workers: is given 2 times"));
  EXPECT_THAT(load_config({"--config"}, {}).problems, ElementsAre(HasSubstr("takes one file")));
  EXPECT_THAT(load_config({"--ready-fd", "x"}, {}).problems, ElementsAre(HasSubstr("descriptor")));
}

TEST_F(DaemonConfigTest, AllMistakesOfAllSourcesComeInOnePass) {
  std::ofstream(file_) << "sesions = 1\nworkers = 'two'\n";
  const Config config =
      load_config({"--config", file_.string(), "--ping-interval", "2", "--listne=x"},
                  {{"SHARDBUS_LOG_LEVEL", "loud"}, {"SHARDBUS_X", ""}});
  EXPECT_EQ(config.problems.size(), 6U) << testing::PrintToString(config.problems);
}

TEST_F(DaemonConfigTest, AValueIsCheckedEvenIfAnotherSourceWins) {
  EXPECT_THAT(load_config({"--workers", "1"}, {{"SHARDBUS_WORKERS", "many"}}).problems,
              ElementsAre(StartsWith("environment SHARDBUS_WORKERS: ")));
}

TEST_F(DaemonConfigTest, AFileThatCannotBeReadIsRefused) {
  EXPECT_THAT(load_config({"--config", (folder_ / "none.toml").string()}, {}).problems,
              ElementsAre(HasSubstr("none.toml: cannot be read: No such file")));
  EXPECT_THAT(load_config({"--config", folder_.string()}, {}).problems,
              ElementsAre(HasSubstr("cannot be read: it is a folder")));
}

TEST_F(DaemonConfigTest, PrintedJsonHasValueAndOrigin) {
  const std::string text = print_config_json(load_config({"--workers", "3"}, {}));
  EXPECT_THAT(text, HasSubstr("\"workers\": {\n    \"value\": 3,\n    \"origin\": "
                              "\"flag --workers\""));
}

TEST_F(DaemonConfigTest, ActionsAreRead) {
  EXPECT_EQ(load_config({"--print-config", "--json"}, {}).request.action, Action::print_config);
  EXPECT_EQ(load_config({"--check-config"}, {}).request.action, Action::check_config);
  EXPECT_EQ(load_config({"--ready-fd", "7"}, {}).request.ready_fd, 7);
  const Config help = load_config({"--help"}, {});
  for (const Option& option : option_table())
    EXPECT_THAT(help.request.help, HasSubstr(flag_name(option)));
  EXPECT_THAT(help.request.help, HasSubstr("Exit codes:"));
}

TEST_F(DaemonConfigTest, WhatTwoOptionsMakeWrongTogetherIsFoundWithoutAStart) {
  const Config wildcard = load_config({}, {{"SHARDBUS_LISTEN", "tcp://[::]:7400"}});
  EXPECT_THAT(wildcard.problems,
              ElementsAre(AllOf(StartsWith("environment SHARDBUS_LISTEN: listen: "),
                                HasSubstr("needs advertise"))));
  EXPECT_THAT(load_config({"--listen", "tcp://*:7400", "--advertise", "node1"}, {}).problems,
              IsEmpty());
  EXPECT_THAT(load_config({"--listen", "tcp://127.0.0.1:65534"}, {}).problems,
              ElementsAre(HasSubstr("below 65534")));
  EXPECT_THAT(load_config({"--listen", "tcp://127.0.0.1:65534", "--peer-listen",
                           "tcp://127.0.0.1:1", "--gossip-listen", "tcp://127.0.0.1:2"},
                          {})
                  .problems,
              IsEmpty());
}

std::string operators_guide() {
  std::ifstream stream(std::string(std::getenv("SHARDBUS_SOURCE_DIR")) + "/bin/README.md");
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_F(DaemonConfigTest, TheOperatorsGuideListsEveryExitCode) {
  for (const ExitRow& row : kExitTable)
    EXPECT_THAT(operators_guide(), HasSubstr("| " + std::to_string(static_cast<int>(row.code)) +
                                             " | " + std::string(row.meaning) + " |\n"));
}

// bin/README.md has one row per option, with its values, its default and its meaning.
TEST_F(DaemonConfigTest, TheOperatorsGuideListsEveryOption) {
  DaemonOptions defaults;
  for (const Option& option : option_table())
    EXPECT_THAT(
        operators_guide(),
        HasSubstr("| `" + std::string(option.key) + "` | " + describe_values(option) + " | `" +
                  to_toml(option, defaults) + "` | " + std::string(option.help) + " |\n"))
        << option.key;
}

}  // namespace
}  // namespace shardbusd
