// Real ports of this machine; time is what the test says it is.
#include "transport/death_probe.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace shardbus::transport {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kPeer = 7;

class Port {
 public:
  Port() {
    descriptor_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(descriptor_, any, size), 0);
    EXPECT_EQ(::listen(descriptor_, 8), 0);
    EXPECT_EQ(::getsockname(descriptor_, any, &size), 0);
    endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Port() { close(); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  [[nodiscard]] int accept() const { return ::accept(descriptor_, nullptr, nullptr); }
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

 private:
  int descriptor_ = -1;
  std::string endpoint_;
};

class DeathProbeTest : public testing::Test {
 protected:
  // Lets time pass as the control loop does, up to the next thing that is due.
  std::vector<std::uint64_t> step() {
    std::vector<pollfd> items;
    probe_.add_waits(items);
    constexpr int kDeadline = 5000;
    const Time next = probe_.next_deadline();
    const bool connected = !items.empty() && items.front().events == POLLIN;
    const bool silent =
        items.empty() || ::poll(items.data(), items.size(), connected ? 0 : kDeadline) == 0;
    if (silent && next != kNever) now_ = std::max(now_, next);
    return probe_.collect(now_);
  }
  std::vector<std::uint64_t> run_to_the_end() {
    std::vector<std::uint64_t> all;
    while (probe_.next_deadline() != kNever) {
      for (const std::uint64_t peer : step()) all.push_back(peer);
    }
    return all;
  }

  Time now_ = Time(std::chrono::seconds(100));
  DeathProbe probe_;
};

TEST_F(DeathProbeTest, ARefusedConnectionIsProof) {
  Port port;
  port.close();
  probe_.start(kPeer, port.endpoint(), now_);
  EXPECT_THAT(run_to_the_end(), ElementsAre(kPeer));
}

TEST_F(DeathProbeTest, APortThatTakesConnectionsProvesNothing) {
  Port port;
  probe_.start(kPeer, port.endpoint(), now_);
  const Time begin = now_;
  EXPECT_THAT(run_to_the_end(), IsEmpty());
  EXPECT_EQ(now_ - begin, milliseconds(1000));
}

// A process that is killed closes its connections, whose loss starts the probe, and its ports one
// after the other.
TEST_F(DeathProbeTest, APortThatGoesAfterItTookTheConnectionIsProof) {
  Port port;
  probe_.start(kPeer, port.endpoint(), now_);
  EXPECT_THAT(probe_.collect(now_), IsEmpty());
  EXPECT_THAT(probe_.collect(now_), IsEmpty());
  std::vector<pollfd> items;
  probe_.add_waits(items);
  ASSERT_EQ(items.size(), 1U);
  ASSERT_EQ(items.front().events, POLLIN) << "connected";
  port.close();
  const Time begin = now_;
  EXPECT_THAT(run_to_the_end(), ElementsAre(kPeer));
  EXPECT_LE(now_ - begin, milliseconds(10));
}

TEST_F(DeathProbeTest, AConnectionThatEndsProvesNothingByItself) {
  Port port;
  probe_.start(kPeer, port.endpoint(), now_);
  EXPECT_THAT(probe_.collect(now_), IsEmpty());
  EXPECT_THAT(probe_.collect(now_), IsEmpty());
  ::close(port.accept());
  EXPECT_THAT(run_to_the_end(), IsEmpty());
}

TEST_F(DeathProbeTest, ANewLossOfTheLinkRenewsThePatience) {
  Port port;
  probe_.start(kPeer, port.endpoint(), now_);
  EXPECT_THAT(probe_.collect(now_), IsEmpty());
  now_ += milliseconds(900);
  probe_.start(kPeer, port.endpoint(), now_);
  EXPECT_EQ(probe_.next_deadline(), now_ + milliseconds(1000));
  port.close();
  EXPECT_THAT(run_to_the_end(), ElementsAre(kPeer));
}

TEST_F(DeathProbeTest, ANameProvesNothing) {
  probe_.start(kPeer, "tcp://no-address.invalid:7400", now_);
  EXPECT_THAT(run_to_the_end(), IsEmpty());
}

}  // namespace
}  // namespace shardbus::transport
