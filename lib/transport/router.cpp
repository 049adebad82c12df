#include "transport/router.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cstring>
#include <utility>

namespace shardbus::transport {
namespace {

constexpr std::size_t kRoutingIdBytes = 5;
constexpr std::size_t kSourcesMax = 65536;

std::array<char, kRoutingIdBytes> routing_id(std::uint32_t connection) {
  std::array<char, kRoutingIdBytes> id{};
  std::memcpy(id.data() + 1, &connection, sizeof connection);
  return id;
}

std::uint64_t inode_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

Result<Router> Router::bind(ZmqContext& context, const std::string& endpoint,
                            std::size_t frame_limit, std::string identity_refusal) {
  Result<Socket> socket = Socket::open(context, SocketKind::router, IoThread::data, frame_limit);
  if (!socket) return socket.error();
  Status bound = socket->bind(endpoint);
  if (!bound) return bound;
  Router router;
  router.socket_ = std::move(*socket);
  router.endpoint_ = router.socket_.last_endpoint();
  router.identity_refusal_ = std::move(identity_refusal);
  return router;
}

std::size_t Router::drain(RouterHandler& handler, std::size_t budget) {
  for (std::size_t i = 0; i < budget; ++i) {
    if (!receive_message(handler)) return i;
  }
  return budget;
}

bool Router::receive_message(RouterHandler& handler) {
  Frame id;
  if (!socket_.receive(id)) return false;
  Frame frame;
  const std::string_view peer = id.bytes();
  const bool own_identity = peer.size() != kRoutingIdBytes || peer[0] != 0;
  if (!id.more() || !socket_.receive(frame)) return true;
  if (own_identity) {
    if (frame.more()) socket_.drop_rest();
    if (socket_.send(peer, true) == Socket::Sent::yes) (void)socket_.send(identity_refusal_);
    return true;
  }
  std::uint32_t connection = 0;
  std::memcpy(&connection, peer.data() + 1, sizeof connection);
  if (connection != last_noted_) note_source(connection, frame);
  if (!frame.more()) {
    handler.on_frame(connection, false, frame.bytes());
    return true;
  }
  const bool delimiter = frame.bytes().empty();
  Frame second;
  if (!socket_.receive(second)) return true;
  if (second.more()) {
    handler.on_bad_frame(connection, 2 + socket_.drop_rest());
  } else if (!delimiter) {
    handler.on_bad_frame(connection, 2);
  } else {
    handler.on_frame(connection, true, second.bytes());
  }
  return true;
}

bool Router::send(std::uint32_t connection, bool delimited, std::string_view frame) {
  const auto id = routing_id(connection);
  // MANDATORY is checked on the id frame: after that the rest is taken or dropped whole.
  if (socket_.send({id.data(), id.size()}, true) != Socket::Sent::yes) return false;
  if (delimited) (void)socket_.send({}, true);
  (void)socket_.send(frame);
  return true;
}

void Router::note_source(std::uint32_t connection, const Frame& frame) {
  last_noted_ = connection;
  const auto [place, fresh] = sources_.try_emplace(connection);
  if (!fresh) return;
  const int descriptor = frame.source_descriptor();
  place->second = {descriptor, descriptor < 0 ? 0 : inode_of(descriptor)};
  if (sources_.size() > kSourcesMax) prune_sources();
}

void Router::prune_sources() {
  std::erase_if(sources_, [](const auto& entry) {
    return entry.second.inode == 0 || inode_of(entry.second.descriptor) != entry.second.inode;
  });
}

void Router::kick(std::uint32_t connection) {
  const auto found = sources_.find(connection);
  if (found == sources_.end()) return;
  const Source source = found->second;
  sources_.erase(found);
  last_noted_ = 0;
  if (source.descriptor < 0) return;
  // Pinned by the duplicate, so that the check and the cut mean the same connection.
  const int pinned = dup(source.descriptor);
  if (pinned < 0) return;
  if (inode_of(pinned) == source.inode) shutdown(pinned, SHUT_RDWR);
  ::close(pinned);
}

bool Router::is_gone(std::uint32_t connection) const {
  const auto found = sources_.find(connection);
  if (found == sources_.end()) return true;
  const Source& source = found->second;
  if (source.inode == 0) return false;
  if (inode_of(source.descriptor) != source.inode) return true;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(source.descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_state != TCP_ESTABLISHED;
}

}  // namespace shardbus::transport
