#include "runtime/node/control_loop.hpp"

#include <poll.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/hash.hpp"
#include "runtime/node/admin.hpp"
#include "runtime/node/admin_orders.hpp"
#include "transport/now.hpp"
#include "transport/threads.hpp"
#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace shardbus::runtime {
namespace {

constexpr Duration kGossipPatience = std::chrono::seconds(2);
constexpr Duration kSeedLook = std::chrono::seconds(1);
constexpr Duration kSeedReport = std::chrono::seconds(5);
constexpr Duration kNet = std::chrono::milliseconds(50);
constexpr std::size_t kInputsMax = 65536;
constexpr std::size_t kAdminMax = 1024;

// What the person who started a refused node can do about it.
std::string way_out(const control::Event& event) {
  if (event.name == "join.refused") {
    if (event.text.starts_with("duplicate_node")) return "; choose another --name for this node";
    if (event.text.starts_with("cluster_mismatch")) return "; set --cluster to that of the seeds";
  }
  if (event.name == "join.two_clusters")
    return "; give every node the same seeds, as only the first of them may found a cluster";
  return "";
}

LogLevel level_of(control::Severity severity) {
  return static_cast<LogLevel>(static_cast<int>(severity));
}

}  // namespace

ControlLoop::ControlLoop(transport::ZmqContext& context, transport::GossipSockets gossip,
                         Link& link, observe::Log& log, Readiness& readiness,
                         ControlOptions options, Renew renew)
    : context_(context),
      gossip_(std::move(gossip)),
      link_(link),
      log_(log),
      readiness_(readiness),
      options_(std::move(options)),
      renew_(std::move(renew)),
      seeds_(context, options_.seeds,
             [this](LogLevel level, std::string_view event, const std::string& text) {
               tell(level, event, text);
             }),
      unjudged_max_(options_.control.failure.pause_limit / 2) {}

ControlLoop::~ControlLoop() {
  stop();
}

void ControlLoop::start() {
  judged_ = transport::now();
  thread_ = transport::start_thread("sb-control", [this] { run(); });
}

void ControlLoop::stop() {
  stopping_ = true;
  wakeup_.signal();
  if (thread_.joinable()) thread_.join();
  judged_ = kNever;
}

void ControlLoop::leave() {
  (void)post(Leave{});
}

// --- from the data plane ---

// False: not taken. Messages of nodes are repeated until answered, so a full inbox costs them time
// and nothing else; administrative asks have a share of their own. The rest is few, comes once, and
// is always taken.
bool ControlLoop::post(Input input) {
  const bool admin = std::holds_alternative<AdminCall>(input);
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (admin && admin_waiting_ >= kAdminMax) return false;
    if (std::holds_alternative<FromNode>(input) && inputs_.size() >= kInputsMax) return false;
    admin_waiting_ += admin ? 1 : 0;
    wake = inputs_.empty();
    inputs_.push_back(std::move(input));
  }
  if (wake) wakeup_.signal();
  return true;
}

void ControlLoop::on_control(NodeKey from, ControlMessage message) {
  (void)post(FromNode{from, std::move(message)});
}
void ControlLoop::on_traffic(NodeKey from) {
  const std::lock_guard lock(mutex_);
  traffic_.insert(from);
}
void ControlLoop::on_link_lost(NodeKey node) {
  (void)post(LinkLost{node});
}
void ControlLoop::on_hosted_types(std::vector<HostedType> types) {
  (void)post(Hosted{std::move(types)});
}
void ControlLoop::on_admin(AdminCall call) {
  const ReplyAddress asker{call.asker.value, call.slot};
  if (post(std::move(call))) return;
  link_.run([asker](DataPlane& plane) {
    plane.answer(asker, {Errc::overloaded, "too many administrative asks wait", {}});
  });
}
void ControlLoop::log(LogLevel level, std::string_view event, std::string text) {
  log_.write(level, event, text);
}

// --- the loop ---

void ControlLoop::run() {
  seeds_.open(transport::now());
  next_seed_report_ = transport::now() + kSeedReport;
  if (seeds_.none()) begin_control(options_.may_bootstrap);
  while (!stopping_.load()) {
    wait();
    take_inputs();
    read_gossip();
    read_probes();
    ask_seeds();
    read_seeds();
    decide_bootstrap();
    report_placement();
    const Time now = transport::now();
    if (plane_ != nullptr) {
      plane_->on_tick(now);
      carry_out();
    }
    if (!rejoin_reason_.empty()) rejoin(std::exchange(rejoin_reason_, {}));
    readiness_.update(view());
    judged_ = now;  // it may have stood still since, and that is for the next round to judge
  }
  seeds_.close();
  gossip_.close();
}

void ControlLoop::wait() {
  gossip_.service();
  gossip_.revive(transport::now(),
                 std::max<Duration>(kGossipPatience, 10 * options_.control.digest_interval));
  std::vector<pollfd> items{{wakeup_.descriptor(), POLLIN, 0}, {gossip_.descriptor(), POLLIN, 0}};
  for (const int descriptor : seeds_.descriptors()) items.push_back({descriptor, POLLIN, 0});
  death_probe_.add_waits(items);
  Time wake = std::min(transport::now() + kNet, death_probe_.next_deadline());
  if (plane_ != nullptr) wake = std::min(wake, plane_->next_deadline());
  // Their descriptors speak only on a change: look at the sockets themselves before sleeping.
  const bool ready = gossip_.readable() || seeds_.readable();
  const auto left = std::max<Duration>(wake - transport::now(), Duration::zero());
  const auto timeout =
      static_cast<int>((left + std::chrono::microseconds(999)) / std::chrono::milliseconds(1));
  poll(items.data(), items.size(), ready ? 0 : timeout);
  if (items[0].revents != 0) wakeup_.clear();
}

void ControlLoop::take_inputs() {
  std::vector<Input> inputs;
  std::set<NodeKey> traffic;
  {
    const std::lock_guard lock(mutex_);
    inputs.swap(inputs_);
    traffic.swap(traffic_);
    admin_waiting_ = 0;
  }
  if (plane_ != nullptr) {
    for (const NodeKey node : traffic) plane_->on_traffic(transport::now(), node);
  }
  for (Input& input : inputs) {
    std::visit([this](auto& value) { take(value); }, input);
  }
}

void ControlLoop::take(FromNode& input) {
  if (plane_ != nullptr) plane_->on_message(transport::now(), input.from, input.message);
}

void ControlLoop::take(LinkLost& input) {
  if (plane_ == nullptr) return;
  plane_->on_link_lost(transport::now(), input.node);
  const auto known = known_.find(input.node);
  if (options_.death_proof && known != known_.end()) {
    death_probe_.start(input.node.value, known->second.peer, transport::now());
  }
}

void ControlLoop::take(Hosted& input) {
  hosts_ = std::move(input.types);
  options_.control.hosts = hosts_;
  if (plane_ != nullptr) plane_->on_hosted_types(transport::now(), hosts_);
}

void ControlLoop::take(Leave& input) {
  (void)input;
  leaving_ = true;
  begin_leave();
}

void ControlLoop::begin_leave() {
  link_.run([](DataPlane& plane) { plane.begin_leave(); });
  if (plane_ == nullptr) return note_left();
  plane_->leave(transport::now());
}

// What only members can do. It says why this node cannot, rather than whom it does not know.
bool ControlLoop::refuse_outside(const AdminCall& call) {
  static constexpr std::array kOfMembers{"down", "order", "plan", "moves", "history"};
  const bool outside = plane_ == nullptr || plane_->cluster_id() == 0;
  if (!outside || std::find(kOfMembers.begin(), kOfMembers.end(), call.method) == kOfMembers.end())
    return false;
  link_.run([to = ReplyAddress{call.asker.value, call.slot},
             text = "this node is in no cluster: " + waits_for()](DataPlane& plane) {
    plane.answer(to, {Errc::not_ready, text, {}});
  });
  return true;
}

void ControlLoop::down(const AdminCall& call) {
  const Result<DownArguments> given = admin_down(call.payload);
  const std::vector<Member>& members = plane_->members().members;
  const bool member = given && std::any_of(members.begin(), members.end(), [&](const Member& m) {
                        return m.node.name == given->node;
                      });
  Status refused;
  if (!given) {
    refused = given.error();
  } else if (!member) {
    refused = {Errc::no_such_node, "no member is called '" + given->node + "'"};
  } else {
    plane_->down(transport::now(), given->node, given->actor);
  }
  link_.run([to = ReplyAddress{call.asker.value, call.slot}, refused](DataPlane& plane) {
    plane.answer(to, refused.ok() ? ReplyView{Errc::ok, {}, "\xc0"}
                                  : ReplyView{refused.code(), refused.text(), {}});
  });
}

void ControlLoop::take(AdminCall& input) {
  if (refuse_outside(input)) return;
  if (input.method == "down") return down(input);
  if (plane_ != nullptr) {
    if (const auto answered = answer_orders(input, transport::now(), *plane_)) {
      link_.run([call = std::move(input), answer = *answered](DataPlane& plane) {
        const ReplyAddress to{call.asker.value, call.slot};
        if (answer) return plane.answer(to, {Errc::ok, {}, *answer});
        plane.answer(to, {answer.error().code(), answer.error().text(), {}});
      });
      return;
    }
  }
  const LinkCounters counters{link_.net_catches(), link_.inbox_depth(), Link::kInboxMax};
  link_.run([call = std::move(input), view = view(), counters](DataPlane& plane) {
    answer_admin(call, *view, counters, plane);
  });
}

void ControlLoop::read_gossip() {
  transport::Frame frame;
  while (gossip_.receive(frame)) {
    if (plane_ == nullptr) continue;
    std::string_view rest = frame.bytes();
    wire::Envelope envelope;
    ControlMessage message;
    if (wire::next_envelope(rest, envelope) != Errc::ok ||
        wire::decode(envelope, message) != Errc::ok) {
      continue;
    }
    if (const auto* digest = std::get_if<Digest>(&message)) {
      gossip_.heard(digest->from.key, transport::now());
      plane_->on_digest(transport::now(), *digest);
    } else if (const auto* delta = std::get_if<TableDelta>(&message)) {
      plane_->on_delta(transport::now(), delta->to.claimant, *delta);
    }
  }
}

void ControlLoop::read_probes() {
  for (const std::uint64_t peer : death_probe_.collect(transport::now())) {
    if (plane_ != nullptr) plane_->on_proof_of_death(transport::now(), NodeKey{peer});
  }
}

// --- seeds ---

void ControlLoop::ask_seeds() {
  if (plane_ != nullptr && plane_->cluster_id() != 0) return look_for_others();
  seeds_.ask(transport::now());
  if (seeds_.none() || transport::now() < next_seed_report_) return;
  next_seed_report_ = transport::now() + kSeedReport;
  report_waiting();
}

// Somebody else may have founded a cluster of the same name at the same time: that is told, but not
// mended.
void ControlLoop::look_for_others() {
  if (!founder_ || transport::now() < next_seed_look_) return;
  next_seed_look_ = transport::now() + kSeedLook;
  seeds_.ask(transport::now());
}

void ControlLoop::report_waiting() {
  const std::string unanswered = seeds_.unanswered();
  // Why it waits has been said then, and more exactly.
  if (std::exchange(refused_, false) && unanswered.empty()) return;
  tell(LogLevel::warn, "join.waiting", waits_for());
}

std::string ControlLoop::waits_for() const {
  if (seeds_.none()) return "it has no seeds";
  const std::string unanswered = seeds_.unanswered();
  if (unanswered.empty() && !refusal_.empty()) return refusal_;
  std::string text = "no answer from seeds " + unanswered + "; trying on";
  if (unanswered.empty()) {
    text = plane_ == nullptr ? "seeds answer, but none is in a cluster yet"
                             : "a seed is in a cluster, which has not taken this node in yet";
  }
  if (plane_ == nullptr && !options_.may_bootstrap) {
    text += seeds_.list_is_plain()
                ? "; only the first seed of the list, " + seeds_.first() + ", may found the cluster"
                : "; only a node with bootstrap may found the cluster";
  }
  return text;
}

void ControlLoop::read_seeds() {
  for (const Seeds::Answer& answer : seeds_.read(transport::now())) take(answer);
}

void ControlLoop::take(const Seeds::Answer& answer) {
  const wire::Here& here = answer.here;
  if (here.node.key == options_.control.self.key) {
    // Our own address under another name, such as that of the host.
    options_.may_bootstrap = options_.may_bootstrap || answer.first;
    return;
  }
  if (here.cluster != options_.control.cluster) {
    refused_ = true;
    tell(LogLevel::error, "join.cluster_mismatch",
         "seed=" + answer.address + " cluster_there=" + here.cluster +
             " cluster_here=" + options_.control.cluster +
             "; set --cluster to that of the seeds, or --seeds to nodes of this cluster");
    return;
  }
  refounding_.heard(here.node.name, here.cluster_id != 0, transport::now());
  if (plane_ == nullptr && here.cluster_id != 0 && !leaving_) begin_control(false);
  if (plane_ != nullptr)
    plane_->on_seed(transport::now(), here.node, here.cluster, here.cluster_id);
}

// The first seed, or the node with `bootstrap`, makes a cluster only when no other seed is in one.
void ControlLoop::decide_bootstrap() {
  if (!options_.may_bootstrap || leaving_) return;
  if (plane_ == nullptr) {
    if (seeds_.heard_out(transport::now())) begin_control(true);
    return;
  }
  if (plane_->cluster_id() != 0) return refounding_.over();
  if (!refounding_.due(transport::now())) return;
  refounding_.over();
  founded_anew_ = transport::now();
  tell(LogLevel::warn, "join.founds_anew", "most of the last members are in no cluster any more");
  begin_control(true);
}

void ControlLoop::begin_control(bool bootstrap) {
  control::ControlConfig config = options_.control;
  config.bootstrap = bootstrap;
  founder_ = bootstrap;
  config.hosts = hosts_;
  plane_ = std::make_unique<control::ControlPlane>(transport::now(), std::move(config));
  table_ = std::make_shared<AllocationTable>();
}

// --- outputs ---

void ControlLoop::carry_out() {
  for (const control::ControlOutput& output : plane_->take_outputs()) {
    std::visit([this](const auto& value) { carry_out(value); }, output);
  }
  if (plane_->cluster_id() != told_cluster_) {
    told_cluster_ = plane_->cluster_id();
    if (told_cluster_ != 0) was_member_ = true;
    link_.run([id = told_cluster_](DataPlane& plane) { plane.set_cluster_id(id); });
  }
  if (plane_->known_types() != told_types_) {
    told_types_ = plane_->known_types();
    link_.run([types = told_types_](DataPlane& plane) { plane.set_known_types(types); });
  }
  share_right();
  send_workers_away();
}

// Again when another host is gone meanwhile, or a worker had just come.
void ControlLoop::send_workers_away() {
  std::vector<std::string> types = plane_->only_here();
  if (types == told_only_here_) return;
  told_only_here_ = std::move(types);
  if (told_only_here_.empty()) return;
  link_.run([types = told_only_here_](DataPlane& plane) { plane.send_workers_away(types); });
}

// Only where it matters: each is a pass of the link.
void ControlLoop::share_right() {
  const bool strict = std::any_of(hosts_.begin(), hosts_.end(),
                                  [](const HostedType& type) { return type.placement.strict; });
  const Time until = plane_->strict_until();
  if (!strict || until == told_right_) return;
  told_right_ = until;
  link_.run([until](DataPlane& plane) { plane.set_strict_until(until); });
}

void ControlLoop::carry_out(const control::PublishDigest& output) {
  std::string frame;
  wire::encode(frame, ControlMessage(output.digest));
  gossip_.publish(frame);
}

void ControlLoop::carry_out(const control::PublishDelta& output) {
  std::string frame;
  wire::encode(frame, ControlMessage(output.delta));
  // What is too long for a frame is pulled over the links, as if it had been lost.
  if (frame.size() <= wire::kFrameBytesMax) gossip_.publish(frame);
}

void ControlLoop::carry_out(const control::SendControl& output) {
  link_.run([output](DataPlane& plane) {
    plane.reach(output.node);
    (void)plane.links().send_control(output.to, output.message);
  });
}

void ControlLoop::carry_out(const control::TellRegion& output) {
  link_.run([self = options_.control.self.key, output](DataPlane& plane) {
    plane.dispatch().on_region_command(self, output.message);
  });
}

void ControlLoop::carry_out(const control::ConnectNode& output) {
  known_[output.node.key] = output.node;
  gossip_.connect(output.node.key, output.node.gossip);
  link_.run([output](DataPlane& plane) { plane.connect(output.node); });
}

void ControlLoop::carry_out(const control::DisconnectNode& output) {
  known_.erase(output.node);
  gossip_.disconnect(output.node);
  link_.run([output](DataPlane& plane) {
    switch (output.how) {
      case control::Parting::stranger:
        return plane.let_go(output.node);
      case control::Parting::left:
        return plane.part_from(output.node);
      case control::Parting::dead:
        return plane.bury(output.node);
    }
  });
}

void ControlLoop::carry_out(const control::TableChanged& output) {
  table_ = std::make_shared<AllocationTable>(output.table);
  link_.run([table = table_](DataPlane& plane) { plane.dispatch().on_table(*table); });
}

void ControlLoop::carry_out(const control::Event& output) {
  refused_ = refused_ || output.name == "join.refused";
  if (output.name == "join.refused") refusal_ = "refused: " + output.text + way_out(output);
  if (output.name == "join.accepted") refusal_.clear();
  tell(level_of(output.severity), output.name, with_names(output.text) + way_out(output));
}

// The cores speak of nodes by key; a person knows their names.
std::string ControlLoop::with_names(const std::string& text) const {
  constexpr std::size_t kDigitsMin = 6;  // fewer are no key
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    const bool begins = at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    std::uint64_t key = 0;
    const bool is_key = begins && text[at] == 'n' && end - at > kDigitsMin &&
                        std::from_chars(&text[at + 1], text.data() + end, key).ec == std::errc{};
    if (!is_key) end = at + 1;
    result.append(text, at, end - at);
    at = end;
    if (!is_key || plane_ == nullptr) continue;
    const std::string name = plane_->name_of(NodeKey{key});
    if (!name.starts_with('#')) result += "(" + name + ")";
  }
  return result;
}

void ControlLoop::carry_out(const control::LeaveDone& output) {
  (void)output;
  note_left();
}

void ControlLoop::note_left() {
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
  }
  left_signal_.notify_all();
}

bool ControlLoop::wait_left(Time until) {
  std::unique_lock lock(mutex_);
  return left_signal_.wait_for(lock, until - transport::now(), [this] { return left_; });
}

void ControlLoop::carry_out(const control::DownSelf& output) {
  rejoin_reason_ = output.reason;
}

// A node that lost its place starts again as a new incarnation: nothing of the old one goes on.
void ControlLoop::rejoin(const std::string& reason) {
  tell(LogLevel::warn, "membership.down_self",
       reason + (leaving_ ? "; it was about to leave" : "; joining again as a new incarnation"));
  std::vector<std::string> others;
  for (const auto& member : plane_->status().members) {
    if (member.member.node.key == options_.control.self.key) continue;
    seeds_.add(member.member.node.front, transport::now());
    others.push_back(member.member.node.name);
  }
  if (!others.empty()) refounding_.lost(std::move(others));
  for (const auto& [key, info] : known_) gossip_.disconnect(key);
  known_.clear();
  NodeInfo& self = options_.control.self;
  self.incarnation = incarnations_.after(self.incarnation, plane_->cluster_id() != 0);
  self.key = node_key(self.name, self.incarnation);
  renew_(self);
  told_cluster_ = 0;
  told_types_.clear();
  told_right_ = Time{};
  told_only_here_.clear();
  begin_control(false);
  if (leaving_) begin_leave();
}

std::shared_ptr<const ClusterView> ControlLoop::view() const {
  auto view = std::make_shared<ClusterView>();
  view->table = table_;
  view->hosts = hosts_;
  if (plane_ != nullptr) {
    view->status = plane_->status();
  } else {
    view->status.self = options_.control.self;
  }
  if (!view->status.in_cluster) view->waits_for = waits_for();
  view->founded_anew = founded_anew_;
  return view;
}

void ControlLoop::report_placement() {
  if (placement_reported_) return;
  const std::string trouble = link_.placement_trouble();
  if (trouble.empty()) return;
  placement_reported_ = true;
  tell(LogLevel::warn, "link.placement_off", trouble);
}

void ControlLoop::tell(LogLevel level, std::string_view event, const std::string& text) {
  // Joining is tried again and again, by this node and by those that it has to refuse.
  if (level < LogLevel::warn || !event.starts_with("join.")) return log_.write(level, event, text);
  const auto shown = repeats_.pass(transport::now(), std::string(event), text);
  if (shown) log_.write(level, event, *shown);
}

}  // namespace shardbus::runtime
