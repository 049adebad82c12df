#include "client/client_core.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include "transport/endpoint.hpp"
#include "transport/validate.hpp"
#include "wire/limits.hpp"

namespace shardbus::client {
namespace {

constexpr std::size_t kReadBudget = 256;

PlaneSettings settings_of(const ClientOptions& options) {
  std::random_device entropy;
  return {options.nodes, options.cluster, options.smart, options.pending_asks,
          (std::uint64_t{entropy()} << 32) | entropy()};
}

}  // namespace

Result<std::shared_ptr<ClientCore>> ClientCore::connect(const ClientOptions& options) {
  if (options.nodes.empty()) return Status(Errc::invalid_argument, "nodes is empty");
  for (const std::string& address : options.nodes) {
    auto parsed = transport::parse_endpoint(address);
    if (!parsed) return parsed.error();
  }
  auto core = std::make_shared<ClientCore>(options);
  Status usable = core->wait_usable(options.connect_timeout);
  if (!usable) return usable;
  return core;
}

ClientCore::ClientCore(const ClientOptions& options)
    : addresses_(options.nodes),
      log_(options.log, "client"),
      plane_(settings_of(options), *this),
      reactor_(*this, "sb-client", 0),
      dealers_(context_, reactor_, wire::kFrameBytesMax) {
  reactor_.start();
  reactor_.run([this] {
    for (const std::string& address : addresses_) plane_.sessions().open(address);
  });
}

ClientCore::~ClientCore() {
  halt();
}

// Waits for a usable session, or for the word of every node that there will be none.
Status ClientCore::wait_usable(milliseconds timeout) {
  std::unique_lock lock(usable_mutex_);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  usable_changed_.wait_until(lock, deadline, [this] { return usable_ || refused_; });
  if (usable_) return {};
  lock.unlock();
  std::map<std::string, Status> troubles;
  reactor_.run_and_wait([&] { troubles = plane_.sessions().troubles(); });
  Errc code = Errc::unreachable;
  std::string text;
  for (const auto& [address, trouble] : troubles) {
    text += (text.empty() ? "" : "; ") + address + " " +
            (trouble.ok() ? "did not answer" : trouble.message());
    if (!trouble.ok() && trouble.code() != Errc::unreachable) code = trouble.code();
  }
  if (text.empty()) text = "connected, but the node is in no cluster that has a table yet";
  return {code, text};
}

// --- Messenger ---

Status ClientCore::tell(const Outgoing& message) {
  Status valid = transport::validate(message);
  if (!valid) return valid;
  if (stopped_.load()) return Status(Errc::stopped);
  if (const auto pass = reactor_.try_pass()) {
    const Errc outcome = plane_.tell(message);
    return outcome == Errc::ok ? Status() : Status(outcome, std::string(message.type));
  }
  if (reactor_.crowded()) return Status(Errc::overloaded, "the client's inbox is full");
  reactor_.run(
      [this, owned = transport::OwnedMessage(message)] {
        plane_.report_tell(plane_.tell(owned.view()), owned.view().type);
      },
      message.payload.size());
  return {};
}

void ClientCore::ask(const Outgoing& message, milliseconds timeout, ReplyCallback done) {
  Status valid = transport::validate(message, timeout);
  if (valid.ok() && stopped_.load()) valid = Status(Errc::stopped);
  if (!valid) return done({valid.code(), valid.text(), {}});
  if (const auto pass = reactor_.try_pass()) {
    return plane_.ask(message, timeout, std::move(done));
  }
  if (reactor_.crowded()) return done({Errc::overloaded, "the client's inbox is full", {}});
  reactor_.run(
      [this, owned = transport::OwnedMessage(message), timeout, done = std::move(done)]() mutable {
        plane_.ask(owned.view(), timeout, std::move(done));
      },
      message.payload.size());
}

Result<std::string> ClientCore::ask_and_wait(const Outgoing& message, milliseconds timeout) {
  if (transport::Reactor::inside_pass()) {
    return Status(Errc::would_deadlock,
                  "use the callback or awaitable form inside handlers and callbacks");
  }
  return transport::wait_for_reply(
      [&](ReplyCallback done) { ask(message, timeout, std::move(done)); });
}

Status ClientCore::answer(const ReplyAddress& to, const ReplyView& reply) {
  (void)to;
  (void)reply;
  return {Errc::invalid_argument, "only nodes can answer a reply port"};
}

void ClientCore::stop() {
  if (stopped()) return;
  if (inside_callback()) {
    throw std::logic_error("Client::stop() would wait for the callback that it is in");
  }
  halt();
}

void ClientCore::halt() {
  if (stopped_.exchange(true)) return;
  reactor_.run_and_wait([this] { plane_.stop("the client stops"); });
  reactor_.stop();
  reactor_.run_exclusively([this] { dealers_.close_all(); });
}

// --- sockets ---

void ClientCore::open(std::uint64_t peer, const std::string& address) {
  (void)dealers_.open(peer, address);
}
void ClientCore::close(std::uint64_t peer) {
  dealers_.close(peer);
}
bool ClientCore::send(std::uint64_t peer, std::string_view frame) {
  return dealers_.send(peer, frame);
}

void ClientCore::log(LogLevel level, std::string_view event, std::string text) {
  log_.write(level, event, text);
}

void ClientCore::on_dealer_frame(std::uint64_t peer, std::string_view frame) {
  any_read_ = true;
  plane_.sessions().on_frame(peer, frame);
}
void ClientCore::on_dealer_connected(std::uint64_t peer) {
  plane_.sessions().on_connected(peer);
}
void ClientCore::on_dealer_disconnected(std::uint64_t peer) {
  plane_.sessions().on_disconnected(peer);
}

void ClientCore::begin_pass(Time now) {
  plane_.begin(now);
  dealers_.tick(now);
}

transport::ReadOutcome ClientCore::read(const std::vector<int>& ready) {
  any_read_ = false;
  const bool more = dealers_.drain(*this, ready, kReadBudget);
  return {any_read_, more};
}

void ClientCore::end_pass() {
  plane_.end();
  if (!usable_) tell_waiter();
}

void ClientCore::tell_waiter() {
  const bool usable = plane_.usable();
  const bool refused = plane_.sessions().refused_by_all();
  if (usable == usable_ && refused == refused_) return;
  {
    const std::lock_guard lock(usable_mutex_);
    usable_ = usable;
    refused_ = refused;
  }
  usable_changed_.notify_all();
}

bool ClientCore::input_left() {
  return dealers_.touched_readable();
}

Time ClientCore::next_deadline() {
  return std::min(plane_.next_deadline(), dealers_.next_deadline());
}

}  // namespace shardbus::client
