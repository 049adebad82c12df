#include "ctl/coordinator.hpp"

#include <thread>
#include <utility>

namespace shardbusctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr milliseconds kBetweenLooks{25};

std::string coordinator_of(const Json& members) {
  for (const Json& one : members) {
    if (one.value("coordinator", false)) return one.value("name", "");
  }
  return "";
}

// Whether another coordinator may answer in a moment. What it refuses is refused for good.
bool may_pass(Session& session, const std::string& name, shardbus::Errc code) {
  using shardbus::Errc;
  if (code == Errc::not_ready || code == Errc::unreachable) return true;
  return code == Errc::no_such_node &&
         coordinator_of(session.ask_node("", "members", nullptr)) != name;
}

[[noreturn]] void refuse(const shardbus::Status& status) {
  if (status.code() != shardbus::Errc::invalid_argument) fail(status);
  throw Failure{Exit::failed, status.text(), status};
}

}  // namespace

Json ask_coordinator(Session& session, std::string_view method, const Json& arguments) {
  const auto payload = json_to_msgpack(arguments.dump());
  if (!payload) fail(payload.error());
  const auto deadline = Clock::now() + session.globals().timeout;
  shardbus::Status last(shardbus::Errc::not_ready, "the cluster has no coordinator");
  while (Clock::now() < deadline) {
    const Json members = session.ask_node("", "members", nullptr);
    // It says itself what it waits for.
    if (members.empty()) return session.ask_node("", method, arguments);
    const std::string name = coordinator_of(members);
    if (!name.empty()) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
      auto answer = session.try_ask({kNodeType, name, method, *payload}, left);
      if (answer) return std::move(*answer);
      last = answer.error();
      if (!may_pass(session, name, last.code())) break;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  refuse(last);
}

std::function<std::string()> progress_of(const Globals& globals,
                                         std::function<std::string()> progress) {
  return shows_progress(globals) ? std::move(progress) : std::function<std::string()>();
}

bool wait_until(milliseconds patience, const std::function<bool()>& done,
                const std::function<std::string()>& progress) {
  constexpr milliseconds kBetweenLines{2000};
  const auto deadline = Clock::now() + patience;
  auto next_line = Clock::now() + kBetweenLines;
  while (!done()) {
    if (Clock::now() >= deadline) return false;
    if (progress && Clock::now() >= next_line) {
      next_line += kBetweenLines;
      print_progress(progress());
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace shardbusctl
