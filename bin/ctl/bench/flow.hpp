// One sender of `bench handoff`: numbered tells and asks to all entities at an even rate.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shardbus/message.hpp>
#include <string>
#include <thread>
#include <vector>

namespace shardbusctl::bench {

// What a message carries. Tells and asks of one sender to one entity are numbered together.
struct Numbered {
  std::uint32_t sender = 0;
  std::uint64_t number = 0;
  std::int64_t sent = 0;  // of the steady clock, in ns
};

struct FlowOptions {
  std::string type;
  std::uint32_t sender = 0;
  std::uint32_t entities = 0;
  std::uint32_t window = 0;  // asks in flight
  double rate = 0;           // messages per second
};

// Threads: one of its own, from start() to stop().
class Flow {
 public:
  Flow(std::shared_ptr<shardbus::Messenger> via, const FlowOptions& options);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  void start();
  // Sends no more, and waits until every ask has ended.
  void stop();
  [[nodiscard]] std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  // After stop().
  [[nodiscard]] std::uint64_t sent_to(std::uint32_t entity) const { return numbers_[entity]; }
  [[nodiscard]] std::uint64_t asks() const { return asks_; }
  [[nodiscard]] std::uint64_t replies() const { return replies_; }
  [[nodiscard]] std::uint64_t errors() const { return errors_; }
  [[nodiscard]] const std::string& first_error() const { return first_error_; }

 private:
  void run();
  void send_one();
  void ended(const shardbus::ReplyView& reply);
  void note_error(const std::string& error);

  std::shared_ptr<shardbus::Messenger> via_;
  FlowOptions options_;
  std::vector<std::uint64_t> numbers_;  // next number, by entity
  std::uint64_t random_;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::uint32_t in_flight_ = 0;
  std::uint64_t asks_ = 0, replies_ = 0, errors_ = 0;
  std::string first_error_;
};

}  // namespace shardbusctl::bench
