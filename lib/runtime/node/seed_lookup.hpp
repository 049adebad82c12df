// Looks up seeds that are names or files, on a thread of its own: a name server may take seconds.
//
// That thread is not waited for at the end, as nothing can interrupt it; it owns what it uses.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/seeds.hpp"

namespace shardbus::runtime {

// Nothing is wrong; it may just be early.
inline constexpr const char* kNoAddress = "no address yet";

struct SeedFinding {
  transport::SeedSource source;
  transport::LookedUp found;
};

class SeedLookup {
 public:
  // One at a time: nothing happens while one is under way.
  void start(std::vector<transport::SeedSource> sources);
  // What the last one found; once.
  std::optional<std::vector<SeedFinding>> take();

 private:
  struct Run;
  std::shared_ptr<Run> run_;
};

}  // namespace shardbus::runtime
