// Seeds as addresses, names and files. Names: only those of this machine, no name server is asked.
#include "transport/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "transport/validate.hpp"

namespace shardbus::transport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Seeds, AreToldApart) {
  EXPECT_EQ(parse_seed("tcp://10.0.0.1:7400")->kind, SeedKind::address);
  EXPECT_EQ(parse_seed("tcp://[::1]:7400")->kind, SeedKind::address);
  EXPECT_EQ(parse_seed("tcp://localhost:7400")->kind, SeedKind::host);
  EXPECT_EQ(parse_seed("dns://localhost:7400")->kind, SeedKind::name);
  EXPECT_EQ(parse_seed("file:///etc/seeds")->path, "/etc/seeds");
  for (const char* wrong : {"", "seed", "tcp://a", "dns://a", "dns://:1", "file://", "file://a/b",
                            "file:///", "http://a:1"}) {
    EXPECT_EQ(parse_seed(wrong).error().code(), Errc::bad_address) << wrong;
  }
}

TEST(Seeds, ANameStandsForAllItsAddresses) {
  const LookedUp found = look_up(*parse_seed("dns://localhost:7400"));
  ASSERT_TRUE(found.known) << found.trouble;
  EXPECT_THAT(found.addresses, testing::Contains("tcp://127.0.0.1:7400"));
  EXPECT_TRUE(names_one_node(found.addresses));
  EXPECT_THAT(look_up(*parse_seed("tcp://127.0.0.1:7400")).addresses,
              ElementsAre("tcp://127.0.0.1:7400"));
}

TEST(Seeds, SeveralAddressesOfANetworkAreNotOneNode) {
  EXPECT_TRUE(names_one_node({"tcp://10.0.0.1:1"}));
  EXPECT_TRUE(names_one_node({"tcp://127.0.0.1:1", "tcp://127.0.1.1:1"}));
  EXPECT_FALSE(names_one_node({"tcp://10.0.0.1:1", "tcp://10.0.0.2:1"}));
  EXPECT_FALSE(names_one_node({}));
}

class SeedFile : public testing::Test {
 protected:
  SeedFile() : path_(testing::TempDir() + "seeds_" + std::to_string(getpid())) {}
  ~SeedFile() override { std::remove(path_.c_str()); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  [[nodiscard]] LookedUp read() const { return look_up(*parse_seed("file://" + path_)); }
  std::string path_;
};

TEST_F(SeedFile, IsReadAnewEachTime) {
  write("# the first two\n\n tcp://10.0.0.2:7400 \r\ntcp://10.0.0.1:7400\n");
  EXPECT_THAT(read().addresses, ElementsAre("tcp://10.0.0.1:7400", "tcp://10.0.0.2:7400"));
  write("tcp://10.0.0.3:7400\ntcp://10.0.0.3:7400");
  EXPECT_THAT(read().addresses, ElementsAre("tcp://10.0.0.3:7400"));
  write("tcp://10.0.0.3:7400 # the third\n \t# none\ntcp://10.0.0.4:7400\t#the fourth\n");
  EXPECT_THAT(read().addresses, ElementsAre("tcp://10.0.0.3:7400", "tcp://10.0.0.4:7400"));
  write("");
  EXPECT_THAT(read().addresses, IsEmpty());
  EXPECT_TRUE(read().known);
}

TEST_F(SeedFile, MistakesNameFileAndLine) {
  EXPECT_THAT(read().trouble, HasSubstr(path_ + ": No such file"));
  EXPECT_FALSE(read().known);
  write("file:///etc/seeds\n");
  EXPECT_THAT(read().trouble, HasSubstr(":1: a file of seeds names no other file"));
}

TEST_F(SeedFile, AMistakeCostsItsLineAlone) {
  write("tcp://10.0.0.1:7400\n10.0.0.2\ntcp://10.0.0.3:7400\ntcp://10.0.0.4:0\n");
  const LookedUp found = read();
  EXPECT_THAT(found.addresses, ElementsAre("tcp://10.0.0.1:7400", "tcp://10.0.0.3:7400"));
  EXPECT_THAT(found.trouble, HasSubstr(path_ + ":2: \"10.0.0.2\""));
  EXPECT_THAT(found.trouble, HasSubstr(path_ + ":4: "));
  EXPECT_FALSE(found.known) << "whoever was meant may be in a cluster";
}

TEST(Validate, DowningNeedsWhatBelongsToIt) {
  NodeOptions options;
  EXPECT_TRUE(validate(options).ok());
  options.downing = DowningPolicy::static_quorum;
  EXPECT_THAT(validate(options).text(), HasSubstr("needs quorum_size"));
  options.quorum_size = 2;
  EXPECT_TRUE(validate(options).ok());
  options.downing = DowningPolicy::keep_oldest;
  EXPECT_THAT(validate(options).text(), HasSubstr("belongs to downing = static-quorum"));
  options.quorum_size = 0;
  options.downing = DowningPolicy::lease_majority;
  EXPECT_THAT(validate(options).text(), HasSubstr("needs a lease store, not available yet"));
  options.downing = DowningPolicy::down_all;
  options.min_members = 0;
  EXPECT_THAT(validate(options).text(), HasSubstr("min_members"));
  options.min_members = 3;
  options.seeds = {"tcp://10.0.0.1:7400", "dns://shardbus:7400", "file:///etc/seeds"};
  EXPECT_TRUE(validate(options).ok());
  options.seeds = {"dns://shardbus:0"};
  EXPECT_THAT(validate(options).text(), HasSubstr("nobody can be reached at port 0"));
  options.seeds = {"file://seeds"};
  EXPECT_EQ(validate(options).code(), Errc::bad_address);
}

}  // namespace
}  // namespace shardbus::transport
