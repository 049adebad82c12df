#include "runtime/control/control_plane.hpp"

#include <algorithm>

#include "base/model/table.hpp"
#include "core/placement/least_shards.hpp"
#include "core/placement/planners.hpp"

namespace shardbus::control {
namespace {

election::Config election_config(const ControlConfig& config) {
  election::Config out;
  out.self = config.self.key;
  out.lease = config.lease;
  out.seed = config.seed;
  out.quorum = downing::quorum_of(config.downing);
  out.break_repeat_lower_term = config.break_repeat_lower_term;
  return out;
}

downing::Config downing_config(const ControlConfig& config) {
  downing::Config out;
  out.self = config.self.key;
  out.rules = config.downing;
  out.stable_after = config.stable_after;
  return out;
}

coordinator::Config coordinator_config(const ControlConfig& config) {
  coordinator::Config out;
  out.self = config.self.key;
  out.handoff_timeout = config.handoff_timeout;
  out.cooldown = config.move_cooldown;
  out.planner = config.planner ? config.planner : Planner(placement::by_settings);
  out.fallback = placement::least_shards;
  out.break_answer_unchecked = config.break_answer_unchecked;
  return out;
}

}  // namespace

ControlPlane::ControlPlane(Time now, ControlConfig config)
    : config_(std::move(config)),
      self_(config_.self.key),
      random_(config_.seed),
      now_(now),
      detector_(config_.failure),
      membership_({self_, downing::quorum_of(config_.downing)}),
      election_(election_config(config_)),
      lease_({self_, config_.lease}),
      downing_(downing_config(config_)),
      coordinator_(coordinator_config(config_)),
      hosts_(config_.hosts),
      table_hash_(table_hash(table_)),
      published_at_(now - config_.digest_interval) {
  remember(config_.self);
  apply(detector_.step(now, failure::Tick{}));
  std::sort(hosts_.begin(), hosts_.end(),
            [](const HostedType& a, const HostedType& b) { return a.name < b.name; });
  if (!config_.bootstrap) return;
  cluster_id_ = 1 + random_.below(kMaxWireInteger);
  apply(membership_.step(now, membership::Create{config_.self}));
}

std::vector<ControlOutput> ControlPlane::take_outputs() {
  if (!stopped_) {
    settle();
    note_strict_waits();
    flush();
    leave_as_last();
  }
  // Connections first, the end last; within one kind the order in which they came up.
  std::stable_sort(outputs_.begin(), outputs_.end(),
                   [](const auto& a, const auto& b) { return a.index() < b.index(); });
  return std::exchange(outputs_, {});
}

Marks ControlPlane::marks() const {
  Marks all = rare_;
  for (const Marks* marks :
       {&detector_.marks(), &membership_.marks(), &election_.marks(), &coordinator_.marks()}) {
    all.add(*marks);
  }
  return all;
}

Time ControlPlane::next_deadline() const {
  if (stopped_) return kNever;
  Time next = std::min(detector_.next_deadline(), election_.next_deadline());
  next = std::min(next, coordinator_.next_deadline());
  if (const Time free = strict_free_at(); free > now_) next = std::min(next, free);
  if (takes_part(membership_.set(), self_)) next = std::min(next, downing_.next_deadline());
  const Duration wait = publish_pending_ ? config_.digest_gap : config_.digest_interval;
  next = std::min(next, published_at_ + wait);
  const bool asks = cluster_id_ == 0 && !contacts_.empty();
  if (asks) next = std::min(next, join_at_);
  return std::max(next, now_);
}

}  // namespace shardbus::control
