// Client processes of `bench handoff` that stand still: nothing of theirs may hold up a move.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "common/process.hpp"
#include "ctl/session.hpp"

namespace shardbusctl::bench {

// Each goes straight to owners, has got answers from every shard, and stands still with asks of all
// of them under way: a shard that moves finds their messages, and asks in vain for their fences.
class FrozenClients {
 public:
  // Returns when all of them stand still. `node`: an address; `entities` of the ledger's type.
  // Errors end the command.
  FrozenClients(std::uint32_t count, const std::string& node, std::uint32_t entities);

 private:
  std::vector<shardbus_tools::Process> processes_;
};

// The command that such a process runs; not in the help.
void add_frozen_client(CLI::App& bench, const Globals& globals);

}  // namespace shardbusctl::bench
