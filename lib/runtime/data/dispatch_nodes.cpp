// What other nodes and the coordinator say: messages, fences, moves, deaths.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/overloaded.hpp"
#include "runtime/data/dispatch.hpp"
#include "runtime/data/front_door.hpp"
#include "runtime/data/hosts.hpp"
#include "runtime/data/links.hpp"
#include "runtime/data/peer_door.hpp"

namespace shardbus::runtime {
namespace {

constexpr Duration kDeparture = std::chrono::seconds(3);

}  // namespace

void Dispatch::on_node_message(NodeKey from, const wire::Message& message) {
  const wire::Correlation& port = message.correlation;
  if (message.type.starts_with('$')) return on_admin(message, port.node, port.slot);
  Type* type = find_type(message.type);
  if (type == nullptr) {
    return refuse(port.node, port.slot, Errc::stale_owner, "the type is not known on this node");
  }
  arrive(*type, shard_of(message.id, type->shard_count), from.value, message, deadline_of(message));
}

void Dispatch::on_node_envelope(NodeKey from, const wire::Envelope& envelope) {
  if (wire::is_stream(envelope.kind)) return on_stream_envelope(from, envelope);
  if (wire::is_control(envelope.kind)) {
    ControlMessage message;
    if (wire::decode(envelope, message) != Errc::ok) {
      context_.count(Count::malformed_frames);
      return;
    }
    // Commands for our regions too: the control loop judges the right of whoever commands.
    return context_.listener->on_control(from, std::move(message));
  }
  if (envelope.kind == wire::Kind::fence) {
    wire::Fence fence;
    if (wire::decode(envelope, fence) == Errc::ok) return on_fence(from, fence);
  } else if (envelope.kind == wire::Kind::fence_ok || envelope.kind == wire::Kind::path_lost) {
    wire::FenceOk answer;
    if (wire::decode(envelope, answer) == Errc::ok) return on_fence_ok(answer);
  } else if (envelope.kind == wire::Kind::moved) {
    wire::Moved moved;
    if (wire::decode(envelope, moved) == Errc::ok) return on_moved(moved);
  } else {
    context_.count(Count::unknown_kinds);
    return;
  }
  context_.count(Count::malformed_frames);
}

void Dispatch::on_fence(NodeKey from, const wire::Fence& fence) {
  Type* type = find_type(fence.shard.type);
  if (type == nullptr || fence.shard.shard.value >= type->shard_count) {
    wire::FenceOk answer{fence.shard,      fence.id,     fence.sender,
                         fence.generation, fence.target, false};
    if (from == context_.self()) return on_fence_ok(answer);
    (void)context_.links->send(from, answer);
    return;
  }
  core::Region::Outputs outputs;
  type->shards[fence.shard.shard.value].region.on_fence(
      {fence.id, fence.sender, fence.generation, fence.target,
       fence.reply.is_port() ? fence.reply.node : from},
      outputs);
  carry_out(*type, fence.shard.shard, outputs);
}

void Dispatch::on_fence_ok(const wire::FenceOk& answer) {
  Type* type = find_type(answer.shard.type);
  const ShardId id = answer.shard.shard;
  const bool known = type != nullptr && id.value < type->shard_count;
  if (answer.sender != context_.self().value) {
    if (known) on_client_fence_ok(type->shards[id.value], answer);
    return context_.front->on_fence_ok(answer);
  }
  if (!known) return;
  Shard& shard = type->shards[id.value];
  if (answer.id >= core::kOwnFenceIds) {
    core::Region::Outputs outputs;
    shard.region.on_own_fence(answer.id, outputs);
    return carry_out(*type, id, outputs);
  }
  const bool there = answer.node == context_.self() || context_.links->takes(answer.node);
  act(*type, id,
      answer.lost || gone_.contains(answer.node)
          ? shard.route.on_path_lost(answer.id)
          : shard.route.on_fence_ok(answer.id, answer.node, answer.generation, there));
}

void Dispatch::on_moved(const wire::Moved& moved) {
  const NodeKey owner = moved.entry.owner;
  if (gone_.contains(owner)) {
    if (auto lost = asks_.close(moved.slot)) {
      fail(std::move(*lost), Errc::unknown_outcome, "the owner's node is gone");
    }
    return;
  }
  if (Asks::Ask* ask = asks_.find(moved.slot)) ask->target = owner;
  if (!moved.entry.generation.known()) return;
  Type* type = find_type(moved.shard.type);
  if (type == nullptr || moved.shard.shard.value >= type->shard_count) return;
  act(*type, moved.shard.shard, type->shards[moved.shard.shard.value].route.on_entry(moved.entry));
}

void Dispatch::tell_moved(NodeKey asker, std::uint64_t slot, Type& type, ShardId id,
                          const TableEntry& entry) {
  const wire::Moved moved{{type.name, id}, entry, {}, slot};
  if (asker == context_.self()) return on_moved(moved);
  if (asker != kNoNode) (void)context_.links->send(asker, moved);
}

// --- links and deaths ---

void Dispatch::on_link_opened(NodeKey node) {
  for (const std::string& early : early_replies_.take(node)) {
    (void)context_.links->send(node, wire::own_envelope(early).reply);
  }
  for (Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      if (type.shards[i].route.via() == node) release(type, ShardId{i});
    }
  }
}

void Dispatch::on_link_broken(NodeKey node) {
  fail_sent(node, "the connection to the owner's node broke");
}

// What still waits for the link goes once it stands again: nothing has happened to it.
void Dispatch::fail_sent(NodeKey node, std::string_view why) {
  const std::vector<std::uint64_t> unsent = context_.links->unsent_asks(node);
  aim(unsent, kNoNode);
  fail_target(node, Errc::unknown_outcome, why);
  aim(unsent, node);
}

// Holds again what a link that is no more did not send, ahead of what has come since.
void Dispatch::put_back(const std::vector<std::string>& unsent) {
  std::map<Shard*, std::deque<HeldMessage>> ahead;
  std::vector<HeldMessage> refused;
  const Time until = context_.now + context_.config.held_wait;
  context_.rare.hit_if(!unsent.empty(), Mark::unsent_put_back);
  for (const std::string& envelope : unsent) {
    const wire::Message message = wire::own_envelope(envelope).message;
    Type* type = find_type(message.type);
    if (type == nullptr) continue;  // for the node itself
    HeldMessage held{envelope, 0, kNever, until, Errc::expired};
    if (message.kind == wire::Kind::ask) {
      Asks::Ask* ask = asks_.find(message.correlation.slot);
      if (ask == nullptr) continue;  // ended meanwhile
      ask->target = kNoNode;
      held = {envelope, message.correlation.slot, ask->deadline, std::min(until, ask->deadline),
              Errc::expired};
    }
    Shard& shard = type->shards[shard_of(message.id, type->shard_count).value];
    if (!take_room(held)) {
      held.ends_in = Errc::overloaded;
      refused.push_back(std::move(held));
    } else {
      ahead[&shard].push_back(std::move(held));
    }
  }
  for (auto& [shard, messages] : ahead) {
    std::move(shard->held.begin(), shard->held.end(), std::back_inserter(messages));
    shard->held = std::move(messages);
  }
  end(refused);
}

void Dispatch::on_way_lost(NodeKey node, const std::vector<std::string>& unsent) {
  put_back(unsent);
  fail_target(node, Errc::unknown_outcome, "the link to the owner's node was given up");
  for (Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      act(type, ShardId{i}, type.shards[i].route.on_way_lost(node));
    }
  }
}

void Dispatch::on_peer_session_replaced(NodeKey node) {
  fail_sent(node, "the owner's node greeted anew");
}

void Dispatch::resend_streams(NodeKey node) {
  core::Region::Outputs outputs;
  for (Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      type.shards[i].region.on_link_reset(node, outputs);
      if (!outputs.empty()) carry_out(type, ShardId{i}, outputs);
      outputs.clear();
    }
  }
}

void Dispatch::on_departing(NodeKey node) {
  if (context_.links->knows(node))
    departing_.try_emplace(node, Departure{context_.now + kDeparture});
}

bool Dispatch::quiet(NodeKey node) {
  if (asks_.any([node](const Asks::Ask& ask) { return ask.target == node; })) return false;
  for (const Type& type : types_) {
    for (const Shard& shard : type.shards) {
      // Without an owner no fence will be sent: what went that way goes before the goodbye.
      const bool fences = shard.route.used() && shard.route.owner() != kNoNode;
      if (shard.route.via() == node && fences) return false;
      // Others may not have heard that the shard left us, and may send through here.
      if (shard.region.passes_to(node) && shard.route.owner() != kNoNode) return false;
      if (shard.region.other() == node && shard.region.state() == RegionState::sending) {
        return false;
      }
    }
  }
  return true;
}

// What still comes here for a shard that we gave to the leaver goes past it from now on.
void Dispatch::go_past(NodeKey leaver) {
  core::Region::Outputs outputs;
  for (Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      Shard& shard = type.shards[i];
      const TableEntry owner{shard.route.owner(), shard.route.generation()};
      if (shard.region.other() != leaver || !context_.links->takes(owner.owner)) continue;
      shard.region.go_past(leaver, owner, outputs);
      if (!outputs.empty()) carry_out(type, ShardId{i}, outputs);
      outputs.clear();
    }
  }
}

void Dispatch::part_from_departed() {
  std::vector<NodeKey> overdue;
  for (auto& [node, departure] : departing_) {
    const bool late = context_.now >= departure.deadline;
    if (!departure.said) go_past(node);
    if (departure.said) {
      if (late) overdue.push_back(node);
    } else if (late || quiet(node)) {
      departure = {context_.now + kDeparture, true};
      context_.links->say_goodbye(node);
    }
  }
  context_.rare.hit_if(!overdue.empty(), Mark::goodbye_overdue);
  for (const NodeKey node : overdue) on_goodbye(node);
}

void Dispatch::on_goodbye(NodeKey node) {
  if (departing_.erase(node) > 0) on_gone(node, "the owner's node left the cluster");
}

void Dispatch::on_link_ready(NodeKey node) {
  for (Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      act(type, ShardId{i}, type.shards[i].route.on_link_reset(node));
    }
  }
}

// What an older coordinator ordered and did not happen yet must not happen under a newer one.
void Dispatch::note_term(Term term) {
  if (term <= highest_term_) return;
  highest_term_ = term;
  for (Type& type : types_) {
    for (Shard& shard : type.shards) shard.region.on_term(term);
  }
}

void Dispatch::on_gone(NodeKey node, std::string_view why) {
  departing_.erase(node);
  gone_.add(node);
  context_.peers->close(node);
  put_back(context_.links->close(node));
  fail_target(node, Errc::unknown_outcome, why);
  core::Region::Outputs outputs;
  for (Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      Shard& shard = type.shards[i];
      shard.region.on_dead(node, outputs);
      if (!outputs.empty()) carry_out(type, ShardId{i}, outputs);
      outputs.clear();
      act(type, ShardId{i}, shard.route.on_dead(node));
    }
  }
  context_.front->on_table();  // clients are told which nodes there are with it
}

// --- the coordinator ---

void Dispatch::on_table(const AllocationTable& table) {
  core::Region::Outputs outputs;
  table_ = table;  // first: what is decided below goes by it
  for (const TypeTable& rows : table_.types) {
    Type* known = add_type(rows.name, rows.shard_count);
    if (known != nullptr && known->shard_count != rows.shard_count) {
      take_count(*known, rows.shard_count);
    }
    if (known == nullptr || known->shard_count != rows.shard_count) {
      context_.listener->log(LogLevel::error, "allocation.config_mismatch",
                             "type=" + rows.name + " shard_count_here=" +
                                 std::to_string(known == nullptr ? 0 : known->shard_count) +
                                 " shard_count_of_cluster=" + std::to_string(rows.shard_count));
      continue;
    }
    Type& type = *known;
    for (std::uint32_t i = 0; i < rows.shard_count; ++i) {
      Shard& shard = type.shards[i];
      shard.region.on_table(rows.entries[i], outputs);
      if (!outputs.empty()) carry_out(type, ShardId{i}, outputs);
      outputs.clear();
      if (gone_.contains(rows.entries[i].owner)) continue;
      act(type, ShardId{i}, shard.route.on_entry(rows.entries[i], table.version.term));
    }
  }
  context_.front->on_table();
}

void Dispatch::on_region_command(NodeKey from, const ControlMessage& command) {
  if (const auto* request = std::get_if<ReportRequest>(&command)) {
    if (request->term < highest_term_) return context_.count(Count::stale_messages);
    note_term(request->term);
    coordinator_ = from;
    RegionReport answer = report(request->term, request->claimant);
    if (from == context_.self()) return context_.listener->on_control(from, std::move(answer));
    (void)context_.links->send_control(from, answer);
    return;
  }
  const auto run = [&](const ShardName& name, Generation generation, std::uint32_t shard_count,
                       auto&& apply) {
    // A FREEZE names the generation that it ends, which may be of an older term; it gives no right.
    const bool freezes = std::holds_alternative<FreezeShard>(command);
    if (!freezes && generation.term < highest_term_) {
      return context_.count(Count::stale_messages);
    }
    note_term(generation.term);
    coordinator_ = from;
    Type* type = shard_count > 0 ? add_type(name.type, shard_count) : find_type(name.type);
    if (type == nullptr || name.shard.value >= type->shard_count) return;
    core::Region::Outputs outputs;
    apply(type->shards[name.shard.value].region, outputs);
    carry_out(*type, name.shard, outputs);
  };
  std::visit(Overloaded{
                 [&](const BeginHandoff& c) {
                   run(c.shard, c.generation, 0,
                       [&](auto& region, auto& out) { region.begin(c.generation, c.next, out); });
                 },
                 [&](const PrepareHandoff& c) {
                   run(c.shard, c.generation, 0, [&](auto& region, auto& out) {
                     region.prepare(c.generation, c.from, out);
                     if (gone_.contains(c.from)) region.on_dead(c.from, out);
                   });
                 },
                 [&](const FreezeShard& c) {
                   run(c.shard, c.generation, 0,
                       [&](auto& region, auto& out) { region.freeze(c.generation, out); });
                 },
                 [&](const RehomeShard& c) {
                   run(c.shard, c.generation, c.shard_count, [&](auto& region, auto& out) {
                     region.rehome(c.generation, c.frozen, out);
                   });
                 },
                 [](const auto&) {},
             },
             command);
}

RegionReport Dispatch::report(Term term, NodeKey claimant) const {
  RegionReport answer{term, claimant, context_.self(), {}};
  for (const Type& type : types_) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      const core::Region& region = type.shards[i].region;
      const bool lost = region.state() == RegionState::none && region.lost_to() != kNoNode;
      if (region.state() == RegionState::none && !lost) continue;
      answer.shards.push_back({{type.name, ShardId{i}},
                               type.shard_count,
                               lost ? RegionState::forward : region.state(),
                               region.generation(),
                               lost ? region.lost_to() : region.other()});
    }
  }
  std::sort(answer.shards.begin(), answer.shards.end(),
            [](const auto& a, const auto& b) { return a.shard < b.shard; });
  return answer;
}

void Dispatch::forget_sender(std::uint64_t sender) {
  std::erase_if(in_our_name_, [sender](const auto& one) { return one.first.second == sender; });
  for (Type& type : types_) {
    for (Shard& shard : type.shards) shard.region.forget_sender(sender);
  }
}

}  // namespace shardbus::runtime
