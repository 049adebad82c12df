#include "sim/network.hpp"

#include <algorithm>

namespace shardbus::sim {

Duration Network::delay() {
  const auto span = static_cast<std::uint64_t>((config_.delay_max - config_.delay_min).count());
  Duration delay = config_.delay_min + Duration(static_cast<std::int64_t>(random_.below(span + 1)));
  if (config_.tail > 0 && random_.chance(config_.tail)) {
    const auto tail = static_cast<std::uint64_t>(config_.tail_max.count());
    delay += Duration(static_cast<std::int64_t>(random_.below(tail + 1)));
  }
  return delay;
}

Duration Network::delay(int from, int to) {
  const LinkWeather* weather = this->weather(from, to);
  if (weather == nullptr || weather->delay_max == Duration{}) return delay();
  const auto most = static_cast<std::uint64_t>(weather->delay_max.count());
  return delay() + Duration(static_cast<std::int64_t>(random_.below(most + 1)));
}

bool Network::breaks(int from, int to) {
  const LinkWeather* weather = this->weather(from, to);
  return weather != nullptr && weather->reset > 0 && random_.chance(weather->reset);
}

void Network::gossip(int from, int to, const std::string& bytes) {
  if (blocked(from, to)) return;
  const LinkWeather* weather = this->weather(from, to);
  const auto happens = [&](double everywhere, double here) {
    const double chance = std::max(everywhere, here);
    return chance > 0 && random_.chance(chance);
  };
  const bool doubled =
      happens(config_.gossip_duplicate, weather != nullptr ? weather->duplicate : 0);
  for (int copy = 0; copy < (doubled ? 2 : 1); ++copy) {
    if (happens(config_.gossip_drop, weather != nullptr ? weather->drop : 0)) continue;
    events_.after(delay(from, to), [this, from, to, bytes] {
      if (!blocked(from, to)) deliver_(from, to, bytes);
    });
  }
}

}  // namespace shardbus::sim
