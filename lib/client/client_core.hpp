// A running client: a client plane, its sockets, and its reactor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "client/client_plane.hpp"
#include "observe/log.hpp"
#include "shardbus/options.hpp"
#include "transport/dealers.hpp"
#include "transport/reactor.hpp"
#include "transport/zmq.hpp"

namespace shardbus::client {

// Make it with `connect`.
class ClientCore final : public Messenger,
                         private ClientPort,
                         private transport::DealerHandler,
                         private transport::PassHooks {
 public:
  // Errors: as Client::connect.
  static Result<std::shared_ptr<ClientCore>> connect(const ClientOptions& options);
  explicit ClientCore(const ClientOptions& options);
  ~ClientCore() override;

  Status tell(const Outgoing& message) override;
  void ask(const Outgoing& message, milliseconds timeout, ReplyCallback done) override;
  Result<std::string> ask_and_wait(const Outgoing& message, milliseconds timeout) override;
  Status answer(const ReplyAddress& to, const ReplyView& reply) override;
  // Throws std::logic_error within a callback.
  void stop();
  [[nodiscard]] bool stopped() const { return stopped_.load(); }
  // True within a callback: `stop` would wait for it.
  [[nodiscard]] static bool inside_callback() { return transport::Reactor::inside_pass(); }

 private:
  void halt();
  Status wait_usable(milliseconds timeout);

  void open(std::uint64_t peer, const std::string& address) override;
  void close(std::uint64_t peer) override;
  bool send(std::uint64_t peer, std::string_view frame) override;
  void log(LogLevel level, std::string_view event, std::string text) override;
  void on_dealer_frame(std::uint64_t peer, std::string_view frame) override;
  void on_dealer_connected(std::uint64_t peer) override;
  void on_dealer_disconnected(std::uint64_t peer) override;
  void begin_pass(Time now) override;
  transport::ReadOutcome read(const std::vector<int>& ready) override;
  void end_pass() override;
  void tell_waiter();
  bool input_left() override;
  Time next_deadline() override;

  std::vector<std::string> addresses_;
  observe::Log log_;
  transport::ZmqContext context_;
  ClientPlane plane_;  // touched within passes only
  bool any_read_ = false;
  transport::Reactor reactor_;
  transport::Dealers dealers_;  // after reactor_: it watches their descriptors
  std::mutex usable_mutex_;
  std::condition_variable usable_changed_;
  bool usable_ = false;   // guarded by usable_mutex_
  bool refused_ = false;  // by every node; guarded by usable_mutex_
  std::atomic<bool> stopped_{false};
};

}  // namespace shardbus::client
