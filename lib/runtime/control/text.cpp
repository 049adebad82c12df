// One stable line for every output of the control plane.
#include <array>

#include "base/model/text.hpp"
#include "runtime/control/control_plane.hpp"

namespace shardbus::control {
namespace {

std::string text(const ConnectNode& o) {
  return "connect " + shardbus::to_text(o.node.key);
}
std::string text(const DisconnectNode& o) {
  static constexpr std::array<const char*, 3> kHow{" stranger", " left", " dead"};
  return "disconnect " + shardbus::to_text(o.node) + kHow.at(static_cast<std::size_t>(o.how));
}
std::string text(const TellRegion& o) {
  return "region " + shardbus::to_text(o.message);
}
std::string text(const SendControl& o) {
  return "send " + shardbus::to_text(o.to) + " " + shardbus::to_text(o.message);
}
std::string text(const PublishDelta& o) {
  return "publish_delta " + shardbus::to_text(o.delta);
}
std::string text(const PublishDigest& o) {
  return "publish " + shardbus::to_text(o.digest);
}
std::string text(const TableChanged& o) {
  return "table " + shardbus::to_text(o.table);
}
std::string text(const Event& o) {
  static constexpr std::array kNames = {"debug", "info", "warn", "error"};
  return std::string("event ") + kNames.at(static_cast<std::size_t>(o.severity)) + " " + o.name +
         " " + o.text;
}
std::string text(const LeaveDone& /*o*/) {
  return "leave_done";
}
std::string text(const DownSelf& o) {
  return "down_self " + o.reason;
}

}  // namespace

std::string to_text(const ControlOutput& output) {
  return std::visit([](const auto& o) { return text(o); }, output);
}

}  // namespace shardbus::control
