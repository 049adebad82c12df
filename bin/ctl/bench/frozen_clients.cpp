#include "ctl/bench/frozen_clients.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <shardbus/client.hpp>

#include "ctl/bench/handoff_cluster.hpp"
#include "ctl/bench/sender.hpp"

namespace shardbusctl::bench {
namespace {

constexpr std::chrono::seconds kPatience{20};
constexpr std::uint32_t kAsksMax = 2000;  // of a few dozen shards each is hit

// Stops itself within its last asks, so that their answers are not read.
void freeze(const std::string& node, std::uint32_t entities) {
  shardbus::ClientOptions options;
  options.nodes = {node};
  auto client = shardbus::Client::connect(options);
  if (!client) fail(client.error());
  const std::uint32_t asks = std::min(entities, kAsksMax);
  const std::uint32_t step = entities / asks;
  for (std::uint32_t i = 0; i < asks; ++i) {
    const std::string id = entity_id(i * step);
    const auto reply =
        client->messenger()->ask_and_wait({kLedgerType, id, "accounts", ""}, milliseconds(5000));
    if (!reply) fail(reply.error());
  }
  for (std::uint32_t i = 0; i < asks; ++i) {
    const std::string id = entity_id(i * step);
    client->messenger()->ask({kLedgerType, id, "accounts", ""}, milliseconds(60'000),
                             [](const shardbus::ReplyView&) {});
  }
  std::puts("frozen");
  std::fflush(stdout);
  std::raise(SIGSTOP);
}

}  // namespace

FrozenClients::FrozenClients(std::uint32_t count, const std::string& node, std::uint32_t entities) {
  const std::string program = shardbus_tools::beside_this_program("shardbusctl");
  for (std::uint32_t i = 0; i < count; ++i) {
    processes_.emplace_back(std::vector<std::string>{program, "bench", "frozen-client", "--node",
                                                     node, "--entities", std::to_string(entities)});
  }
  for (shardbus_tools::Process& process : processes_) {
    const auto line = process.read_line(steady_clock::now() + kPatience);
    if (line != "frozen" || !shardbus_tools::wait_stopped(process.pid(), kPatience)) {
      fail(Exit::failed, "a client process that was to stand still did not get there");
    }
  }
}

void add_frozen_client(CLI::App& bench, const Globals& globals) {
  auto entities = std::make_shared<std::uint32_t>(1);
  CLI::App* command = bench.add_subcommand("frozen-client", "");
  command->group("");
  command->fallthrough();
  command->add_option("--entities", *entities, "")->check(CLI::Range(1, 100'000'000));
  command->callback([&globals, entities] { freeze(globals.nodes.front(), *entities); });
}

}  // namespace shardbusctl::bench
