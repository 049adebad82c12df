#include "sim/network.hpp"

#include <algorithm>

namespace shardbus::sim {

bool Events::run_next(Time until) {
  if (queue_.empty() || queue_.top().when > until) {
    now_ = std::max(now_, until);
    return false;
  }
  const Entry entry = queue_.top();
  queue_.pop();
  now_ = entry.when;
  ++ran_;
  entry.what();
  return true;
}

Duration Network::delay() {
  const auto span = static_cast<std::uint64_t>((config_.delay_max - config_.delay_min).count());
  Duration delay = config_.delay_min + Duration(static_cast<std::int64_t>(random_.below(span + 1)));
  if (config_.tail > 0 && random_.chance(config_.tail)) {
    const auto tail = static_cast<std::uint64_t>(config_.tail_max.count());
    delay += Duration(static_cast<std::int64_t>(random_.below(tail + 1)));
  }
  return delay;
}

void Network::gossip(int from, int to, const std::string& bytes) {
  if (blocked(from, to)) return;
  const int copies =
      config_.gossip_duplicate > 0 && random_.chance(config_.gossip_duplicate) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    if (config_.gossip_drop > 0 && random_.chance(config_.gossip_drop)) continue;
    events_.after(delay(), [this, from, to, bytes] {
      if (!blocked(from, to)) deliver_(from, to, Channel::gossip, bytes);
    });
  }
}

void Network::link(int from, int to, Channel channel, std::string bytes) {
  Session& session = sessions_[{from, to}];
  if (stands({from, to})) {
    session.waiting.emplace_back(channel, std::move(bytes));
    return;
  }
  deliver_later({from, to}, channel, std::move(bytes));
}

void Network::deliver_later(Route route, Channel channel, std::string bytes) {
  Session& session = sessions_[route];
  session.last = std::max(session.last, events_.now() + delay());
  const std::uint64_t number = session.number;
  events_.at(session.last, [this, route, channel, number, text = std::move(bytes)] {
    Session& current = sessions_[route];
    if (current.number != number) return;
    // Blocked while it was under way: it waits in order with the rest.
    if (stands(route)) {
      current.waiting.emplace_back(channel, text);
    } else {
      deliver_(route.first, route.second, channel, text);
    }
  });
}

void Network::unblock(int from, int to) {
  if (blocked_.erase({from, to}) == 0) return;
  Session& session = sessions_[{from, to}];
  auto waiting = std::exchange(session.waiting, {});
  if (random_.chance(0.5)) {
    reset(from, to);
    return;
  }
  for (auto& [channel, bytes] : waiting) link(from, to, channel, std::move(bytes));
}

void Network::release(int from, int to) {
  if (clogged_.erase({from, to}) == 0) return;
  auto waiting = std::exchange(sessions_[{from, to}].waiting, {});
  for (auto& [channel, bytes] : waiting) link(from, to, channel, std::move(bytes));
}

void Network::reset(int a, int b) {
  for (const Route& route : {Route{a, b}, Route{b, a}}) {
    Session& session = sessions_[route];
    ++session.number;
    session.waiting.clear();
  }
  lost_(a, b);
  lost_(b, a);
}

void Network::forget(int machine) {
  for (auto& [route, session] : sessions_) {
    if (route.first != machine && route.second != machine) continue;
    ++session.number;
    session.waiting.clear();
  }
}

}  // namespace shardbus::sim
