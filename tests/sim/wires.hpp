// Connections between nodes as ZeroMQ makes them: a DEALER that dials the peer port of a machine
// and goes on dialling, and at the other end a ROUTER that knows each connection by a number.
//
// Frames keep their order and arrive, or are lost together with the connection. They wait while
// their way is blocked. What no real connection does - loss, repetition or exchange of a frame -
// can be asked for with `garble`: the sessions above must notice.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "sim/events.hpp"
#include "sim/network.hpp"

namespace shardbus::sim {

enum class Port : std::uint8_t { open, closed, silent };  // silent: the process stands still
enum class Garble : std::uint8_t { none, lose, repeat, swap };

class WireEvents {
 public:
  virtual ~WireEvents() = default;
  [[nodiscard]] virtual Port port(int machine) const = 0;
  virtual void on_connected(int machine, NodeKey peer) = 0;
  virtual void on_disconnected(int machine, NodeKey peer) = 0;  // also: refused
  virtual void on_link_frame(int machine, NodeKey peer, std::string frame) = 0;
  virtual void on_peer_frame(int machine, std::uint32_t connection, std::string frame) = 0;
};

class Wires {
 public:
  Wires(Events& clock, Random& random, Network& network, WireEvents& events)
      : clock_(clock), random_(random), network_(network), events_(events) {}

  // --- the sockets of one machine's process ---
  void open(int from, NodeKey peer, int to);
  void close(int from, NodeKey peer);
  bool send(int from, NodeKey peer, std::string_view frame);
  bool reply(int at, std::uint32_t connection, std::string_view frame);

  // --- faults ---
  void end_process(int machine);
  void reset(int a, int b);  // everything in flight between them is lost
  // One of the next frames; as soon as there is one to do it to.
  void garble(int from, int to, Garble how) { garbles_[{from, to}] = how; }
  void ungarble() { garbles_.clear(); }
  // The way is free again: what waited arrives, or is lost with its connection.
  void on_unblocked(int from, int to);
  void on_released(int from, int to);

 private:
  enum class ItemKind : std::uint8_t { frame, connected, disconnected };
  struct Item {
    Time due;
    ItemKind kind = ItemKind::frame;
    std::string bytes;
  };
  struct Flow {
    std::deque<Item> items;
    Time last{};  // keeps order
    bool armed = false;
  };
  struct Connection {
    int from = 0;
    int to = 0;
    NodeKey peer;
    bool dealer = true;  // its end exists
    bool router = true;
    bool stuck = false;   // the router is gone, but the dealer cannot know yet
    bool broken = false;  // takes nothing more; the dealer is told in order
    Flow out;             // dealer to router
    Flow back;
  };
  struct Dealer {
    int to = 0;
    std::uint64_t dial = 0;        // number of the attempt that counts
    std::uint32_t connection = 0;  // 0: none
    Time takes_none_until{};       // its buffer is full
  };
  using DealerName = std::pair<int, NodeKey>;

  void dial(const DealerName& name, Duration after);
  void attempt(const DealerName& name, std::uint64_t number);
  void put(std::uint32_t id, bool out, ItemKind kind, std::string_view bytes);
  void garble_last(const Connection& connection, Flow& flow);
  void arm(std::uint32_t id, bool out);
  void fire(std::uint32_t id, bool out);
  void deliver(std::uint32_t id, bool out, Item item);
  void lose(std::uint32_t id);
  void tell_broken(std::uint32_t id);
  void end_dealer(std::uint32_t id);
  void end_router(std::uint32_t id);
  [[nodiscard]] bool stands(const Connection& connection, bool out) const {
    return out ? network_.stands(connection.from, connection.to)
               : network_.stands(connection.to, connection.from);
  }
  template <class F>
  void each_between(int from, int to, F what);

  Events& clock_;
  Random& random_;
  Network& network_;
  WireEvents& events_;
  std::map<DealerName, Dealer> dealers_;
  std::map<std::uint32_t, Connection> connections_;
  std::map<std::pair<int, int>, Garble> garbles_;
  std::uint32_t last_connection_ = 0;
  std::uint64_t last_dial_ = 0;
};

}  // namespace shardbus::sim
