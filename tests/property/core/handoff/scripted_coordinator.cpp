#include "scripted_coordinator.hpp"

#include <algorithm>

#include "base/overloaded.hpp"

namespace shardbus::handoff {

void ScriptedCoordinator::start(Kind kind, NodeKey from, NodeKey to, NodeKey prefer) {
  op_ = {kind, from, to, prefer, next_generation(), {}};
}

void ScriptedCoordinator::start_freeze(NodeKey to, Generation generation, NodeKey prefer) {
  undid_ = true;
  op_ = {Kind::freeze, prefer, to, prefer, generation, {}};
}

void ScriptedCoordinator::move(NodeKey to) {
  if (op_.kind != Kind::none || !alive(to) || entry_.owner == to) return;
  if (entry_.owner == kNoNode) return start(Kind::rehome, kNoNode, to, kNoNode);
  if (alive(entry_.owner)) start(Kind::handoff, entry_.owner, to, entry_.owner);
}

void ScriptedCoordinator::give_up() {
  if (op_.kind == Kind::handoff) start_freeze(op_.to, op_.generation, op_.from);
}

void ScriptedCoordinator::note_answer(const Answer& answer) {
  if (op_.kind == Kind::none || op_.generation != answer.generation || op_.to != answer.node)
    return;
  if (answer.kind == RegionAnswerKind::owned) {
    op_ = {};
    entry_ = {answer.node, answer.generation};
    return publish();
  }
  const NodeKey prefer = op_.prefer;
  op_ = {};
  if (!alive(prefer)) {
    entry_ = {kNoNode, answer.generation};
    return;
  }
  start(Kind::rehome, kNoNode, prefer, kNoNode);
  op_.frozen = answer.generation;
}

void ScriptedCoordinator::repair() {
  if (op_.kind == Kind::none) {
    if (entry_.owner != kNoNode && !alive(entry_.owner)) entry_.owner = kNoNode;
    return;
  }
  if (op_.kind == Kind::rehome) {
    if (alive(op_.to)) return;
    entry_ = {kNoNode, op_.generation};
    op_ = {};
    return;
  }
  const NodeKey keeper = op_.kind == Kind::handoff ? op_.from : op_.prefer;
  if (!alive(op_.to)) {
    const Generation generation = op_.generation;
    op_ = {};
    if (alive(keeper)) return start(Kind::rehome, kNoNode, keeper, kNoNode);
    entry_ = {kNoNode, generation};
  } else if (op_.kind == Kind::handoff && !alive(op_.from)) {
    start_freeze(op_.to, op_.generation, op_.from);
  }
}

void ScriptedCoordinator::take_over() {
  term_.value += 1;
  op_ = {};
  world_.answers().clear();
  Claim top{entry_.owner, RegionState::none, entry_.generation, {}};
  bool reported = false;
  Claim keeper;
  for (const auto& [key, node] : world_.nodes()) {
    if (!node.alive) {
      dead_.insert(key);
      continue;
    }
    seen_[key] = term_;
    world_.node(key).region.on_term(term_);
    const core::Region& region = node.region;
    const Claim claim{key, region.state(), region.generation(), region.other()};
    if (claim.state == RegionState::none) continue;
    const bool owner = claim.state == RegionState::owner;
    const bool keeps =
        owner ? claim.generation >= keeper.generation
              : claim.state == RegionState::sending && claim.generation > keeper.generation;
    if (keeps) keeper = claim;
    const bool better = claim.generation > top.generation ||
                        (claim.generation == top.generation &&
                         (!reported || (owner && top.state != RegionState::owner)));
    if (better) top = claim;
    reported = reported || better;
  }
  if (reported) return resolve(top, keeper.node);
  if (alive(entry_.owner)) entry_.owner = kNoNode;  // it reported, and not this shard
}

void ScriptedCoordinator::resolve(const Claim& top, NodeKey keeper) {
  const auto from_keeper = [&](NodeKey from) {
    if (from != kNoNode) return start(Kind::rehome, kNoNode, from, kNoNode);
    entry_ = {kNoNode, top.generation};
  };
  switch (top.state) {
    case RegionState::owner:
      entry_ = {top.node, top.generation};
      return;
    case RegionState::incoming:
      return start_freeze(top.node, top.generation, keeper);
    case RegionState::sending:
    case RegionState::forward:
      if (alive(top.other)) return start_freeze(top.other, top.generation, keeper);
      return from_keeper(keeper);
    case RegionState::frozen:
      from_keeper(keeper);
      if (keeper != kNoNode) op_.frozen = top.generation;
      return;
    case RegionState::none:
      return;
  }
}

void ScriptedCoordinator::tick() {
  while (!world_.answers().empty()) {
    const Answer answer = world_.answers().front();
    world_.answers().pop_front();
    note_answer(answer);
  }
  repair();
  switch (op_.kind) {
    case Kind::none:
      return;
    case Kind::handoff:
      send(op_.to, PrepareCommand{op_.generation, op_.from});
      return send(op_.from, BeginCommand{op_.generation, op_.to});
    case Kind::freeze:
      return send(op_.to, FreezeCommand{op_.generation, op_.prefer});
    case Kind::rehome:
      return send(op_.to, RehomeCommand{op_.generation, op_.frozen});
  }
}

void ScriptedCoordinator::publish() {
  for (const auto& [key, node] : world_.nodes()) {
    if (node.alive && entry_.owner != kNoNode) send(key, entry_);
  }
}

void ScriptedCoordinator::deliver(NodeKey to) {
  auto& queue = queues_[to];
  if (queue.empty()) return;
  const Sent sent = queue.front();
  queue.pop_front();
  if (!world_.node(to).alive) return;
  if (const auto* entry = std::get_if<TableEntry>(&sent.command)) return world_.table(to, *entry);
  if (sent.term < seen_[to]) return;  // rule 2
  seen_[to] = sent.term;
  world_.node(to).region.on_term(sent.term);
  std::visit(Overloaded{[&](const BeginCommand& c) { world_.begin(to, c.generation, c.next); },
                        [&](const PrepareCommand& c) { world_.prepare(to, c.generation, c.from); },
                        [&](const FreezeCommand& c) {
                          // Rule 21: the session of the old owner is closed.
                          if (c.from != kNoNode) world_.reset(c.from, to);
                          world_.freeze(to, c.generation);
                        },
                        [&](const RehomeCommand& c) { world_.rehome(to, c.generation, c.frozen); },
                        [](const TableEntry&) {}},
             sent.command);
}

void ScriptedCoordinator::drop(NodeKey to) {
  queues_[to].clear();
}

bool ScriptedCoordinator::idle() const {
  return op_.kind == Kind::none && alive(entry_.owner) && world_.answers().empty() &&
         std::all_of(queues_.begin(), queues_.end(),
                     [](const auto& q) { return q.second.empty(); });
}

}  // namespace shardbus::handoff
