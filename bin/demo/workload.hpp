// Asks and tells over many entities through several brokers at once, with a fixed number of asks in
// flight on each way in, and a record of how each ask ended.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <shardbus/client.hpp>
#include <string>
#include <vector>

#include "common/histogram.hpp"
#include "demo/ledger.hpp"

namespace shardbus_demo {

inline constexpr shardbus::milliseconds kAskTimeout{5000};

// What went through one broker.
struct LaneReport {
  explicit LaneReport(std::string of = {}) : name(std::move(of)) {}
  std::string name;
  std::uint64_t asks = 0, replies = 0, errors = 0, tells = 0, refused_tells = 0;
  shardbus_tools::Histogram latency_us;
};

// How the asks ended that were in flight when the broker was killed, and those sent later.
struct Ending {
  std::uint64_t count = 0;
  steady_clock::duration slowest{};
};

struct Report {
  std::vector<LaneReport> lanes;
  std::map<std::string, Ending> in_flight;  // at SIGKILL; "reply" or the error's name
  std::map<std::string, Ending> later;      // sent after SIGKILL; errors only
  steady_clock::duration longest_silence{};
  steady_clock::duration first_answered{};  // since SIGKILL, an entity of the dead broker
  steady_clock::duration all_answered{};    // since SIGKILL
  std::size_t never_answered = 0;
  steady_clock::duration wall{};
};

// A name and a way in.
using Ways = std::vector<std::pair<std::string, std::shared_ptr<shardbus::Messenger>>>;

// Threads: its own calls from one thread; callbacks come from the clients' threads.
class Workload {
 public:
  // One lane per client. `entities` are also changed by callbacks while run() is under way.
  Workload(const Ways& ways, std::vector<Entity>& entities, std::uint32_t window);

  // Lets the load run until the deadline and, after a kill, until every entity has answered again
  // or `patience` is over; then waits for the asks in flight. `tick` is called every 100 ms with
  // the asks ended so far.
  Report run(steady_clock::duration length, steady_clock::duration patience,
             const std::function<void(std::uint64_t)>& tick);
  // Whose death is to come: what went through it may be lost. Before run().
  void will_die(std::string node, std::size_t lane);
  // Notes the death for the record; the load goes on. From tick().
  void kill_is_sent();
  // The lane of the dead broker goes on by another way.
  void death_is_confirmed(std::shared_ptr<shardbus::Messenger> other_way);
  [[nodiscard]] const Death& death() const { return death_; }

 private:
  struct Slot {
    std::size_t entity = 0;
    steady_clock::time_point sent;
  };
  struct Lane {
    std::shared_ptr<shardbus::Messenger> via;
    std::vector<Slot> slots;
    std::vector<std::uint32_t> free;
    bool refilling = false;
    LaneReport report;
  };
  struct Plan;

  void refill(std::size_t lane);
  // Its broker was killed: what it sent now would be held by its client until the deadline.
  [[nodiscard]] bool waits_for_a_way(const Lane& lane) const;
  bool plan(Lane& lane, Plan& plan);
  std::size_t next_entity();
  void send(std::size_t lane, const Plan& plan);
  void end(std::size_t lane, std::uint32_t slot, const shardbus::ReplyView& reply);
  void note_end(const Slot& slot, const shardbus::ReplyView& reply, steady_clock::time_point now);
  [[nodiscard]] bool load_may_stop(steady_clock::time_point now, steady_clock::time_point until,
                                   steady_clock::time_point patience) const;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Lane> lanes_;
  std::vector<Entity>& entities_;
  std::size_t unanswered_ = 0;  // entities that have not answered since the death
  std::size_t next_unanswered_ = 0;
  std::uint64_t random_ = 0x9e3779b97f4a7c15ULL;
  std::uint64_t ended_ = 0, in_flight_ = 0;
  bool stopping_ = false;
  Death death_;
  Report report_;
  steady_clock::time_point last_reply_;
};

}  // namespace shardbus_demo
