#include <shardbus/shardbus.hpp>

struct Add {
  std::uint64_t amount;
  MSGPACK_DEFINE_MAP(amount);
};
struct Get {
  MSGPACK_DEFINE_MAP();
};

struct Counter {
  std::uint64_t total = 0;
  void handle(const Add& m) { total += m.amount; }
  std::uint64_t handle(const Get&) { return total; }  // the return value answers the ask
};

int main() {
  auto node =
      shardbus::Node::start({.cluster = "orders", .listen = "tcp://127.0.0.1:7400"}).value();
  node.host<Counter>("counter", shardbus::on<Add>("add"), shardbus::on<Get>("get"));
  auto cart = node.entity("counter", "cart-42");
  cart.tell("add", Add{3});
  auto total = cart.ask<std::uint64_t>("get", Get{}, std::chrono::seconds(5));
  std::cout << total.value() << '\n';
}
