#include "runtime/node/admin_orders.hpp"

#include <algorithm>
#include <array>

#include "base/model/text.hpp"
#include "runtime/node/admin_writer.hpp"
#include "shardbus/codec.hpp"
#include "wire/fields.hpp"
#include "wire/limits.hpp"
#include "wire/text.hpp"

namespace shardbus::runtime {
namespace {

using coordinator::OrderKind;

constexpr std::size_t kActorBytesMax = 64;
constexpr std::uint64_t kHistoryLimit = 1000;  // fits a frame

struct OrderArguments {
  std::string order;
  std::string node;
  std::string type;
  std::uint32_t shard = 0;
  std::string plan;
  std::string actor;
  MSGPACK_DEFINE_MAP(order, node, type, shard, plan, actor)
};
struct HistoryArguments {
  std::optional<std::string> type;
  std::optional<std::uint32_t> shard;
  std::uint64_t limit = 0;
  MSGPACK_DEFINE_MAP(type, shard, limit)
};

struct OrderName {
  const char* name;
  OrderKind kind;
};
constexpr std::array<OrderName, 10> kOrders = {{{"cordon", OrderKind::cordon},
                                                {"drain", OrderKind::drain},
                                                {"uncordon", OrderKind::uncordon},
                                                {"suspend", OrderKind::suspend},
                                                {"resume", OrderKind::resume},
                                                {"move", OrderKind::move},
                                                {"pin", OrderKind::pin},
                                                {"unpin", OrderKind::unpin},
                                                {"apply", OrderKind::apply},
                                                {"confirm", OrderKind::confirm}}};

bool names_node(OrderKind kind) {
  return kind == OrderKind::cordon || kind == OrderKind::drain || kind == OrderKind::uncordon ||
         kind == OrderKind::move || kind == OrderKind::pin;
}

// The table carries these texts to all nodes, and whoever cannot read one of them takes no table.
Status check_texts(OrderKind kind, const OrderArguments& given) {
  std::string scratch;
  if (names_node(kind) &&
      (given.node.size() > wire::kNodeNameBytesMax || !wire::is_node_name(given.node))) {
    return {Errc::invalid_argument,
            "'" + std::string(wire::clean_text(given.node.substr(0, 80), scratch)) +
                "' is no name of a node: 1 to 64 letters, digits and ._:-"};
  }
  if (given.actor.size() > kActorBytesMax || !wire::valid_utf8(given.actor)) {
    return {Errc::invalid_argument, "actor is " + std::to_string(given.actor.size()) +
                                        " bytes long; allowed: up to 64 of UTF-8"};
  }
  return {};
}

class OrderAnswers {
 public:
  OrderAnswers(Time now, control::ControlPlane& plane) : now_(now), plane_(plane) {}

  Result<std::string> order(const std::string& payload);
  Result<std::string> plan();
  Result<std::string> moves();
  Result<std::string> history(const std::string& payload);

 private:
  [[nodiscard]] std::string done() const { return std::string(out_.result()); }
  void node(NodeKey key) {
    if (key == kNoNode) return out_.nil();
    out_.value(std::string_view(plane_.name_of(key)));
  }
  void node(std::string_view name, NodeKey key) {
    out_.value(name);
    node(key);
  }
  void names(std::string_view name, const std::vector<std::string>& values);
  void generation(const Generation& generation);
  void shard(const ShardName& shard) {
    out_.entry("type", shard.type);
    out_.entry("shard", shard.shard.value);
  }
  [[nodiscard]] std::uint64_t ms_since(Time then) const {
    const auto past = std::chrono::duration_cast<milliseconds>(now_ - then).count();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(past, 0));
  }
  void open_moves();

  Time now_;
  control::ControlPlane& plane_;
  AdminWriter out_;
};

Result<std::string> OrderAnswers::order(const std::string& payload) {
  auto given = unpack<OrderArguments>(payload);
  if (!given) return given.error();
  const auto known = std::find_if(kOrders.begin(), kOrders.end(),
                                  [&](const OrderName& one) { return given->order == one.name; });
  if (known == kOrders.end()) {
    return Status(Errc::invalid_argument, "'" + given->order + "' is no order");
  }
  if (Status wrong = check_texts(known->kind, *given); !wrong) return wrong;
  const coordinator::Ordered answer = plane_.order(
      now_,
      {known->kind, given->node, {given->type, ShardId{given->shard}}, given->plan, given->actor});
  if (answer.code != Errc::ok) return Status(answer.code, answer.text);
  out_.map(1);
  out_.entry("moves", answer.text.empty() ? std::uint64_t{0} : std::stoull(answer.text));
  return done();
}

Result<std::string> OrderAnswers::plan() {
  if (plane_.authority() == Authority::none) {
    return Status(Errc::not_ready, "this node does not decide; ask the coordinator");
  }
  const coordinator::Plan plan = plane_.plan(now_);
  out_.map(4);
  out_.entry("plan", plan.id);
  out_.entry("frozen", plan.frozen);
  const Duration usual = plane_.usual_move();
  out_.value(std::string_view("move_ms"));
  if (usual == Duration::zero()) {
    out_.nil();
  } else {
    out_.value(std::chrono::duration<double, std::milli>(usual).count());
  }
  out_.value(std::string_view("moves"));
  out_.array(plan.moves.size());
  for (const coordinator::PlannedMove& move : plan.moves) {
    out_.map(5);
    shard(move.shard);
    node("from", move.from);
    node("to", move.to);
    out_.entry("why", to_text(move.cause));
  }
  return done();
}

void OrderAnswers::names(std::string_view name, const std::vector<std::string>& values) {
  out_.value(name);
  out_.value(values);
}

void OrderAnswers::open_moves() {
  static constexpr std::array<const char*, 4> kKinds{"none", "home", "move", "undo"};
  const std::vector<coordinator::Handoff> open = plane_.status().handoffs;
  out_.value(std::string_view("open"));
  out_.array(open.size());
  for (const coordinator::Handoff& handoff : open) {
    out_.map(8);
    shard(handoff.shard);
    out_.entry("kind", kKinds.at(static_cast<std::size_t>(handoff.op.kind)));
    node("from", handoff.op.from);
    node("to", handoff.op.to);
    out_.entry("for_ms", ms_since(handoff.op.started));
    out_.entry("why", to_text(handoff.op.cause));
    out_.entry("actor", handoff.op.actor);
  }
}

// What operators ordered, and what is under way; that the coordinator alone knows.
Result<std::string> OrderAnswers::moves() {
  const Orders& orders = plane_.table().orders;
  out_.map(7);
  names("cordoned", orders.cordoned);
  names("draining", orders.draining);
  out_.entry("suspended", orders.suspended);
  out_.value(std::string_view("pins"));
  out_.array(orders.pins.size());
  for (const Pin& pin : orders.pins) {
    out_.map(3);
    shard(pin.shard);
    out_.entry("node", pin.node);
  }
  out_.entry("waiting", plane_.status().waiting_moves);
  out_.entry("decides", plane_.authority() != Authority::none);
  open_moves();
  return done();
}

void OrderAnswers::generation(const Generation& generation) {
  out_.array(3);
  out_.value(generation.term.value);
  node(generation.claimant);
  out_.value(generation.counter);
}

Result<std::string> OrderAnswers::history(const std::string& payload) {
  const auto given = unpack<HistoryArguments>(payload);
  if (!given) return given.error();
  const std::uint64_t limit =
      given->limit == 0 ? kHistoryLimit : std::min(given->limit, kHistoryLimit);
  std::vector<const control::Change*> found;
  const std::deque<control::Change>& all = plane_.history();
  for (auto change = all.rbegin(); change != all.rend() && found.size() < limit; ++change) {
    const bool fits = (!given->type || *given->type == change->shard.type) &&
                      (!given->shard || *given->shard == change->shard.shard.value);
    if (fits) found.push_back(&*change);
  }
  out_.array(found.size());
  for (auto change = found.rbegin(); change != found.rend(); ++change) {
    const control::Change& one = **change;
    out_.map(8);
    out_.entry("ago_ms", ms_since(one.at));
    shard(one.shard);
    node("from", one.from);
    node("to", one.entry.owner);
    out_.value(std::string_view("generation"));
    generation(one.entry.generation);
    out_.entry("why", one.told ? to_text(one.cause) : "unknown");
    out_.entry("actor", one.actor);
  }
  return done();
}

}  // namespace

std::optional<Result<std::string>> answer_orders(const AdminCall& call, Time now,
                                                 control::ControlPlane& plane) {
  OrderAnswers answers(now, plane);
  if (call.method == "order") return answers.order(call.payload);
  if (call.method == "plan") return answers.plan();
  if (call.method == "moves") return answers.moves();
  if (call.method == "history") return answers.history(call.payload);
  return std::nullopt;
}

}  // namespace shardbus::runtime
