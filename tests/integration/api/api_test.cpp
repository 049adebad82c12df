// The public API over real sockets: one node, several nodes in one process, clients.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <shardbus/shardbus.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using shardbus::Client;
using shardbus::Errc;
using shardbus::Node;
using shardbus::NodeOptions;
using shardbus::on;
using shardbus::Result;

struct Add {
  std::uint64_t amount = 0;
  MSGPACK_DEFINE_MAP(amount)
};
struct Get {};
struct Fail {};
struct Forward {
  std::string to;
  MSGPACK_DEFINE_MAP(to)
};
struct Deliver {
  shardbus::ReplyPort<std::string> port;
  MSGPACK_DEFINE_MAP(port)
};

struct Counter {
  std::uint64_t total = 0;
  void handle(const Add& message) { total += message.amount; }
  std::uint64_t handle(const Get& /*message*/) const { return total; }
  std::uint64_t handle(const Fail& /*message*/) { throw std::runtime_error("as asked"); }
  std::uint64_t save() const { return total; }
  void load(std::uint64_t value) { total = value; }
};

// Hands its asker on to another entity, which answers it.
struct Desk {
  void handle(const Forward& message, shardbus::Context& context,
              shardbus::ReplyPort<std::string> port) {
    (void)context.entity("clerk", message.to).tell("deliver", Deliver{std::move(port)});
  }
  void handle(const Get& /*message*/, shardbus::ReplyPort<std::uint64_t> port) { kept = port; }
  void handle(const Add& message) { (void)kept.answer(message.amount); }
  void handle(const Fail& /*message*/, shardbus::ReplyPort<std::uint64_t> /*dropped*/) {}
  shardbus::ReplyPort<std::uint64_t> kept;
};
struct Clerk {
  void handle(const Deliver& message, shardbus::Context& context) {
    (void)message.port.answer("from " + std::string(context.id()));
  }
};

// Tells when it is gone.
struct Mortal {
  static inline std::atomic<int> alive{0};
  Mortal() { ++alive; }
  Mortal(const Mortal&) = delete;
  Mortal& operator=(const Mortal&) = delete;
  ~Mortal() { --alive; }
  void handle(const Get& /*message*/) {}
};

// Asks from within a handler.
struct Curious {
  std::string handle(const Get& /*message*/, shardbus::Context& context) {
    const auto answer = context.entity("counter", "x").ask<std::uint64_t>("get", Get{}, 1s);
    return answer ? "answered" : std::string(answer.error().name());
  }
};

NodeOptions options(const std::string& name, const std::vector<std::string>& seeds = {}) {
  NodeOptions made;
  made.cluster = "test";
  made.name = name;
  made.listen = "tcp://127.0.0.1:0";
  made.seeds = seeds;
  made.log = [](shardbus::LogLevel, std::string_view, std::string_view) {};
  return made;
}

void host_all(Node& node) {
  ASSERT_TRUE(node.host<Counter>("counter", on<Add>("add"), on<Get>("get"), on<Fail>("fail")).ok());
  ASSERT_TRUE(node.host<Desk>("desk", on<Forward>("forward"), on<Get>("get"), on<Add>("add"),
                              on<Fail>("fail"))
                  .ok());
  ASSERT_TRUE(node.host<Clerk>("clerk", on<Deliver>("deliver")).ok());
  ASSERT_TRUE(node.host<Curious>("curious", on<Get>("get")).ok());
}

std::vector<Node> cluster(std::size_t size, std::uint32_t workers = 0) {
  std::vector<Node> nodes;
  std::vector<std::string> seeds;
  for (std::size_t i = 0; i < size; ++i) {
    NodeOptions made = options("n" + std::to_string(i + 1), seeds);
    made.workers = workers;
    nodes.push_back(Node::start(made).value());
    host_all(nodes.back());
    seeds = {nodes.front().listen_address()};
  }
  for (Node& node : nodes) {
    const auto ready = node.wait_ready(20s, static_cast<std::uint32_t>(size));
    EXPECT_TRUE(ready.ok()) << ready.message();
  }
  return nodes;
}

TEST(OneNode, TellsAndAsks) {
  auto nodes = cluster(1);
  auto cart = nodes[0].entity("counter", "cart-42");
  ASSERT_TRUE(cart.tell("add", Add{3}).ok());
  EXPECT_EQ(cart.ask<std::uint64_t>("get", Get{}, 5s).value(), 3U);
  EXPECT_TRUE(cart.ask<void>("add", Add{4}, 5s).has_value());
  EXPECT_EQ(cart.ask<std::uint64_t>("get", Get{}, 5s).value(), 7U);
}

TEST(OneNode, TypedErrors) {
  auto nodes = cluster(1);
  auto cart = nodes[0].entity("counter", "a");
  EXPECT_EQ(cart.ask<void>("nothing", Get{}, 5s).error().code(), Errc::no_such_method);
  EXPECT_TRUE(cart.ask<void>("add", Add{3}, 5s).has_value());
  EXPECT_EQ(cart.ask<void>("fail", Fail{}, 5s).error().code(), Errc::handler_failed);
  EXPECT_EQ(cart.ask<std::uint64_t>("get", Get{}, 5s).value(), 3U) << "it keeps what it had";
  EXPECT_EQ(cart.ask<std::string>("get", Get{}, 5s).error().code(), Errc::decode_failed);
  EXPECT_EQ(nodes[0].entity("nobody", "a").ask<void>("get", Get{}, 10s).error().code(),
            Errc::no_such_type);
  EXPECT_EQ(nodes[0].entity("desk", "a").ask<std::uint64_t>("fail", Fail{}, 5s).error().code(),
            Errc::no_reply);
  EXPECT_EQ(nodes[0].entity("desk", "b").ask<std::uint64_t>("get", Get{}, 1s).error().code(),
            Errc::timeout);
  EXPECT_EQ(nodes[0].entity("counter", "").ask<void>("get", Get{}, 1s).error().code(),
            Errc::invalid_argument);
  EXPECT_EQ(cart.tell("add", std::string(2U << 20, 'x')).code(), Errc::too_large);
  EXPECT_EQ(nodes[0].entity("curious", "a").ask<std::string>("get", Get{}, 5s).value(),
            "would_deadlock");
}

TEST(OneNode, PortsAnswerLaterAndElsewhere) {
  auto nodes = cluster(1);
  auto desk = nodes[0].entity("desk", "d");
  std::promise<std::uint64_t> later;
  desk.ask<std::uint64_t>("get", Get{}, 5s,
                          [&](const Result<std::uint64_t>& r) { later.set_value(r.value()); });
  ASSERT_TRUE(desk.tell("add", Add{9}).ok());
  EXPECT_EQ(later.get_future().get(), 9U);
  EXPECT_EQ(desk.ask<std::string>("forward", Forward{"bea"}, 5s).value(), "from bea");
}

struct Task {
  // NOLINTNEXTLINE(readability-identifier-naming): the language looks for this name
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

Task add_twice(shardbus::EntityRef cart, std::promise<std::uint64_t>& sum) {
  (void)co_await cart.ask_async<void>("add", Add{1});
  (void)co_await cart.ask_async<void>("add", Add{2});
  sum.set_value((co_await cart.ask_async<std::uint64_t>("get", Get{})).value());
}

TEST(OneNode, Coroutines) {
  auto nodes = cluster(1);
  std::promise<std::uint64_t> sum;
  add_twice(nodes[0].entity("counter", "co"), sum);
  EXPECT_EQ(sum.get_future().get(), 3U);
}

TEST(OneNode, CallbacksMayAskAgainWithoutEnd) {
  auto nodes = cluster(1);
  std::promise<void> done;
  auto cart = nodes[0].entity("counter", "loop");
  std::function<void(int)> next = [&](int left) {
    if (left == 0) return done.set_value();
    cart.ask<void>("add", Add{1}, 5s, [&, left](const Result<void>&) { next(left - 1); });
  };
  next(100'000);
  ASSERT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_EQ(cart.ask<std::uint64_t>("get", Get{}, 5s).value(), 100'000U);
}

TEST(OneNode, StopEndsAsksAndLaterCalls) {
  auto nodes = cluster(1);
  auto desk = nodes[0].entity("desk", "open");
  std::promise<Errc> ended;
  desk.ask<std::uint64_t>("get", Get{}, 60s, [&](const Result<std::uint64_t>& r) {
    ended.set_value(r.error().code());
  });
  nodes[0].stop();
  EXPECT_EQ(ended.get_future().get(), Errc::unknown_outcome);  // the desk has it
  EXPECT_EQ(desk.tell("add", Add{1}).code(), Errc::stopped);
  EXPECT_EQ(desk.ask<void>("add", Add{1}, 1s).error().code(), Errc::stopped);
}

// The control thread stands still here; asks of operators pile up before it.
TEST(OneNode, AdministrativeAsksAreBoundedAndNoneIsLost) {
  constexpr int kAsks = 1100;
  std::promise<void> stands;
  std::promise<void> go_on;
  const std::shared_future<void> gate = go_on.get_future().share();
  std::atomic<bool> first{true};
  NodeOptions made = options("a");
  made.log = [&](shardbus::LogLevel, std::string_view event, std::string_view) {
    if (event != "election.change" || !first.exchange(false)) return;
    stands.set_value();
    gate.wait();
  };
  std::atomic<int> overloaded{0};
  std::atomic<int> ended{0};
  std::promise<void> refused;
  std::promise<void> all;
  auto node = Node::start(made).value();
  stands.get_future().wait();
  for (int i = 0; i < kAsks; ++i) {
    node.messenger()->ask({"$node", "", "status", {}}, 60s, [&](const shardbus::ReplyView& reply) {
      if (reply.error == Errc::overloaded && ++overloaded == kAsks - 1024) refused.set_value();
      if (++ended == kAsks) all.set_value();
    });
  }
  // An ask may wait for a pass of another thread, so the refusals come in their own time.
  EXPECT_EQ(refused.get_future().wait_for(30s), std::future_status::ready);
  go_on.set_value();
  all.get_future().wait();
  EXPECT_EQ(overloaded, kAsks - 1024);
}

// A call that waits for the callback it is made in says so instead of waiting for ever.
TEST(OneNode, WaitingCallsInsideACallbackAreRefused) {
  auto nodes = cluster(1);
  Node& node = nodes[0];
  std::promise<std::vector<std::string>> said;
  node.entity("counter", "x").ask<std::uint64_t>("get", Get{}, 10s, [&](const auto& /*result*/) {
    std::vector<std::string> words;
    words.emplace_back(node.leave(1s).name());
    words.emplace_back(node.wait_ready(1s).name());
    try {
      node.stop();
      words.emplace_back("stopped");
    } catch (const std::logic_error& error) {
      words.emplace_back(error.what());
    }
    said.set_value(words);
  });
  const std::vector<std::string> words = said.get_future().get();
  ASSERT_EQ(words.size(), 3U);
  EXPECT_EQ(words[0], "would_deadlock");
  EXPECT_EQ(words[1], "would_deadlock");
  EXPECT_NE(words[2].find("Node::stop() would wait"), std::string::npos) << words[2];
  EXPECT_TRUE(node.entity("counter", "x").ask<std::uint64_t>("get", Get{}).has_value());

  shardbus::ClientOptions settings;
  settings.nodes = {node.listen_address()};
  auto client = Client::connect(settings).value();
  std::promise<std::string> client_said;
  client.entity("counter", "x").ask<std::uint64_t>("get", Get{}, 10s, [&](const auto& /*result*/) {
    try {
      client.stop();
    } catch (const std::logic_error& error) {
      client_said.set_value(error.what());
    }
  });
  EXPECT_NE(client_said.get_future().get().find("Client::stop() would wait"), std::string::npos);
}

TEST(OneNodeDeathTest, DestructionInsideACallbackIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto nodes = cluster(1);
        std::promise<void> never;
        nodes[0]
            .entity("counter", "x")
            .ask<std::uint64_t>("get", Get{}, 10s, [&](const auto& /*result*/) { nodes.clear(); });
        never.get_future().wait();
      },
      "a Node is destroyed inside one of the library's callbacks");
}

TEST(OneNode, StopDestroysItsEntities) {
  auto node = Node::start(options("a")).value();
  ASSERT_TRUE(node.host<Mortal>("mortal", on<Get>("get")).ok());
  const auto entity = node.entity("mortal", "x");
  ASSERT_TRUE(entity.ask<void>("get", Get{}).has_value());
  EXPECT_EQ(Mortal::alive, 1);
  node.stop();
  EXPECT_EQ(Mortal::alive, 0);
  EXPECT_EQ(entity.ask<void>("get", Get{}).error().code(), Errc::stopped);
}

class Pools : public testing::TestWithParam<std::uint32_t> {};

// Many threads, many entities, through all nodes: nothing is lost or counted twice.
TEST_P(Pools, ThreeNodesCountRight) {
  auto nodes = cluster(3, GetParam());
  constexpr int kThreads = 6;
  constexpr int kRounds = 300;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        auto ref = nodes[static_cast<std::size_t>(i) % 3].entity("counter", std::to_string(i % 50));
        if (t % 2 == 0) {
          failures += ref.ask<void>("add", Add{1}, 10s) ? 0 : 1;
        } else {
          failures += ref.tell("add", Add{1}).ok() ? 0 : 1;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  // A tell is behind no ask of another thread: ask through the same node, in its order.
  std::uint64_t total = 0;
  for (int pass = 0; pass < 2; ++pass) {
    total = 0;
    for (int e = 0; e < 50; ++e) {
      for (Node& node : nodes) {
        const auto value =
            node.entity("counter", std::to_string(e)).ask<std::uint64_t>("get", Get{}, 10s);
        ASSERT_TRUE(value.has_value()) << value.error().message();
        if (&node == &nodes.back()) total += *value;
      }
    }
  }
  EXPECT_EQ(total, static_cast<std::uint64_t>(kThreads) * kRounds);
}

INSTANTIATE_TEST_SUITE_P(Workers, Pools, testing::Values(0U, 2U));

TEST(Cluster, JoinAndLeaveUnderLoadLoseAndReorderNothing) {
  auto nodes = cluster(2);
  std::atomic<bool> stop{false};
  std::array<std::uint64_t, 40> sent{};
  std::string fault;
  std::thread load([&] {
    std::size_t i = 0;
    while (!stop) {
      const std::size_t e = i++ % sent.size();
      const auto ref = nodes[0].entity("counter", "e" + std::to_string(e));
      const auto outcome = ref.ask<void>("add", Add{1}, 10s);
      if (!outcome && fault.empty()) fault = outcome.error().message();
      ++sent[e];
    }
  });
  for (int round = 0; round < 3; ++round) {
    Node third =
        Node::start(options("x" + std::to_string(round), {nodes[0].listen_address()})).value();
    host_all(third);
    const auto ready = third.wait_ready(20s, 3);
    EXPECT_TRUE(ready.ok()) << ready.message();
    const auto left = third.leave(20s);
    EXPECT_TRUE(left.ok()) << left.message();
  }
  stop = true;
  load.join();
  EXPECT_EQ(fault, "");
  for (std::size_t e = 0; e < sent.size(); ++e) {
    const auto ref = nodes[1].entity("counter", "e" + std::to_string(e));
    EXPECT_EQ(ref.ask<std::uint64_t>("get", Get{}, 10s).value(), sent[e]) << "entity " << e;
  }
}

TEST(Cluster, NodesThatLeaveAtOncePartInOrder) {
  std::mutex mutex;
  std::vector<std::string> warnings;
  for (int round = 0; round < 3; ++round) {
    auto nodes = cluster(2);
    std::vector<Node> leavers;
    for (int i = 0; i < 2; ++i) {
      NodeOptions made = options("l" + std::to_string(i), {nodes[0].listen_address()});
      made.log = [&](shardbus::LogLevel level, std::string_view event, std::string_view text) {
        const std::lock_guard lock(mutex);
        if (level >= shardbus::LogLevel::warn)
          warnings.push_back(std::string(event) + " " + std::string(text));
      };
      leavers.push_back(Node::start(made).value());
      host_all(leavers.back());
    }
    for (Node& node : leavers) ASSERT_TRUE(node.wait_ready(20s, 4).ok());
    std::vector<std::thread> threads;
    threads.reserve(leavers.size());
    for (Node& node : leavers) {
      threads.emplace_back([&node] { EXPECT_TRUE(node.leave(20s).ok()); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(warnings, std::vector<std::string>{});
}

// Outcomes of asks that are answered by nobody, as they come in.
class Outcomes {
 public:
  void note(Errc code) {
    const std::lock_guard lock(mutex_);
    codes_.push_back(code);
    changed_.notify_all();
  }
  std::vector<Errc> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10s, [&] { return codes_.size() >= count; });
    return codes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Errc> codes_;
};

TEST(Cluster, LossOfANodeEndsAsksAtOnceAndEverythingAnswersAgain) {
  auto outcomes = std::make_shared<Outcomes>();
  auto nodes = cluster(3);
  for (int i = 0; i < 60; ++i) {  // never answered: the desk keeps the port
    nodes[0]
        .entity("desk", std::to_string(i))
        .ask<std::uint64_t>("get", Get{}, 60s, [outcomes](const Result<std::uint64_t>& r) {
          outcomes->note(r ? Errc::ok : r.error().code());
        });
  }
  // Behind all of them, so that they have arrived.
  for (int i = 0; i < 60; ++i) {
    const auto reply = nodes[0].entity("counter", std::to_string(i)).ask<void>("get", Get{}, 10s);
    ASSERT_TRUE(reply.has_value()) << i << " " << reply.error().message();
  }
  nodes[2].stop();
  // About a third of the desks were there.
  const std::vector<Errc> ended = outcomes->wait_for(5);
  EXPECT_GE(ended.size(), 5U);
  for (const Errc code : ended) EXPECT_EQ(code, Errc::unknown_outcome);
  // The other node may yet have to see it: until then what it sends there meets the same end, and
  // at once each time.
  for (int i = 0; i < 100; ++i) {
    const auto counter = nodes[1].entity("counter", std::to_string(i));
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    auto value = counter.ask<void>("get", Get{}, 10s);
    while (!value && value.error().code() == Errc::unknown_outcome &&
           std::chrono::steady_clock::now() < deadline) {
      value = counter.ask<void>("get", Get{}, 10s);
    }
    EXPECT_TRUE(value.has_value()) << value.error().message();
  }
}

class Clients : public testing::TestWithParam<bool> {};

TEST_P(Clients, CallThroughAnyAndThroughOwners) {
  auto nodes = cluster(3);
  shardbus::ClientOptions settings;
  settings.smart = GetParam();
  settings.nodes = {nodes[1].listen_address()};
  auto client = Client::connect(settings).value();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(client.entity("counter", std::to_string(i % 40)).tell("add", Add{1}).ok());
  }
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(
        client.entity("counter", std::to_string(i)).ask<std::uint64_t>("get", Get{}, 5s).value(),
        5U);
  }
  EXPECT_EQ(client.entity("desk", "d").ask<std::string>("forward", Forward{"cy"}, 5s).value(),
            "from cy");
  // Nodes come and go under the client; its messages stay in order and none is lost.
  Node fourth = Node::start(options("n4", {nodes[0].listen_address()})).value();
  host_all(fourth);
  std::uint64_t adds = 5;
  bool left = false;
  for (int round = 0; round < 400; ++round) {
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(client.entity("counter", std::to_string(i)).tell("add", Add{1}).ok());
    }
    ++adds;
    if (round == 200) {
      EXPECT_TRUE(fourth.wait_ready(20s, 4).ok());
    }
    if (round == 300 && !left) {
      left = true;
      EXPECT_TRUE(fourth.leave(20s).ok());
    }
    const auto value =
        client.entity("counter", std::to_string(round % 40)).ask<std::uint64_t>("get", Get{}, 10s);
    ASSERT_TRUE(value.has_value()) << value.error().message();
    EXPECT_EQ(*value, adds);
  }
}

INSTANTIATE_TEST_SUITE_P(SmartAndSimple, Clients, testing::Bool());

TEST(Client, SaysWhyItCannotConnect) {
  shardbus::ClientOptions settings;
  settings.nodes = {"tcp://127.0.0.1:1"};
  settings.connect_timeout = 300ms;
  const auto client = Client::connect(settings);
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().code(), Errc::unreachable);
  EXPECT_NE(client.error().text().find("tcp://127.0.0.1:1"), std::string::npos);

  auto nodes = cluster(1);
  settings.nodes = {nodes[0].listen_address()};
  settings.cluster = "another";
  settings.connect_timeout = 10min;  // it does not wait for that: the only node has refused it
  const auto refused = Client::connect(settings);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Errc::cluster_mismatch);
}

TEST(Start, NamesWhatIsWrong) {
  auto first = Node::start(options("a")).value();
  NodeOptions taken = options("b");
  taken.listen = first.listen_address();
  EXPECT_EQ(Node::start(taken).error().code(), Errc::address_in_use);
  NodeOptions bad = options("c");
  bad.listen = "127.0.0.1:7400";
  EXPECT_EQ(Node::start(bad).error().code(), Errc::bad_address);
  NodeOptions range = options("d");
  range.workers = 1000;
  EXPECT_EQ(Node::start(range).error().code(), Errc::invalid_argument);
  EXPECT_NE(Node::start(range).error().text().find("1000"), std::string::npos);
}

}  // namespace
