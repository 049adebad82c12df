#include "core/coordinator/coordinator.hpp"

#include <algorithm>
#include <utility>

#include "base/model/table.hpp"
#include "base/overloaded.hpp"

namespace shardbus::coordinator {
namespace {

constexpr std::size_t kMoveTimes = 64;

bool same_homes(const std::vector<Peer>& a, const std::vector<Peer>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Peer& x, const Peer& y) {
    return x.key == y.key && x.state == y.state && x.leaving == y.leaving && x.hosts == y.hosts;
  });
}

}  // namespace

std::vector<Output> Coordinator::step(Time now, const Input& input) {
  std::vector<Output> out;
  std::visit(Overloaded{[&](const Decide& i) { decide(i); }, [&](const Stop&) { stopped_ = true; },
                        [&](const View& i) { set_view(i); },
                        [&](const RegionReport& i) { note_report(i); },
                        [&](const RegionAnswer& i) { note_answer(now, i); },
                        [&](const Order& i) { out.emplace_back(order(now, i)); },
                        [&](const Tick&) { tick(now, out); }},
             input);
  return out;
}

// A gap in the same term loses nothing: nobody else can have decided in it, so ops go on.
void Coordinator::decide(const Decide& input) {
  stopped_ = false;
  dirty_ = true;
  if (mode_ != Mode::idle && term_ == input.term) {
    // The last words of the coordinator before us may come while reports are still missing.
    if (mode_ == Mode::collecting && table_.version < input.known.version) adopt(input.known);
    return;
  }
  term_ = input.term;
  changes_.clear();
  orders_changed_ = false;
  ordered_by_.clear();  // others may have decided meanwhile, and undone or repeated the orders
  pinned_by_.clear();
  resumed_by_.clear();
  start_collecting(input.known);
}

void Coordinator::set_view(const View& view) {
  const bool same = view.peers == peers_ && view.first_homes == first_homes_ &&
                    view.strict_homes == strict_homes_ && view.newer_table == newer_table_;
  if (same) return;
  if (!same_homes(peers_, view.peers)) {
    end_rests();
    end_levelling_orders();
  }
  peers_ = view.peers;
  first_homes_ = view.first_homes;
  strict_homes_ = view.strict_homes;
  newer_table_ = view.newer_table;
  dirty_ = true;
}

// When nodes come or go what was balanced is not so any more, and what has moved may move again:
// also what fled from a node that left or was drained, and is here again.
void Coordinator::end_rests() {
  for (auto& [name, type] : types_) {
    for (Shard& shard : type.shards) {
      if (!shard.rests_by_order) shard.rests_until = Time{};
    }
  }
}

void Coordinator::note_report(const RegionReport& report) {
  const bool mine = !stopped_ && report.term == term_ && report.claimant == config_.self;
  const bool lets_go = mine && contains(former_, report.node);
  if (lets_go) note_former(report);
  if (!mine || !erase(missing_, report.node)) {
    ignored_reports_ += lets_go ? 0 : 1;
    return;
  }
  rare_.hit_if(mode_ == Mode::active, Mark::report_late);
  dirty_ = true;
  for (const ReportedShard& line : report.shards) {
    Type* type = ensure_type(line.shard.type, line.shard_count);
    if (type == nullptr || line.shard.shard.value >= type->shards.size()) continue;
    type->shards[line.shard.shard.value].claims.push_back(
        Claim{report.node, line.state, line.generation, line.other});
  }
}

// Its report may have left before the table reached it: then it is asked again.
void Coordinator::note_former(const RegionReport& report) {
  dirty_ = true;
  std::vector<Shard*> kept;
  for (const ReportedShard& line : report.shards) {
    Shard* shard = line.state == RegionState::owner ? find(line.shard) : nullptr;
    if (shard != nullptr && shard->former == report.node) kept.push_back(shard);
  }
  for (auto& [name, type] : types_) {
    for (Shard& shard : type.shards) {
      if (shard.former == report.node) shard.former = kNoNode;
    }
  }
  for (Shard* shard : kept) shard->former = report.node;
  rare_.hit_if(!kept.empty(), Mark::former_still_owns);
  if (kept.empty()) erase(former_, report.node);
}

void Coordinator::note_answer(Time now, const RegionAnswer& answer) {
  Shard* shard = find(answer.shard);
  if (stopped_ || mode_ != Mode::active || shard == nullptr) {
    ++ignored_answers_;
    return;
  }
  const Op& op = shard->op;
  bool fits = op.kind != OpKind::none && op.generation == answer.generation && op.to == answer.node;
  // A node may own the shard under a newer right than the one it was asked about.
  if (answer.kind == RegionAnswerKind::owned && op.kind != OpKind::none && op.to == answer.node) {
    fits = answer.generation >= op.generation;
    rare_.hit_if(answer.generation > op.generation, Mark::owned_anew);
  }
  if (config_.break_answer_unchecked && answer.kind == RegionAnswerKind::owned) fits = true;
  if (!fits) {
    ++ignored_answers_;
    rare_.hit(Mark::answer_ignored);
    return;
  }
  dirty_ = true;
  shard->claims.clear();  // what was reported is older than this answer
  switch (answer.kind) {
    case RegionAnswerKind::owned:
      confirm(now, answer.shard, *shard, answer);
      return;
    case RegionAnswerKind::frozen: {
      // Undone: whoever kept the state goes on with it under a new generation.
      const NodeKey prefer = op.prefer;
      shard->op = Op{};
      rare_.hit(alive(prefer) ? Mark::undo_is_new_generation : Mark::frozen_without_keeper);
      if (alive(prefer)) {
        start(now, *shard, OpKind::rehome, kNoNode, prefer, kNoNode, Cause::undone).frozen =
            answer.generation;
      } else {
        set_entry(answer.shard, *shard, TableEntry{kNoNode, answer.generation}, Cause::undone);
        // Without a known keeper, whoever was not heard may be the owner.
        shard->held = prefer == kNoNode && somebody_is_missing();
      }
      return;
    }
  }
}

void Coordinator::confirm(Time now, const ShardName& name, Shard& shard,
                          const RegionAnswer& answer) {
  const Op op = std::exchange(shard.op, Op{});
  if (op.kind == OpKind::handoff) {
    shard.rests_until = now + config_.cooldown;
    shard.rests_by_order = op.cause == Cause::ordered || op.cause == Cause::pinned;
    move_times_.push_back(now - op.started);
    if (move_times_.size() > kMoveTimes) move_times_.pop_front();
  }
  set_entry(name, shard, TableEntry{answer.node, answer.generation}, op.cause, op.actor);
}

Duration Coordinator::usual_move() const {
  if (move_times_.empty()) return Duration::zero();
  std::vector<Duration> times(move_times_.begin(), move_times_.end());
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void Coordinator::set_entry(const ShardName& name, Shard& shard, const TableEntry& entry,
                            Cause cause, const std::string& actor) {
  shard.entry = entry;
  const auto count = static_cast<std::uint32_t>(types_.at(name.type).shards.size());
  const TableEntry* published = find_entry(table_, name);
  if (published != nullptr ? *published == entry : entry == TableEntry{}) return;
  changes_.push_back(TableChange{name, count, entry, cause, actor});
  shardbus::set_entry(table_, changes_.back());
}

void Coordinator::tick(Time now, std::vector<Output>& out) {
  if (stopped_) {
    deadline_ = kNever;
    return;
  }
  if (!dirty_ && now < deadline_) return;
  dirty_ = false;
  deadline_ = kNever;
  ask_reports(now, out);
  note_strict();
  if (mode_ == Mode::collecting) rebuild(now, out);
  if (mode_ == Mode::active) {
    resolve_pending(now);
    schedule(now, out);
    publish(out);
    ask_former(now, out);
  }
  for (Note& note : notes_) out.emplace_back(std::move(note));
  notes_.clear();
}

void Coordinator::publish(std::vector<Output>& out) {
  if (changes_.empty() && !new_version_ && !orders_changed_) return;
  new_version_ = false;
  TableDelta delta;
  delta.from = table_.version;
  table_.version = TableVersion{term_, config_.self, ++table_number_};
  delta.to = table_.version;
  delta.changes = std::move(changes_);
  changes_.clear();
  delta.new_orders = std::exchange(orders_changed_, false);
  if (delta.new_orders) delta.orders = table_.orders;
  out.emplace_back(Publish{std::move(delta)});
}

const Peer* Coordinator::find(NodeKey key) const {
  for (const Peer& peer : peers_) {
    if (peer.key == key) return &peer;
  }
  return nullptr;
}

bool Coordinator::alive(NodeKey key) const {
  const Peer* peer = find(key);
  return peer != nullptr && !peer->dead;
}

bool Coordinator::usable(NodeKey key) const {
  const Peer* peer = find(key);
  return peer != nullptr && !peer->dead && peer->reachable;
}

Coordinator::Shard* Coordinator::find(const ShardName& name) {
  const auto type = types_.find(name.type);
  if (type == types_.end() || name.shard.value >= type->second.shards.size()) return nullptr;
  return &type->second.shards[name.shard.value];
}

// nullptr where the type is known with another count: the first one stays.
Coordinator::Type* Coordinator::ensure_type(const std::string& name, std::uint32_t shard_count) {
  const auto [found, added] = types_.try_emplace(name);
  Type& type = found->second;
  if (added) type.shards.resize(shard_count);
  // A member that has not reported may own shards of a type that this node hears of only now.
  const bool unsure = mode_ == Mode::active && !missing_.empty();
  for (std::size_t i = 0; added && unsure && i < shard_count; ++i) type.shards[i].held = true;
  return type.shards.size() == shard_count ? &type : nullptr;
}

bool Coordinator::drained(NodeKey node) const {
  if (mode_ != Mode::active || contains(missing_, node)) return false;
  for (const auto& [name, type] : types_) {
    for (const Shard& shard : type.shards) {
      if (shard.entry.owner == node || shard.former == node) return false;
      if (shard.op.kind == OpKind::none) continue;
      if (shard.op.from == node || shard.op.to == node || shard.op.prefer == node) return false;
    }
  }
  return true;
}

std::vector<Handoff> Coordinator::handoffs() const {
  std::vector<Handoff> result;
  for (const auto& [name, type] : types_) {
    for (std::uint32_t i = 0; i < type.shards.size(); ++i) {
      if (type.shards[i].op.kind == OpKind::none) continue;
      result.push_back(Handoff{ShardName{name, ShardId{i}}, type.shards[i].op});
    }
  }
  return result;
}

}  // namespace shardbus::coordinator
