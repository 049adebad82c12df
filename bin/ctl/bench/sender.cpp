#include "ctl/bench/sender.hpp"

#include <cstdio>
#include <cstring>
#include <utility>

namespace shardbusctl::bench {
namespace {

// A lost ask must show as an error of its own, not as a benchmark that hangs.
constexpr shardbus::milliseconds kAskTimeout{30'000};

}  // namespace

void Tally::add(const Tally& other) {
  asks += other.asks;
  replies += other.replies;
  errors += other.errors;
  duplicates += other.duplicates;
  out_of_order += other.out_of_order;
  if (first_error.empty()) first_error = other.first_error;
  latency_ns.add(other.latency_ns);
}

std::string entity_id(std::uint32_t index) {
  char text[17];
  std::snprintf(text, sizeof text, "entity-%09u", index);
  return text;
}

Sender::Sender(std::shared_ptr<shardbus::Messenger> via, SenderOptions options)
    : via_(std::move(via)),
      options_(std::move(options)),
      entities_(options_.entities),
      slots_(options_.window),
      payload_(options_.payload, '\0'),
      random_(0x9e3779b97f4a7c15ULL + options_.sender) {
  for (std::uint32_t i = 0; i < options_.entities; ++i) ids_.push_back(entity_id(i));
}

void Sender::start(std::uint64_t count) {
  planned_ = count;
  started_ = 0;
  tally_ = {};
  ended_ = 0;
  done_ = false;
  free_.clear();
  // The first ask opens the window from its callback. So all state here is touched by callbacks
  // only, which come one at a time, and needs no lock.
  send(0);
}

bool Sender::wait_until(steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return all_ended_.wait_until(lock, deadline, [this] { return done_; });
}

std::uint32_t Sender::next_entity() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<std::uint32_t>((random_ >> 32) * options_.entities >> 32);
}

void Sender::send(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.ask = started_++;
  slot.entity = next_entity();
  slot.sequence = entities_[slot.entity].sent++;
  slot.busy = true;
  ++tally_.asks;
  const Stamp stamp{options_.sender, index, slot.ask, slot.entity, 1, slot.sequence};
  std::memcpy(payload_.data(), &stamp, sizeof stamp);
  slot.sent = steady_clock::now();
  via_->ask(
      {options_.type, ids_[slot.entity], "echo", payload_}, kAskTimeout,
      [this, index, ask = slot.ask](const shardbus::ReplyView& reply) { end(index, ask, reply); });
}

void Sender::refill() {
  // An ask may end inside send(), and its callback come here again: then the loop below goes on
  // with its slot, as calling each other would need a stack as deep as the benchmark is long.
  if (std::exchange(refilling_, true)) return;
  while (!free_.empty() && started_ < planned_) {
    const std::uint32_t index = free_.back();
    free_.pop_back();
    send(index);
  }
  refilling_ = false;
}

void Sender::check(const Slot& slot, const shardbus::ReplyView& reply) {
  Counters& entity = entities_[slot.entity];
  const std::uint64_t expected = entity.answered++;
  if (!reply.ok()) {
    ++tally_.errors;
    if (tally_.first_error.empty())
      tally_.first_error = shardbus::Status(reply.error, std::string(reply.text)).message();
    return;
  }
  Stamp stamp;
  if (reply.payload.size() != payload_.size()) {
    ++tally_.errors;
    tally_.first_error = "a reply has another size than its ask";
    return;
  }
  std::memcpy(&stamp, reply.payload.data(), sizeof stamp);
  if (stamp.sender != options_.sender || stamp.ask != slot.ask || stamp.entity != slot.entity) {
    ++tally_.errors;
    tally_.first_error = "a reply belongs to another ask";
    return;
  }
  ++tally_.replies;
  if (stamp.in_order == 0 || stamp.sequence != expected) ++tally_.out_of_order;
}

void Sender::end(std::uint32_t index, std::uint64_t ask, const shardbus::ReplyView& reply) {
  Slot& slot = slots_[index];
  if (!slot.busy || slot.ask != ask) {
    ++tally_.duplicates;
    return;
  }
  slot.busy = false;
  free_.push_back(index);
  tally_.latency_ns.add(static_cast<std::uint64_t>((steady_clock::now() - slot.sent).count()));
  check(slot, reply);
  const std::uint64_t ended = ended_.load(std::memory_order_relaxed) + 1;
  ended_.store(ended, std::memory_order_relaxed);
  if (ended == 1) {
    for (std::uint32_t i = 1; i < slots_.size(); ++i) free_.push_back(i);
  }
  if (ended < planned_) return refill();
  const std::lock_guard lock(mutex_);
  done_ = true;
  all_ended_.notify_all();
}

}  // namespace shardbusctl::bench
