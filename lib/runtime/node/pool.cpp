#include "runtime/node/pool.hpp"

#include <utility>

#include "transport/threads.hpp"

namespace shardbus::runtime {
namespace {

constexpr Duration kHeldLook = std::chrono::milliseconds(1);

thread_local bool inside_pool = false;

}  // namespace

bool Pool::inside() {
  return inside_pool;
}

Pool::Pool(Link& link, std::uint32_t threads, UniqueFunction<bool()> awake)
    : link_(link), awake_(std::move(awake)) {
  for (std::uint32_t i = 0; i < threads; ++i) {
    lanes_.push_back(std::make_unique<Lane>());
    Lane& lane = *lanes_.back();
    lane.thread = transport::start_thread("sb-worker", [this, &lane] { run(lane); });
  }
}

Pool::~Pool() {
  stop();
}

void Pool::stop() {
  std::vector<std::deque<Job>> forgotten;  // after the join: they may own what a handler still uses
  for (auto& lane : lanes_) {
    {
      const std::lock_guard lock(lane->mutex);
      lane->stopping = true;
      forgotten.push_back(std::exchange(lane->jobs, {}));
    }
    lane->signal.notify_one();
  }
  for (auto& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
  }
}

void Pool::post(std::uint32_t lane_number, UniqueFunction<void()> work,
                UniqueFunction<void()> done) {
  Lane& lane = *lanes_[lane_number % lanes_.size()];
  {
    const std::lock_guard lock(lane.mutex);
    if (lane.stopping) return;
    lane.jobs.push_back({std::move(work), std::move(done)});
    if (lane.jobs.size() > 1) return;  // it is awake, or was told already
  }
  lane.signal.notify_one();
}

void Pool::after_all(UniqueFunction<void()> then) {
  struct Barrier {
    UniqueFunction<void()> then;
    std::size_t lanes;
  };
  auto barrier = std::make_shared<Barrier>(Barrier{std::move(then), lanes_.size()});
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    post(
        i, [] {},
        [barrier] {
          if (--barrier->lanes == 0) barrier->then();
        });
  }
}

void Pool::run(Lane& lane) {
  inside_pool = true;
  std::unique_lock lock(lane.mutex);
  for (;;) {
    lane.signal.wait(lock, [&] { return lane.stopping || !lane.jobs.empty(); });
    while (!lane.stopping && !awake_()) lane.signal.wait_for(lock, kHeldLook);
    if (lane.stopping) return;
    Job job = std::move(lane.jobs.front());
    lane.jobs.pop_front();
    lock.unlock();
    job.work();
    link_.run([done = std::move(job.done)](DataPlane&) mutable { done(); });
    lock.lock();
  }
}

}  // namespace shardbus::runtime
