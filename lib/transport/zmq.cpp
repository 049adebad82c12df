#include "transport/zmq.hpp"

#include <dirent.h>
#include <zmq.h>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

namespace shardbus::transport {
namespace {

constexpr int kZeroCopyReceive = 10;  // draft number; honoured by 4.3.4 (zeromq finding 10)
static_assert(sizeof(zmq_msg_t) == 64, "Frame's storage is a zmq_msg_t");

zmq_msg_t* message(void* storage) {
  return static_cast<zmq_msg_t*>(storage);
}

// Ids of this process's threads that carry the name of ZeroMQ's I/O thread `number`.
std::set<int> io_threads(const std::string& suffix) {
  std::set<int> found;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    const std::string id = entry->d_name;
    std::ifstream name_file("/proc/self/task/" + id + "/comm");
    std::string name;
    if (std::getline(name_file, name) && name.ends_with(suffix)) found.insert(std::stoi(id));
  }
  closedir(folder);
  return found;
}

int socket_type(SocketKind kind) {
  switch (kind) {
    case SocketKind::router:
      return ZMQ_ROUTER;
    case SocketKind::dealer:
      return ZMQ_DEALER;
    case SocketKind::pub:
      return ZMQ_PUB;
    case SocketKind::sub:
      return ZMQ_SUB;
    case SocketKind::pair:
      return ZMQ_PAIR;
  }
  return ZMQ_PAIR;
}

}  // namespace

ZmqContext::ZmqContext() : context_(zmq_ctx_new()) {
  zmq_ctx_set(context_, ZMQ_IO_THREADS, 2);
  zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, 8192);
  zmq_ctx_set(context_, kZeroCopyReceive, 0);
}

ZmqContext::~ZmqContext() {
  zmq_ctx_shutdown(context_);
  while (zmq_ctx_term(context_) != 0 && errno == EINTR) {
  }
}

// The library names its threads, and starts them with the first socket: the newest id of that name
// is ours, since nodes of one process start one after the other.
void ZmqContext::find_data_thread() {
  const std::set<int> threads = io_threads("IO/0");
  data_thread_ = threads.empty() ? 0 : *threads.rbegin();
}

Frame::Frame() {
  zmq_msg_init(message(storage_));
}
Frame::~Frame() {
  zmq_msg_close(message(storage_));
}
std::string_view Frame::bytes() const {
  return {static_cast<const char*>(zmq_msg_data(message(storage_))),
          zmq_msg_size(message(storage_))};
}
bool Frame::more() const {
  return zmq_msg_more(message(storage_)) != 0;
}
int Frame::source_descriptor() const {
  return zmq_msg_get(message(storage_), ZMQ_SRCFD);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    socket_ = std::exchange(other.socket_, nullptr);
  }
  return *this;
}

Result<Socket> Socket::open(ZmqContext& context, SocketKind kind, IoThread thread,
                            std::size_t frame_limit) {
  void* raw = zmq_socket(context.get(), socket_type(kind));
  if (raw == nullptr) {
    return Status(Errc::exhausted, std::string("cannot open a socket: ") + zmq_strerror(errno));
  }
  Socket socket(raw);
  const auto limit = static_cast<std::int64_t>(frame_limit);
  const std::uint64_t affinity = thread == IoThread::data ? 1 : 2;
  zmq_setsockopt(raw, ZMQ_MAXMSGSIZE, &limit, sizeof limit);
  zmq_setsockopt(raw, ZMQ_AFFINITY, &affinity, sizeof affinity);
  socket.set_int(ZMQ_LINGER, 0);
  if (kind == SocketKind::pair) return socket;
  socket.set_int(ZMQ_HANDSHAKE_IVL, 5000);
  socket.set_int(ZMQ_BACKLOG, 1024);
  socket.set_int(ZMQ_TCP_KEEPALIVE, 1);
  socket.set_int(ZMQ_TCP_KEEPALIVE_IDLE, 30);
  socket.set_int(ZMQ_TCP_KEEPALIVE_INTVL, 10);
  socket.set_int(ZMQ_TCP_KEEPALIVE_CNT, 3);
  socket.set_int(ZMQ_TCP_MAXRT, 30000);
  socket.set_int(ZMQ_RECONNECT_IVL, 100);
  socket.set_int(ZMQ_RECONNECT_IVL_MAX, 2000);
  socket.set_int(ZMQ_CONNECT_TIMEOUT, 5000);
  if (kind == SocketKind::router) {
    socket.set_int(ZMQ_ROUTER_MANDATORY, 1);
    socket.set_int(ZMQ_ROUTER_HANDOVER, 0);
    socket.set_int(ZMQ_RCVHWM, 0);  // a finite one re-opens an abort; credit bounds instead
    socket.set_int(ZMQ_SNDHWM, 1000);
  } else if (kind == SocketKind::dealer) {
    socket.set_int(ZMQ_IMMEDIATE, 1);
    socket.set_int(ZMQ_RCVHWM, 0);
    socket.set_int(ZMQ_SNDHWM, 256);
  }
  return socket;
}

void Socket::close() {
  if (socket_ != nullptr) zmq_close(std::exchange(socket_, nullptr));
}

void Socket::set_int(int option, int value) {
  zmq_setsockopt(socket_, option, &value, sizeof value);
}

void Socket::subscribe_all() {
  zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, "", 0);
}

Status Socket::bind(const std::string& endpoint) {
  if (zmq_bind(socket_, endpoint.c_str()) == 0) return {};
  if (errno == EADDRINUSE) return {Errc::address_in_use, endpoint};
  return {Errc::bad_address, endpoint + ": " + zmq_strerror(errno)};
}

Status Socket::connect(const std::string& endpoint) {
  if (zmq_connect(socket_, endpoint.c_str()) == 0) return {};
  return {Errc::bad_address, endpoint + ": " + zmq_strerror(errno)};
}

void Socket::disconnect(const std::string& endpoint) {
  zmq_disconnect(socket_, endpoint.c_str());
}

std::string Socket::last_endpoint() const {
  char text[512];
  std::size_t size = sizeof text;
  if (zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, text, &size) != 0 || size == 0) return {};
  return {text, size - 1};
}

Socket::Sent Socket::send(std::string_view bytes, bool more) {
  const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
  for (;;) {
    if (zmq_send(socket_, bytes.data(), bytes.size(), flags) >= 0) return Sent::yes;
    if (errno == EINTR) continue;
    return errno == EAGAIN ? Sent::full : Sent::gone;
  }
}

bool Socket::receive(Frame& frame) {
  for (;;) {
    if (zmq_msg_recv(message(frame.raw()), socket_, ZMQ_DONTWAIT) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

std::size_t Socket::drop_rest() {
  std::size_t dropped = 0;
  Frame frame;
  do {
    if (!receive(frame)) return dropped;
    ++dropped;
  } while (frame.more());
  return dropped;
}

bool Socket::readable() const {
  int events = 0;
  std::size_t size = sizeof events;
  if (zmq_getsockopt(socket_, ZMQ_EVENTS, &events, &size) != 0) return false;
  return (events & ZMQ_POLLIN) != 0;
}

int Socket::descriptor() const {
  int descriptor = -1;
  std::size_t size = sizeof descriptor;
  zmq_getsockopt(socket_, ZMQ_FD, &descriptor, &size);
  return descriptor;
}

void Socket::monitor(const std::string& endpoint, int events) {
  zmq_socket_monitor(socket_, endpoint.c_str(), events);
}

void Socket::stop_monitor() {
  zmq_socket_monitor(socket_, nullptr, 0);
}

}  // namespace shardbus::transport
