#include "runtime/node/link.hpp"

#include <algorithm>
#include <utility>

#include "transport/now.hpp"
#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace shardbus::runtime {
namespace {

constexpr std::size_t kReadBudget = 256;
constexpr std::size_t kFrameLimit = wire::kFrameBytesMax;

std::string identity_refusal() {
  std::string frame;
  wire::encode(frame, wire::Reply{{},
                                  static_cast<std::uint16_t>(Errc::identity_set),
                                  "leave the socket's identity unset",
                                  {}});
  return frame;
}

}  // namespace

class Link::FrontHandler final : public transport::RouterHandler {
 public:
  explicit FrontHandler(Link& link) : link_(link) {}
  void on_frame(std::uint32_t connection, bool delimited, std::string_view frame) override {
    link_.plane_->look(transport::now());
    link_.plane_->front().on_frame(connection, delimited, frame);
  }
  void on_bad_frame(std::uint32_t connection, std::size_t frames) override {
    link_.plane_->front().on_bad_frame(connection, frames);
  }

 private:
  Link& link_;
};

class Link::PeerHandler final : public transport::RouterHandler {
 public:
  explicit PeerHandler(Link& link) : link_(link) {}
  void on_frame(std::uint32_t connection, bool delimited, std::string_view frame) override {
    link_.plane_->look(transport::now());
    if (!delimited) link_.plane_->peers().on_frame(connection, frame);
  }
  void on_bad_frame(std::uint32_t connection, std::size_t frames) override {
    (void)frames;
    link_.peer_.kick(connection);  // nodes never send such; whoever does is none
  }

 private:
  Link& link_;
};

Result<std::unique_ptr<Link>> Link::open(transport::ZmqContext& context,
                                         const LinkOptions& options) {
  auto front = transport::Router::bind(context, options.front, kFrameLimit, identity_refusal());
  if (!front) return front.error();
  auto peer =
      transport::Router::bind(context, options.peer, wire::kPeerFrameBytesMax, identity_refusal());
  if (!peer) return peer.error();
  context.find_data_thread();
  return std::unique_ptr<Link>(new Link(context, options, std::move(*front), std::move(*peer)));
}

Link::Link(transport::ZmqContext& context, const LinkOptions& options, transport::Router front,
           transport::Router peer)
    : front_(std::move(front)),
      peer_(std::move(peer)),
      reactor_(*this, "sb-link",
               options.placement == ThreadPlacement::follow ? context.data_thread() : 0),
      dealers_(context, reactor_, wire::kPeerFrameBytesMax) {
  reactor_.watch(front_.descriptor());
  reactor_.watch(peer_.descriptor());
}

void Link::install(std::unique_ptr<DataPlane> plane) {
  plane_ = std::move(plane);
  reactor_.start();
}

void Link::replace(std::unique_ptr<DataPlane> fresh, Retire retire) {
  reactor_.run_and_wait([&] {
    // What callbacks of the old plane ask anew goes to the fresh one already.
    std::unique_ptr<DataPlane> old = std::exchange(plane_, std::move(fresh));
    plane_->begin(transport::now());
    retire(std::move(old));
  });
}

void Link::stop() {
  reactor_.stop();
  reactor_.run_exclusively([this] {
    if (plane_ != nullptr) plane_->end_entities();
    dealers_.close_all();
    front_.close();
    peer_.close();
  });
}

void Link::run(Work work, std::size_t bytes) {
  reactor_.run([this, work = std::move(work)]() mutable { work(*plane_); }, bytes);
}

void Link::run_and_wait(Work work) {
  reactor_.run_and_wait([this, &work] { work(*plane_); });
}

void Link::begin_pass(Time now) {
  plane_->begin(now);
  dealers_.tick(now);
}

transport::ReadOutcome Link::read(const std::vector<int>& ready) {
  if (plane_->held()) return {.held = true};
  routers_touched_ = false;
  FrontHandler front(*this);
  PeerHandler peer(*this);
  const std::size_t from_peers = peer_.drain(peer, kReadBudget);
  const std::size_t from_front = front_.drain(front, kReadBudget);
  plane_->front().set_backlog(from_front == kReadBudget);
  const bool more_dealers = dealers_.drain(*this, ready, kReadBudget);
  return {from_peers + from_front > 0,
          from_peers == kReadBudget || from_front == kReadBudget || more_dealers};
}

void Link::end_pass() {
  plane_->look(transport::now());
  plane_->end();
}

bool Link::input_left() {
  if (plane_->held()) return false;
  const bool routers = routers_touched_ && (front_.readable() || peer_.readable());
  return routers || dealers_.touched_readable();
}

Time Link::next_deadline() {
  return std::min(plane_->next_deadline(), dealers_.next_deadline());
}

// --- sockets ---

bool Link::send_front(std::uint32_t connection, bool delimited, std::string_view frame) {
  routers_touched_ = true;
  return front_.send(connection, delimited, frame);
}

bool Link::send_peer(std::uint32_t connection, std::string_view frame) {
  routers_touched_ = true;
  return peer_.send(connection, false, frame);
}

bool Link::send_link(NodeKey node, std::string_view frame) {
  return dealers_.send(node.value, frame);
}

void Link::open_link(const NodeInfo& node) {
  (void)dealers_.open(node.key.value, node.peer);
}
void Link::close_link(NodeKey node) {
  dealers_.close(node.value);
}
void Link::kick_front(std::uint32_t connection) {
  front_.kick(connection);
}
bool Link::front_is_gone(std::uint32_t connection) const {
  return front_.is_gone(connection);
}

void Link::on_dealer_frame(std::uint64_t peer, std::string_view frame) {
  plane_->links().on_frame(NodeKey{peer}, frame);
}
void Link::on_dealer_connected(std::uint64_t peer) {
  plane_->links().on_connected(NodeKey{peer});
}
void Link::on_dealer_disconnected(std::uint64_t peer) {
  plane_->links().on_disconnected(NodeKey{peer});
}

}  // namespace shardbus::runtime
