#include "runtime/node/seed_lookup.hpp"

#include <mutex>
#include <utility>

#include "transport/threads.hpp"

namespace shardbus::runtime {

struct SeedLookup::Run {
  std::mutex mutex;
  std::optional<std::vector<SeedFinding>> findings;  // guarded by mutex
};

void SeedLookup::start(std::vector<transport::SeedSource> sources) {
  if (run_ != nullptr) return;
  run_ = std::make_shared<Run>();
  std::thread thread =
      transport::start_thread("sb-seeds", [run = run_, sources = std::move(sources)] {
        std::vector<SeedFinding> findings;
        for (const transport::SeedSource& source : sources) {
          SeedFinding finding{source, transport::look_up(source)};
          const bool empty = finding.found.known && finding.found.addresses.empty();
          if (empty) finding.found.trouble = kNoAddress;
          findings.push_back(std::move(finding));
        }
        const std::lock_guard lock(run->mutex);
        run->findings = std::move(findings);
      });
  thread.detach();
}

std::optional<std::vector<SeedFinding>> SeedLookup::take() {
  if (run_ == nullptr) return std::nullopt;
  std::optional<std::vector<SeedFinding>> findings;
  {
    const std::lock_guard lock(run_->mutex);
    findings = std::move(run_->findings);
  }
  if (findings) run_.reset();
  return findings;
}

}  // namespace shardbus::runtime
