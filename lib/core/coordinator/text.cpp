// One stable line for every output and for the state.
#include "base/model/text.hpp"

#include <array>

#include "core/coordinator/coordinator.hpp"

namespace shardbus::coordinator {

std::string to_text(const Output& output) {
  if (const auto* command = std::get_if<Command>(&output)) {
    const ControlMessage message =
        std::visit([](const auto& m) { return ControlMessage(m); }, command->command);
    return "command " + shardbus::to_text(command->to) + " " + shardbus::to_text(message);
  }
  if (const auto* ask = std::get_if<AskReport>(&output)) {
    return "ask " + shardbus::to_text(ask->to) + " " +
           shardbus::to_text(ControlMessage(ask->request));
  }
  if (const auto* publish = std::get_if<Publish>(&output)) {
    return "publish " + shardbus::to_text(publish->delta);
  }
  if (const auto* ordered = std::get_if<Ordered>(&output)) {
    return std::string("ordered ") + std::string(error_info(ordered->code).name) + " " +
           ordered->text;
  }
  const auto& note = std::get<Note>(output);
  return "note " + note.name + " " + note.text;
}

std::string to_text(const Order& order) {
  static constexpr std::array kNames = {"cordon", "drain", "uncordon", "suspend", "resume",
                                        "move",   "pin",   "unpin",    "apply",   "confirm"};
  std::string out = kNames.at(static_cast<std::size_t>(order.kind));
  if (!order.shard.type.empty()) out += " " + shardbus::to_text(order.shard);
  if (!order.node.empty()) out += " " + order.node;
  if (!order.plan.empty()) out += " " + order.plan;
  return out;
}

std::string Coordinator::state_text() const {
  static constexpr std::array kModes = {"idle", "collecting", "active"};
  static constexpr std::array kOps = {"none", "rehome", "handoff", "freeze"};
  std::string out = std::string("coordinator ") + kModes.at(static_cast<std::size_t>(mode_)) +
                    (stopped_ ? " stopped" : "") + " term " + std::to_string(term_.value) +
                    " missing " + shardbus::to_text(missing_) + " table " +
                    shardbus::to_text(table_);
  for (const Handoff& handoff : handoffs()) {
    out += std::string(" ") + kOps.at(static_cast<std::size_t>(handoff.op.kind)) + " " +
           shardbus::to_text(handoff.shard) + " to " + shardbus::to_text(handoff.op.to) + " " +
           shardbus::to_text(handoff.op.generation);
  }
  return out + " ignored_answers=" + std::to_string(ignored_answers_) +
         " ignored_reports=" + std::to_string(ignored_reports_);
}

}  // namespace shardbus::coordinator
