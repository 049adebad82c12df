#include "demo/ledger.hpp"

namespace shardbus_demo {
namespace {

std::string outside(const char* what, std::uint64_t value, std::uint64_t least,
                    std::uint64_t most) {
  if (value >= least && value <= most) return "";
  return std::to_string(value) + " " + what + " counted, expected " + std::to_string(least) +
         (least == most ? "" : " to " + std::to_string(most));
}

}  // namespace

void note_reply(Entity& entity, const Death& death, steady_clock::time_point sent,
                steady_clock::time_point ended) {
  ++entity.acknowledged;
  if (ended >= death.sent) ++entity.answered_after_kill;
  if (sent < death.confirmed) return;
  ++entity.sent_after_death;
}

std::string what_is_wrong(const Entity& entity, const Death& death, std::uint64_t value) {
  const std::uint64_t asks = value % kTellAmount, tells = value / kTellAmount;
  const bool restarted = !death.node.empty() && entity.owner == death.node;
  const std::uint64_t least = restarted ? entity.sent_after_death : entity.acknowledged;
  const std::uint64_t most =
      (restarted ? entity.answered_after_kill : entity.acknowledged) + entity.unknown;
  std::string wrong = outside("asks", asks, least, most);
  const std::string tells_wrong =
      outside("tells", tells, restarted ? 0 : entity.told_safely, entity.told);
  if (!wrong.empty() && !tells_wrong.empty()) wrong += "; ";
  return wrong + tells_wrong;
}

}  // namespace shardbus_demo
