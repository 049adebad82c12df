// DEALERs that lose their connection in ways after which libzmq does not connect again.
#include "transport/dealers.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <zmq.h>

#include <functional>
#include <set>

namespace shardbus::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFrameLimit = 1000;

class Watched final : public DescriptorSet {
 public:
  void watch(int descriptor) override { all.insert(descriptor); }
  void unwatch(int descriptor) override { all.erase(descriptor); }
  std::set<int> all;
};

class Seen final : public DealerHandler {
 public:
  void on_dealer_frame(std::uint64_t, std::string_view) override {}
  void on_dealer_connected(std::uint64_t) override { ++connected; }
  void on_dealer_disconnected(std::uint64_t) override { ++disconnected; }
  int connected = 0;
  int disconnected = 0;
};

class DealersTest : public testing::Test {
 protected:
  // Real sockets, but the time that the dealers see is the test's: it stands still until told.
  bool until(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::vector<pollfd> items;
      std::vector<int> ready;
      for (const int descriptor : watched_.all) items.push_back({descriptor, POLLIN, 0});
      poll(items.data(), items.size(), 20);
      for (const pollfd& item : items) ready.push_back(item.fd);
      dealers_.tick(now_);
      (void)dealers_.drain(seen_, ready, 10);
    }
    return true;
  }

  ZmqContext context_;
  Watched watched_;
  Seen seen_;
  Dealers dealers_{context_, watched_, kFrameLimit};
  Time now_ = Time{} + 1h;
};

TEST_F(DealersTest, AFrameOverTheLimitCostsTheConnectionButNotTheNode) {
  void* router = zmq_socket(context_.get(), ZMQ_ROUTER);
  const int linger = 0;
  zmq_setsockopt(router, ZMQ_LINGER, &linger, sizeof linger);
  ASSERT_EQ(zmq_bind(router, "tcp://127.0.0.1:*"), 0);
  char endpoint[128];
  std::size_t size = sizeof endpoint;
  ASSERT_EQ(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
  ASSERT_TRUE(dealers_.open(1, endpoint).ok());
  ASSERT_TRUE(until([&] { return seen_.connected == 1; }));
  ASSERT_TRUE(dealers_.send(1, "here I am"));

  zmq_msg_t id;
  zmq_msg_init(&id);
  ASSERT_GT(zmq_msg_recv(&id, router, 0), 0);
  const std::string frame(2 * kFrameLimit, 'x');
  ASSERT_GT(zmq_msg_send(&id, router, ZMQ_SNDMORE), 0);
  ASSERT_GT(zmq_send(router, frame.data(), frame.size(), 0), 0);
  ASSERT_TRUE(until([&] { return seen_.disconnected == 1; }));

  EXPECT_EQ(dealers_.next_deadline(), now_ + 3s);
  now_ += 3s;
  EXPECT_TRUE(until([&] { return seen_.connected == 2; }));
  EXPECT_EQ(dealers_.next_deadline(), kNever);
  zmq_close(router);
}

}  // namespace
}  // namespace shardbus::transport
