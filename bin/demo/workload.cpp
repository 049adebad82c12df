#include "demo/workload.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace shardbus_demo {
namespace {

using shardbus::ReplyView;

struct Add {
  std::uint64_t amount = 0;
  MSGPACK_DEFINE_MAP(amount)
};

void note(Ending& ending, steady_clock::duration took) {
  ++ending.count;
  ending.slowest = std::max(ending.slowest, took);
}

}  // namespace

struct Workload::Plan {
  std::uint32_t slot = 0;
  std::size_t entity = 0;
  bool tell_first = false;
  std::shared_ptr<shardbus::Messenger> via;
};

Workload::Workload(const Ways& ways, std::vector<Entity>& entities, std::uint32_t window)
    : entities_(entities) {
  for (const auto& [name, via] : ways) {
    Lane& lane = lanes_.emplace_back();
    lane.via = via;
    lane.slots.resize(window);
    lane.report.name = name;
  }
}

Report Workload::run(steady_clock::duration length, steady_clock::duration patience,
                     const std::function<void(std::uint64_t)>& tick) {
  constexpr std::chrono::milliseconds kTick{100};
  const auto begin = steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    report_ = {};
    stopping_ = false;
    ended_ = 0;
    last_reply_ = begin;
    for (Lane& lane : lanes_) {
      lane.report = LaneReport{std::move(lane.report.name)};
      lane.free.clear();
      for (std::uint32_t i = 0; i < lane.slots.size(); ++i) lane.free.push_back(i);
    }
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) refill(i);
  std::unique_lock lock(mutex_);
  while (!load_may_stop(steady_clock::now(), begin + length, begin + length + patience)) {
    changed_.wait_for(lock, kTick);
    const std::uint64_t ended = ended_;
    lock.unlock();
    tick(ended);
    lock.lock();
  }
  stopping_ = true;
  report_.never_answered = death_.node.empty() ? 0 : unanswered_;
  changed_.wait(lock, [this] { return in_flight_ == 0; });
  report_.wall = steady_clock::now() - begin;
  for (Lane& lane : lanes_) report_.lanes.push_back(lane.report);
  return std::exchange(report_, {});
}

bool Workload::load_may_stop(steady_clock::time_point now, steady_clock::time_point until,
                             steady_clock::time_point patience) const {
  const bool recovered = death_.node.empty() || unanswered_ == 0;
  return now >= patience || (now >= until && recovered);
}

void Workload::will_die(std::string node, std::size_t lane) {
  const std::lock_guard lock(mutex_);
  death_.node = std::move(node);
  death_.lane = lane;
}

void Workload::kill_is_sent() {
  const std::lock_guard lock(mutex_);
  death_.sent = steady_clock::now();
  unanswered_ = entities_.size();
}

void Workload::death_is_confirmed(std::shared_ptr<shardbus::Messenger> other_way) {
  std::size_t lane = 0;
  {
    const std::lock_guard lock(mutex_);
    lane = death_.lane;
    lanes_[lane].via = std::move(other_way);
    death_.confirmed = steady_clock::now();
  }
  refill(lane);
}

bool Workload::waits_for_a_way(const Lane& lane) const {
  return death_.lane < lanes_.size() && &lane == &lanes_[death_.lane] &&
         death_.sent != steady_clock::time_point::max() &&
         death_.confirmed == steady_clock::time_point::max();
}

// Tells and asks of a lane, until its window is full. A callback may come inside of ask(), and then
// only gives its slot back: see `refilling`.
void Workload::refill(std::size_t index) {
  Lane& lane = lanes_[index];
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(lane.refilling, true)) return;
  }
  Plan next;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (!plan(lane, next)) {
        lane.refilling = false;
        return;
      }
    }
    send(index, next);
  }
}

bool Workload::plan(Lane& lane, Plan& plan) {
  if (stopping_ || lane.free.empty() || waits_for_a_way(lane)) return false;
  plan.slot = lane.free.back();
  lane.free.pop_back();
  plan.entity = next_entity();
  plan.tell_first = random_ % 8 == 0;
  plan.via = lane.via;
  lane.slots[plan.slot] = {plan.entity, steady_clock::now()};
  ++lane.report.asks;
  ++in_flight_;
  return true;
}

std::size_t Workload::next_entity() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  // After a death, those first that have not shown yet that they live.
  if (death_.confirmed != steady_clock::time_point::max()) {
    for (std::size_t tries = 0; unanswered_ > 0 && tries < entities_.size(); ++tries) {
      const std::size_t index = next_unanswered_++ % entities_.size();
      if (entities_[index].answered_again || entities_[index].wanted) continue;
      entities_[index].wanted = true;
      return index;
    }
  }
  return static_cast<std::size_t>((random_ >> 32) * entities_.size() >> 32);
}

void Workload::send(std::size_t index, const Plan& plan) {
  Lane& lane = lanes_[index];
  Entity& entity = entities_[plan.entity];
  const shardbus::EntityRef to(plan.via, entity.kind->type, entity.id);
  if (plan.tell_first) {
    const bool told = to.tell(entity.kind->add, Add{kTellAmount}).ok();
    const std::lock_guard lock(mutex_);
    ++(told ? lane.report.tells : lane.report.refused_tells);
    if (told) ++entity.told;
    if (told && index != death_.lane) ++entity.told_safely;
  }
  lane.via->ask(
      {entity.kind->type, entity.id, entity.kind->add, shardbus::pack(Add{1})}, kAskTimeout,
      [this, index, slot = plan.slot](const ReplyView& reply) { end(index, slot, reply); });
}

void Workload::end(std::size_t index, std::uint32_t slot, const ReplyView& reply) {
  Lane& lane = lanes_[index];
  {
    const std::lock_guard lock(mutex_);
    const auto now = steady_clock::now();
    const Slot& ended = lane.slots[slot];
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(now - ended.sent);
    lane.report.latency_us.add(static_cast<std::uint64_t>(took.count()));
    ++(reply.ok() ? lane.report.replies : lane.report.errors);
    note_end(ended, reply, now);
    lane.free.push_back(slot);
    ++ended_;
    --in_flight_;
    // Under the lock: when run() sees zero, this object may be gone.
    if (in_flight_ == 0 || unanswered_ == 0) changed_.notify_all();
    if (stopping_) return;
  }
  refill(index);
}

void Workload::note_end(const Slot& slot, const ReplyView& reply, steady_clock::time_point now) {
  Entity& entity = entities_[slot.entity];
  const bool after_death = slot.sent >= death_.confirmed;
  if (after_death) entity.wanted = false;
  if (reply.ok()) {
    report_.longest_silence = std::max(report_.longest_silence, now - last_reply_);
    last_reply_ = now;
    note_reply(entity, death_, slot.sent, now);
    if (after_death && !std::exchange(entity.answered_again, true)) {
      --unanswered_;
      report_.all_answered = now - death_.sent;
      const bool first = report_.first_answered == steady_clock::duration::zero();
      if (first && entity.owner == death_.node) report_.first_answered = now - death_.sent;
    }
  } else if (shardbus::error_info(reply.error).may_have_happened) {
    ++entity.unknown;
  }
  if (now < death_.sent) return;
  const std::string name = reply.ok() ? "reply" : std::string(error_info(reply.error).name);
  if (slot.sent < death_.sent) {
    note(report_.in_flight[name], now - death_.sent);
  } else if (!reply.ok()) {
    note(report_.later[name], now - slot.sent);
  }
}

}  // namespace shardbus_demo
