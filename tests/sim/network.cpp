#include "sim/network.hpp"

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

void Network::gossip(int from, int to, const std::string& bytes) {
  if (blocked(from, to)) return;
  const int copies =
      config_.gossip_duplicate > 0 && random_.chance(config_.gossip_duplicate) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    if (config_.gossip_drop > 0 && random_.chance(config_.gossip_drop)) continue;
    events_.after(delay(), [this, from, to, bytes] {
      if (!blocked(from, to)) deliver_(from, to, bytes);
    });
  }
}

}  // namespace shardbus::sim
