#include "ctl/bench/flow.hpp"

#include <algorithm>
#include <cstring>

#include "ctl/bench/sender.hpp"

namespace shardbusctl::bench {
namespace {

constexpr shardbus::milliseconds kAskTimeout{30'000};

}  // namespace

Flow::Flow(std::shared_ptr<shardbus::Messenger> via, const FlowOptions& options)
    : via_(std::move(via)),
      options_(options),
      numbers_(options.entities, 0),
      random_(0x9e3779b97f4a7c15ULL + options.sender) {}

Flow::~Flow() {
  stop();
}

void Flow::start() {
  thread_ = std::thread([this] { run(); });
}

void Flow::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return in_flight_ == 0; });
}

// In small bursts, so that the rate holds without a wake-up per message.
void Flow::run() {
  constexpr std::chrono::milliseconds kBurst{1};
  const auto begin = steady_clock::now();
  while (!stopping_) {
    const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    const auto due = static_cast<std::uint64_t>(seconds * options_.rate);
    while (sent() < due && !stopping_) send_one();
    std::this_thread::sleep_for(kBurst);
  }
}

void Flow::send_one() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const auto entity = static_cast<std::uint32_t>((random_ >> 32) * options_.entities >> 32);
  const bool ask = random_ % 2 == 0;
  if (ask) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return in_flight_ < options_.window; });
    ++in_flight_;
    ++asks_;
  }
  const Numbered numbered{options_.sender, numbers_[entity]++,
                          steady_clock::now().time_since_epoch().count()};
  std::string payload(sizeof numbered, '\0');
  std::memcpy(payload.data(), &numbered, sizeof numbered);
  sent_.fetch_add(1, std::memory_order_relaxed);
  const std::string id = entity_id(entity);
  const shardbus::Outgoing message{options_.type, id, "note", payload};
  if (ask) {
    via_->ask(message, kAskTimeout, [this](const shardbus::ReplyView& reply) { ended(reply); });
    return;
  }
  const shardbus::Status told = via_->tell(message);
  if (told) return;
  const std::lock_guard lock(mutex_);
  note_error("tell: " + told.message());
}

void Flow::ended(const shardbus::ReplyView& reply) {
  const std::lock_guard lock(mutex_);
  if (reply.ok()) {
    ++replies_;
  } else {
    note_error("ask: " + shardbus::Status(reply.error, std::string(reply.text)).message());
  }
  --in_flight_;
  changed_.notify_all();
}

void Flow::note_error(const std::string& error) {
  if (errors_++ == 0) first_error_ = error;
}

}  // namespace shardbusctl::bench
