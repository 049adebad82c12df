#include "bench/floor/server.hpp"

#include <array>
#include <chrono>

#include "bench/floor/follow.hpp"

namespace shardbus_floor {

void serve(const Options& options) {
  void* context = zmq_ctx_new();
  void* router = zmq_socket(context, ZMQ_ROUTER);
  unlimited(router);
  must(zmq_bind(router, "tcp://127.0.0.1:*") == 0, "bind");
  std::array<char, 64> address{};
  std::size_t size = address.size();
  must(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, address.data(), &size) == 0, "endpoint");
  std::cout << address.data() << std::endl;
  Follower follower(options.follow);
  for (;;) {
    Frame identity;
    Frame body;
    must(identity.receive(router, 0) && body.receive(router, 0), "receive");
    identity.send(router, ZMQ_SNDMORE);
    body.send(router, 0);
    follower.pass();
  }
}

Servers::Servers(const Options& options) {
  for (std::uint32_t i = 0; i < options.servers; ++i) {
    std::vector<std::string> words{"/proc/self/exe", "--serve"};
    if (options.follow) words.emplace_back("--follow");
    processes_.emplace_back(words);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (shardbus_tools::Process& process : processes_) {
    const auto line = process.read_line(deadline);
    must(line.has_value(), "a server did not start");
    addresses_.push_back(*line);
  }
}

}  // namespace shardbus_floor
