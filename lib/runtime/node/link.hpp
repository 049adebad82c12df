// The link of a node: its data sockets and its data plane, in passes of one reactor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/data_plane.hpp"
#include "transport/dealers.hpp"
#include "transport/reactor.hpp"
#include "transport/router.hpp"
#include "transport/zmq.hpp"

namespace shardbus::runtime {

struct LinkOptions {
  std::string front;  // endpoints to bind
  std::string peer;
  ThreadPlacement placement = ThreadPlacement::follow;
};

class Link final : public WirePort, private transport::DealerHandler, private transport::PassHooks {
 public:
  using Work = UniqueFunction<void(DataPlane&)>;

  // Errors: address_in_use, bad_address, exhausted.
  static Result<std::unique_ptr<Link>> open(transport::ZmqContext& context,
                                            const LinkOptions& options);

  [[nodiscard]] std::string front_endpoint() const { return front_.endpoint(); }
  [[nodiscard]] std::string peer_endpoint() const { return peer_.endpoint(); }

  // Puts the first data plane behind the lock and starts the poller.
  void install(std::unique_ptr<DataPlane> plane);
  // Replaces the data plane within one pass: `fresh` takes over, then `retire` ends the old one.
  using Retire = UniqueFunction<void(std::unique_ptr<DataPlane>)>;
  void replace(std::unique_ptr<DataPlane> fresh, Retire retire);
  // Ends the poller and closes the sockets, so that others see the node gone.
  void stop();

  // A pass right now, or nothing if another thread is in one; `plane()` is good while it lasts.
  std::optional<transport::Reactor::Pass> try_pass() { return reactor_.try_pass(); }
  [[nodiscard]] DataPlane& plane() { return *plane_; }
  // Runs `work` within a pass: now if the lock is free or held by this thread, else soon.
  void run(Work work, std::size_t bytes = 0);
  // Runs `work` within a pass and waits for it. Not from within a pass.
  void run_and_wait(Work work);
  // See Reactor.
  [[nodiscard]] bool crowded() const { return reactor_.crowded(); }
  static constexpr std::size_t kInboxMax = transport::Reactor::kInboxMax;
  [[nodiscard]] std::size_t inbox_depth() const { return reactor_.inbox_depth(); }
  [[nodiscard]] std::uint64_t net_catches() const { return reactor_.net_catches(); }
  // Why the I/O thread does not follow the poller; empty while it does.
  [[nodiscard]] std::string placement_trouble() const { return reactor_.follower().trouble(); }

  // --- WirePort, within a pass ---
  bool send_front(std::uint32_t connection, bool delimited, std::string_view frame) override;
  bool send_peer(std::uint32_t connection, std::string_view frame) override;
  bool send_link(NodeKey node, std::string_view frame) override;
  void open_link(const NodeInfo& node) override;
  void close_link(NodeKey node) override;
  void kick_front(std::uint32_t connection) override;
  [[nodiscard]] bool front_is_gone(std::uint32_t connection) const override;

 private:
  class FrontHandler;
  class PeerHandler;
  Link(transport::ZmqContext& context, const LinkOptions& options, transport::Router front,
       transport::Router peer);

  void begin_pass(Time now) override;
  transport::ReadOutcome read(const std::vector<int>& ready) override;
  void end_pass() override;
  bool input_left() override;
  Time next_deadline() override;
  void on_dealer_frame(std::uint64_t peer, std::string_view frame) override;
  void on_dealer_connected(std::uint64_t peer) override;
  void on_dealer_disconnected(std::uint64_t peer) override;

  // All of it is touched within passes only, or by stop().
  transport::Router front_;
  transport::Router peer_;
  std::unique_ptr<DataPlane> plane_;
  bool routers_touched_ = false;  // sent on since they were last read
  transport::Reactor reactor_;
  transport::Dealers dealers_;  // after reactor_: it watches their descriptors
};

}  // namespace shardbus::runtime
