#include "support/handoff_world.hpp"

#include <algorithm>
#include <sstream>

#include "base/overloaded.hpp"

namespace shardbus::handoff {
namespace {

using core::Parked;

std::string encode(const std::map<std::uint64_t, std::uint64_t>& entity) {
  std::string text;
  for (const auto& [sender, number] : entity) {
    text += std::to_string(sender) + ":" + std::to_string(number) + " ";
  }
  return text;
}

std::map<std::uint64_t, std::uint64_t> decode(const std::string& text) {
  std::map<std::uint64_t, std::uint64_t> entity;
  std::istringstream in(text);
  char colon = 0;
  for (std::uint64_t sender = 0, number = 0; in >> sender >> colon >> number;) {
    entity[sender] = number;
  }
  return entity;
}

std::uint64_t number_of(const Parked& message) {
  return std::stoull(message.envelope);
}

std::string name_of(const Parked& message) {
  return "m" + std::to_string(message.sender) + "." + message.envelope;
}

std::string text_of(const core::PassingFence& fence) {
  const bool own = fence.id >= core::kOwnFenceIds;
  return (own ? "own fence " : "fence ") +
         std::to_string(own ? fence.id - core::kOwnFenceIds : fence.id) + " of " +
         std::to_string(fence.sender);
}

std::string text_of(const core::StreamItem& item) {
  return std::visit(
      Overloaded{[](const core::StreamHead& head) {
                   return "start marks=" + std::to_string(head.marks.size());
                 },
                 [](const core::SavedEntity& saved) { return "state " + saved.state; },
                 [](const Parked& message) { return name_of(message); },
                 [](const core::PassingFence& fence) { return text_of(fence); },
                 [](const core::StreamTail&) { return std::string("end"); }},
      item);
}

}  // namespace

std::string text_of(Generation generation) {
  return std::to_string(generation.term.value) + "/" + std::to_string(generation.counter);
}

std::string text_of(const Packet& packet) {
  return std::visit(
      Overloaded{[](const Parked& message) {
                   return name_of(message) + " g=" + text_of(message.generation);
                 },
                 [](const core::PassingFence& fence) { return text_of(fence); },
                 [](const FenceAnswer& answer) {
                   return (answer.lost ? "path_lost " : "fence_ok ") +
                          std::to_string(answer.id & (core::kOwnFenceIds - 1)) +
                          " node=" + std::to_string(answer.node.value) +
                          " g=" + text_of(answer.generation);
                 },
                 [](const core::SendItem& item) {
                   return "item " + std::to_string(item.index) + " " + text_of(item.item);
                 },
                 [](const StreamAck& ack) { return "ack g=" + text_of(ack.generation); }},
      packet);
}

World::World(std::uint64_t nodes, std::uint32_t parked_limit) {
  for (std::uint64_t i = 1; i <= nodes; ++i) {
    nodes_.try_emplace(NodeKey{i}, NodeKey{i}, parked_limit);
  }
}

void World::note(NodeKey at, const std::string& what) {
  trace_.push_back(std::to_string(at.value) + ": " + what);
}

void World::violate(const std::string& what) {
  trace_.push_back("VIOLATION " + what);
  if (violation_.empty()) violation_ = what;
}

// Guarantee 1.
void World::check_owners() {
  const auto owners = std::count_if(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    return entry.second.alive && entry.second.region.owns();
  });
  if (owners > 1) violate("two owners");
}

// --- senders ---

void World::send(NodeKey from) {
  Node& sender = node(from);
  if (!sender.alive) return;
  const std::uint64_t number = ++sender.sent;
  fates_[{from.value, number}] = {};
  if (!sender.held.empty() || !sender.route.may_send()) {
    note(from, "hold " + std::to_string(number));
    sender.held.push_back(number);
    return;
  }
  transmit(from, number);
}

void World::transmit(NodeKey from, std::uint64_t number) {
  Node& sender = node(from);
  Parked message{from.value, sender.route.generation(), std::to_string(number), kNever, {}, 0};
  sender.route.sent();
  const NodeKey via = sender.route.via();
  if (via == from) return arrive(from, std::move(message));
  put(from, via, std::move(message));
}

void World::act(NodeKey at, core::Route::Step step) {
  Node& sender = node(at);
  if (step.send_fence) send_fence(at);
  while (step.release && !sender.held.empty() && sender.route.may_send()) {
    const std::uint64_t number = sender.held.front();
    sender.held.pop_front();
    transmit(at, number);
  }
}

void World::send_fence(NodeKey at) {
  const core::Route& route = node(at).route;
  const core::PassingFence sent{route.fence_id(), at.value, route.generation(), route.owner(), at};
  if (route.via() == at) return fence(at, sent);
  put(at, route.via(), sent);
}

void World::timer(NodeKey at) {
  Node& sender = node(at);
  if (!sender.alive) return;
  if (sender.route.fence_id() != 0) send_fence(at);
  core::Region::Outputs outputs;
  sender.region.resend_own_fence(outputs);
  carry_out(at, outputs);
}

void World::sweep(NodeKey at, Duration since_begin) {
  core::Region::Outputs outputs;
  node(at).region.expire(Time{} + std::chrono::hours(1) + since_begin, outputs);
  carry_out(at, outputs);
}

void World::table(NodeKey at, const TableEntry& entry) {
  Node& target = node(at);
  if (!target.alive) return;
  core::Region::Outputs outputs;
  target.region.on_table(entry, outputs);
  carry_out(at, outputs);
  if (!target.dead.contains(entry.owner)) act(at, target.route.on_entry(entry));
}

void World::go_past(NodeKey at) {
  Node& target = node(at);
  const TableEntry owner{target.route.owner(), target.route.generation()};
  if (!target.alive || target.dead.contains(owner.owner)) return;
  core::Region::Outputs outputs;
  target.region.go_past(target.region.other(), owner, outputs);
  carry_out(at, outputs);
}

// --- links ---

void World::put(NodeKey from, NodeKey to, Packet packet) {
  note(from, "-> " + std::to_string(to.value) + " " + text_of(packet));
  const auto found = nodes_.find(to);
  if (found == nodes_.end() || !found->second.alive || node(from).dead.contains(to)) {
    return lose(packet);
  }
  links_[{from, to}].push_back(std::move(packet));
}

void World::deliver(NodeKey from, NodeKey to) {
  auto& queue = links_[{from, to}];
  if (queue.empty()) return;
  Packet packet = std::move(queue.front());
  queue.pop_front();
  if (!node(to).alive || node(to).dead.contains(from)) return lose(packet);  // rule 25
  note(to, "<- " + std::to_string(from.value) + " " + text_of(packet));
  take(from, to, std::move(packet));
  check_owners();
}

void World::take(NodeKey from, NodeKey to, Packet packet) {
  core::Region::Outputs outputs;
  core::Region& region = node(to).region;
  std::visit(Overloaded{[&](Parked& message) { arrive(to, std::move(message)); },
                        [&](core::PassingFence& passing) { fence(to, passing); },
                        [&](FenceAnswer& answer) { fence_answer(to, answer); },
                        [&](core::SendItem& item) {
                          region.on_item(from, item.generation, item.index, std::move(item.item),
                                         outputs);
                        },
                        [&](StreamAck& ack) { region.on_ack(from, ack.generation); }},
             packet);
  carry_out(to, outputs);
}

void World::reset(NodeKey from, NodeKey to) {
  note(from, "link to " + std::to_string(to.value) + " reset");
  for (const Packet& packet : std::exchange(links_[{from, to}], {})) lose(packet);
  Node& sender = node(from);
  if (!sender.alive) return;
  core::Region::Outputs outputs;
  sender.region.on_link_reset(to, outputs);
  carry_out(from, outputs);
  act(from, sender.route.on_link_reset(to));
  if (sender.region.state_text().find("own_fence->" + std::to_string(to.value)) !=
      std::string::npos) {
    outputs.clear();
    sender.region.resend_own_fence(outputs);
    carry_out(from, outputs);
  }
}

void World::lose(const Packet& packet) {
  if (const auto* message = std::get_if<Parked>(&packet)) return lose(*message);
  const auto* item = std::get_if<core::SendItem>(&packet);
  if (item == nullptr) return;
  if (const auto* message = std::get_if<Parked>(&item->item)) lose(*message);
}

void World::lose(const Parked& message) {
  fates_[{message.sender, number_of(message)}].maybe_lost = true;
}

// --- the shard ---

void World::arrive(NodeKey at, Parked message) {
  Node& target = node(at);
  core::Region::Outputs outputs;
  switch (target.region.arrive(message.sender, message.generation)) {
    case core::Region::Verdict::deliver:
      note(at, "deliver " + name_of(message));
      target.mailbox.push_back(std::move(message));
      return;
    case core::Region::Verdict::park:
      target.region.park(std::move(message), outputs);
      return carry_out(at, outputs);
    case core::Region::Verdict::overflow:
      return fail(at, message, Errc::overloaded);
    case core::Region::Verdict::stale:
    case core::Region::Verdict::not_here:
      return fail(at, message, Errc::stale_owner);
  }
}

void World::fence(NodeKey at, const core::PassingFence& passing) {
  core::Region::Outputs outputs;
  node(at).region.on_fence(passing, outputs);
  carry_out(at, outputs);
}

void World::fence_answer(NodeKey at, const FenceAnswer& answer) {
  Node& target = node(at);
  if (answer.id >= core::kOwnFenceIds) {
    core::Region::Outputs outputs;
    target.region.on_own_fence(answer.id, outputs);
    return carry_out(at, outputs);
  }
  const bool lost = answer.lost || target.dead.contains(answer.node);
  act(at, lost ? target.route.on_path_lost(answer.id)
               : target.route.on_fence_ok(answer.id, answer.node, answer.generation));
}

void World::handle(NodeKey at) {
  Node& target = node(at);
  if (!target.alive || target.stopping || target.mailbox.empty()) return;
  if (!target.region.owns()) return violate("a handler would start without ownership");
  const Parked message = std::move(target.mailbox.front());
  target.mailbox.pop_front();
  const std::uint64_t number = number_of(message);
  note(at, "handle " + name_of(message));
  Fate& fate = fates_[{message.sender, number}];
  if (std::exchange(fate.handled, true)) violate("handled twice: " + name_of(message));
  if (fate.failed == Errc::stale_owner) violate("not delivered, and handled: " + name_of(message));
  std::uint64_t& last = last_handled_[message.sender];
  if (number < last) violate("out of order: " + name_of(message));
  if (!deaths_ && target.entity[message.sender] != last) violate("state lost");
  last = std::max(last, number);
  target.entity[message.sender] = number;
}

void World::finish_stop(NodeKey at) {
  Node& target = node(at);
  if (!target.alive || !std::exchange(target.stopping, false)) return;
  std::vector<core::SavedEntity> states;
  if (!target.entity.empty()) states.push_back({"e", encode(target.entity)});
  std::vector<Parked> unstarted(std::make_move_iterator(target.mailbox.begin()),
                                std::make_move_iterator(target.mailbox.end()));
  target.mailbox.clear();
  target.entity.clear();
  core::Region::Outputs outputs;
  target.region.on_stopped(std::move(states), std::move(unstarted), outputs);
  carry_out(at, outputs);
  check_owners();
}

void World::fail(NodeKey at, const Parked& message, Errc code) {
  note(at, "fail " + name_of(message) + " " + std::string(error_info(code).name));
  Fate& fate = fates_[{message.sender, number_of(message)}];
  if (code == Errc::stale_owner && fate.handled) {
    violate("handled, and not delivered: " + name_of(message));
  }
  if (fate.failed == Errc::ok || code == Errc::stale_owner) fate.failed = code;
}

void World::carry_out(NodeKey at, core::Region::Outputs& outputs) {
  Node& target = node(at);
  for (core::RegionOutput& output : outputs) {
    std::visit(
        Overloaded{
            [&](core::StopEntities&) {
              note(at, "stop entities");
              target.stopping = true;
            },
            [&](core::SendItem& o) { put(at, o.next, o); },
            [&](core::AckStream& o) { put(at, o.to, StreamAck{o.generation}); },
            [&](core::AnswerCoordinator& o) {
              note(at, std::string("answer ") +
                           (o.kind == RegionAnswerKind::owned ? "owned" : "frozen") +
                           " g=" + text_of(o.generation));
              answers_.push_back({at, o.kind, o.generation});
            },
            [&](core::AnswerFence& o) {
              const FenceAnswer answer{o.fence.sender, o.fence.id, o.node, o.generation, o.lost};
              o.fence.origin == at ? fence_answer(at, answer) : put(at, o.fence.origin, answer);
            },
            [&](core::SendOwnFence& o) { put(at, o.via, o.fence); },
            [&](core::PassFence& o) { put(at, o.to, o.fence); },
            [&](core::RestoreEntity& o) {
              note(at, "restore " + o.entity.state);
              target.entity = decode(o.entity.state);
            },
            [&](core::DeliverParked& o) {
              note(at, "deliver " + name_of(o.message));
              target.mailbox.push_back(std::move(o.message));
            },
            [&](core::FailParked& o) { fail(at, o.message, o.code); },
            [&](core::DropEntities&) {
              note(at, "drop entities");
              for (const Parked& m : target.mailbox) fail(at, m, Errc::stale_owner);
              target.mailbox.clear();
              target.entity.clear();
              target.stopping = false;
            }},
        output);
  }
}

// --- commands and deaths ---

void World::begin(NodeKey at, Generation generation, NodeKey next) {
  core::Region::Outputs outputs;
  node(at).region.begin(generation, next, outputs);
  carry_out(at, outputs);
}

void World::prepare(NodeKey at, Generation generation, NodeKey from) {
  core::Region::Outputs outputs;
  node(at).region.prepare(generation, from, outputs);
  if (node(at).dead.contains(from)) node(at).region.on_dead(from, outputs);
  carry_out(at, outputs);
}

void World::freeze(NodeKey at, Generation generation) {
  core::Region::Outputs outputs;
  node(at).region.freeze(generation, outputs);
  carry_out(at, outputs);
}

void World::rehome(NodeKey at, Generation generation, Generation frozen) {
  core::Region::Outputs outputs;
  node(at).region.rehome(generation, frozen, outputs);
  carry_out(at, outputs);
  check_owners();
}

void World::kill(NodeKey key) {
  Node& victim = node(key);
  victim.alive = false;
  deaths_ = true;
  note(key, "dies");
  // What it had, or was about to send, may or may not have had its effect elsewhere.
  for (auto& [id, fate] : fates_) {
    if (!fate.handled && fate.failed == Errc::ok) fate.maybe_lost = true;
  }
  for (auto& [ends, queue] : links_) {
    if (ends.second == key) queue.clear();
  }
}

void World::note_death(NodeKey at, NodeKey dead) {
  Node& target = node(at);
  if (!target.alive || node(dead).alive || !target.dead.insert(dead).second) return;
  note(at, "hears of the death of " + std::to_string(dead.value));
  core::Region::Outputs outputs;
  target.region.on_dead(dead, outputs);
  carry_out(at, outputs);
  act(at, target.route.on_dead(dead));
}

bool World::quiet() const {
  for (const auto& [ends, queue] : links_) {
    if (!queue.empty()) return false;
  }
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    const Node& node = entry.second;
    return !node.alive || (node.held.empty() && node.mailbox.empty() && !node.stopping &&
                           node.region.parked() == 0);
  });
}

}  // namespace shardbus::handoff
