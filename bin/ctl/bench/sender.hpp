// Sends a number of asks with a fixed window, the next one from the callback of each reply, and
// checks that every ask ends exactly once, with its own reply, in the order of its entity.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shardbus/message.hpp>
#include <string>
#include <vector>

#include "common/histogram.hpp"

namespace shardbusctl::bench {

using std::chrono::steady_clock;

// What a bench ask carries, in front of its filling; the reply is the same bytes. Sequence numbers
// count the asks of one sender to one entity.
struct Stamp {
  std::uint32_t sender = 0;
  std::uint32_t slot = 0;
  std::uint64_t ask = 0;
  std::uint32_t entity = 0;
  std::uint32_t in_order = 1;  // The entity clears it when it sees a gap.
  std::uint64_t sequence = 0;
};
static_assert(sizeof(Stamp) == 32);

struct SenderOptions {
  std::string type;
  std::uint32_t sender = 0;
  std::uint32_t entities = 0;
  std::uint32_t window = 0;
  std::size_t payload = 0;  // bytes, at least those of Stamp
};

struct Tally {
  std::uint64_t asks = 0, replies = 0, errors = 0, duplicates = 0, out_of_order = 0;
  std::string first_error;
  shardbus_tools::Histogram latency_ns;

  void add(const Tally& other);
  // Every ask ended in its own reply, once, in order.
  [[nodiscard]] bool clean() const {
    return replies == asks && errors == 0 && duplicates == 0 && out_of_order == 0;
  }
};

// The id of an entity of a benchmark: 16 characters.
std::string entity_id(std::uint32_t index);

// Threads: run() from one thread; callbacks come one at a time from the messenger. Lifetime: until
// wait() has given true.
class Sender {
 public:
  Sender(std::shared_ptr<shardbus::Messenger> via, SenderOptions options);

  // Starts `count` asks; the tally begins anew, the sequence numbers go on.
  void start(std::uint64_t count);
  // Whether all asks of start() have ended, waiting so long for it.
  bool wait_until(steady_clock::time_point deadline);
  // How many have ended so far; from any thread.
  [[nodiscard]] std::uint64_t ended() const { return ended_.load(std::memory_order_relaxed); }
  // Once all have ended.
  [[nodiscard]] const Tally& tally() const { return tally_; }

 private:
  struct Slot {
    std::uint64_t ask = 0;
    std::uint64_t sequence = 0;
    std::uint32_t entity = 0;
    bool busy = false;
    steady_clock::time_point sent;
  };
  struct Counters {
    std::uint64_t sent = 0, answered = 0;
  };

  void send(std::uint32_t slot);
  void refill();
  void end(std::uint32_t slot, std::uint64_t ask, const shardbus::ReplyView& reply);
  void check(const Slot& slot, const shardbus::ReplyView& reply);
  std::uint32_t next_entity();

  std::shared_ptr<shardbus::Messenger> via_;
  SenderOptions options_;
  std::vector<std::string> ids_;
  std::vector<Counters> entities_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  bool refilling_ = false;
  std::string payload_;
  std::uint64_t random_;
  std::uint64_t planned_ = 0, started_ = 0;
  Tally tally_;
  std::atomic<std::uint64_t> ended_{0};

  std::mutex mutex_;
  std::condition_variable all_ended_;
  bool done_ = false;  // by mutex_
};

}  // namespace shardbusctl::bench
