// Threads for handlers that block or burn. A shard always runs on the same one, so its entities
// need no locks and keep their order.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/data/hosts.hpp"
#include "runtime/node/link.hpp"

namespace shardbus::runtime {

class Pool final : public Executor {
 public:
  // `awake`: see DataListener; no handler is begun while it says no.
  Pool(Link& link, std::uint32_t threads, UniqueFunction<bool()> awake);
  ~Pool() override;
  // Bounded by the mailboxes and by one message per entity in flight.
  void post(std::uint32_t lane, UniqueFunction<void()> work, UniqueFunction<void()> done) override;
  // Runs `then` within a pass, once all that was posted before is done, and its `done` with it.
  void after_all(UniqueFunction<void()> then);
  // Finishes what runs, forgets what waits. Not from inside a handler.
  void stop();
  // True on a thread of any pool.
  [[nodiscard]] static bool inside();

 private:
  struct Job {
    UniqueFunction<void()> work;
    UniqueFunction<void()> done;
  };
  struct Lane {
    std::mutex mutex;
    std::condition_variable signal;
    std::deque<Job> jobs;   // guarded by mutex
    bool stopping = false;  // guarded by mutex
    std::thread thread;
  };
  void run(Lane& lane);

  Link& link_;
  UniqueFunction<bool()> awake_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace shardbus::runtime
