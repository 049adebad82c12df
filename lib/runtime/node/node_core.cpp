#include "runtime/node/node_core.hpp"

#include <algorithm>
#include <condition_variable>
#include <random>
#include <stdexcept>
#include <utility>

#include "base/hash.hpp"
#include "shardbus/version.hpp"
#include "transport/endpoint.hpp"
#include "transport/now.hpp"
#include "transport/validate.hpp"

namespace shardbus::runtime {
namespace {

// What the detector adds to the pause even for a regular sender (0.76 s) is more than this, so that
// nobody is held for unreachable earlier than `failure_timeout`.
constexpr Duration kUsualSilence = std::chrono::milliseconds(500);
constexpr const char* kInboxFull = "the node's inbox is full";

std::string with_port(const transport::Endpoint& base, unsigned offset) {
  transport::Endpoint next = base;
  if (base.port != 0) next.port = static_cast<std::uint16_t>(base.port + offset);
  return next.text();
}

// What others dial: the bound port under the advertised host.
std::string advertised(const std::string& bound, const std::string& host) {
  Result<transport::Endpoint> endpoint = transport::parse_endpoint(bound);
  if (!endpoint) return bound;
  if (!host.empty()) endpoint->host = host;
  return endpoint->text();
}

// Says where a port came from that nobody wrote down.
Status with_origin(Status failed, const std::string& endpoint, unsigned offset,
                   const std::string& option) {
  if (failed.text() != endpoint) return failed;
  return {failed.code(), endpoint + ", which is the port of `listen` plus " +
                             std::to_string(offset) + "; `" + option + "` sets another one"};
}

std::uint64_t start_time() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

}  // namespace

Result<std::shared_ptr<NodeCore>> NodeCore::start(NodeOptions options) {
  Status valid = transport::validate(options);
  if (!valid) return valid;
  auto core = std::make_shared<NodeCore>(std::move(options));
  Status opened = core->open();
  if (!opened) return opened;
  return core;
}

NodeCore::NodeCore(NodeOptions options)
    : options_(std::move(options)),
      log_(options_.log, "node=" + (options_.name.empty() ? options_.listen : options_.name)) {}

NodeCore::~NodeCore() {
  halt();
}

Status NodeCore::bind(std::string& front, std::string& peer, std::string& gossip,
                      std::optional<transport::GossipSockets>& sockets) {
  const transport::Endpoint base = *transport::parse_endpoint(options_.listen);
  front = options_.listen;
  peer = options_.peer_listen.empty() ? with_port(base, 1) : options_.peer_listen;
  gossip = options_.gossip_listen.empty() ? with_port(base, 2) : options_.gossip_listen;
  auto link = Link::open(context_, {front, peer, options_.placement});
  if (!link && options_.peer_listen.empty()) {
    return with_origin(link.error(), peer, 1, "peer_listen");
  }
  if (!link) return link.error();
  auto bound = transport::GossipSockets::bind(context_, gossip);
  if (!bound && options_.gossip_listen.empty()) {
    return with_origin(bound.error(), gossip, 2, "gossip_listen");
  }
  if (!bound) return bound.error();
  link_ = std::move(*link);
  sockets.emplace(std::move(*bound));
  front = advertised(link_->front_endpoint(), options_.advertise);
  peer = advertised(link_->peer_endpoint(), options_.advertise);
  gossip = advertised(sockets->endpoint(), options_.advertise);
  return {};
}

Status NodeCore::open() {
  std::optional<transport::GossipSockets> gossip;
  Status bound = bind(info_.front, info_.peer, info_.gossip, gossip);
  if (!bound) return bound;
  info_.name = options_.name.empty() ? info_.front.substr(6) : options_.name;
  info_.incarnation = start_time();
  info_.key = node_key(info_.name, info_.incarnation);
  log_.rename("node=" + info_.name);
  if (options_.workers > 0)
    pool_ = std::make_unique<Pool>(*link_, options_.workers,
                                   [this] { return control_->awake(transport::now()); });

  ControlOptions control;
  control.control.cluster = options_.cluster;
  control.control.self = info_;
  control.control.seed = std::random_device{}();
  control.control.digest_interval = options_.gossip_interval;
  control.control.traits = traits();
  control.control.stable_after = options_.stable_after;
  control.control.downing = {options_.downing, options_.quorum_size, options_.down_if_alone};
  control.control.min_members = options_.min_members;
  control.control.handoff_timeout = options_.handoff_timeout + std::chrono::seconds(2);
  failure::Config& failure = control.control.failure;
  control.control.failure_timeout = options_.failure_timeout;
  failure.acceptable_pause =
      std::max<Duration>(options_.failure_timeout - kUsualSilence, Duration::zero());
  // Not later than the others may remove a node that stands still: they count from its last digest,
  // it counts from its last step, which may be one interval later.
  const Duration stable = options_.stable_after.count() != 0 ? Duration(options_.stable_after)
                                                             : downing::default_stable_after(1);
  failure.pause_limit =
      std::min<Duration>(failure.pause_limit, options_.failure_timeout + stable - failure.tick);
  failure.hiccup = std::min(failure.hiccup, failure.pause_limit);
  control.death_proof = options_.death_proof;
  control.may_bootstrap =
      options_.bootstrap || options_.seeds.empty() || options_.seeds.front() == info_.front;
  for (const std::string& seed : options_.seeds) {
    if (seed != info_.front) control.seeds.push_back(seed);
  }
  // Started again after a crash, it would make a second cluster beside the nodes that joined it.
  if (control.seeds.empty()) {
    log_.write(LogLevel::info, "join.no_seeds",
               "no seeds but this node: founds a cluster of its own; give every node the same "
               "seeds, two or more, to be able to restart this one");
  }
  control_ = std::make_unique<ControlLoop>(context_, std::move(*gossip), *link_, log_, readiness_,
                                           std::move(control),
                                           [this](const NodeInfo& self) { renew(self); });
  link_->install(make_plane(info_));
  control_->start();
  return {};
}

NodeTraits NodeCore::traits() const {
  NodeTraits traits{options_.zone, options_.roles, options_.capacity, kVersion};
  std::sort(traits.roles.begin(), traits.roles.end());
  return traits;
}

std::unique_ptr<DataPlane> NodeCore::make_plane(const NodeInfo& self) {
  DataConfig config;
  config.self = self;
  config.traits = traits();
  config.proxy = options_.proxy;
  config.cluster = options_.cluster;
  config.seed = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  config.client_credit = options_.client_credit;
  config.peer_credit = options_.peer_credit;
  config.buffered_messages = options_.buffered_messages;
  config.sessions = options_.sessions;
  config.pending_asks = options_.pending_asks;
  config.ping_interval = options_.ping_interval;
  config.handoff_timeout = options_.handoff_timeout;
  // Until then nobody else may have the shards of this node, should it stand still.
  config.worker_lease = options_.failure_timeout + options_.stable_after - options_.gossip_interval;
  config.clock = transport::now;
  return std::make_unique<DataPlane>(std::move(config), *link_, *control_, weak_from_this(),
                                     pool_.get());
}

// A new incarnation: entities, sessions and asks of the old one end here.
void NodeCore::renew(const NodeInfo& self) {
  std::vector<EntityType> hosted;
  {
    const std::lock_guard lock(hosted_mutex_);
    hosted = hosted_;
  }
  link_->replace(make_plane(self), [&](std::unique_ptr<DataPlane> old) {
    for (EntityType& type : hosted) (void)link_->plane().host(std::move(type));
    old->retire("the node lost its place in the cluster");
    link_->plane().count_on(*old);
    // Its handlers may still run in the pool.
    if (pool_ != nullptr) pool_->after_all([old = std::move(old)]() mutable { old.reset(); });
  });
}

Status NodeCore::host(EntityType type) {
  Status valid = transport::validate(type);
  if (!valid) return valid;
  if (stopped_.load()) return Status(Errc::stopped);
  {
    const std::lock_guard lock(hosted_mutex_);
    hosted_.push_back(type);
  }
  Errc outcome = Errc::ok;
  const std::string name = type.name;
  const HostedType asked = hosted_type(type);
  std::string differs;
  const auto host_on = [&](DataPlane& plane) {
    outcome = plane.host(std::move(type));
    if (outcome == Errc::config_mismatch)
      differs = plane.differs(asked, "node '" + info_.name + "'");
  };
  if (const auto pass = link_->try_pass()) {
    host_on(link_->plane());
  } else if (transport::Reactor::inside_pass()) {
    return {Errc::would_deadlock, "host() inside a callback of another node"};
  } else {
    link_->run_and_wait(host_on);
  }
  if (outcome == Errc::ok) return {};
  const std::lock_guard lock(hosted_mutex_);
  const auto refused = std::find_if(hosted_.rbegin(), hosted_.rend(),
                                    [&](const EntityType& hosted) { return hosted.name == name; });
  if (refused != hosted_.rend()) hosted_.erase(std::next(refused).base());
  if (outcome == Errc::invalid_argument) {
    return {outcome, "type " + name + " is hosted by this node already"};
  }
  if (outcome == Errc::exhausted)
    return {outcome, "with type " + name + " there would be more types or shards than allowed"};
  return {outcome, differs};
}

// --- Messenger ---

Status NodeCore::tell(const Outgoing& message) {
  Status valid = transport::validate(message);
  if (!valid) return valid;
  if (stopped_.load()) return Status(Errc::stopped);
  if (const auto pass = link_->try_pass()) {
    const Errc outcome = link_->plane().tell(message);
    return outcome == Errc::ok ? Status() : Status(outcome, std::string(message.type));
  }
  if (link_->crowded()) return Status(Errc::overloaded, kInboxFull);
  link_->run([owned = transport::OwnedMessage(message)](
                 DataPlane& plane) { plane.report_tell(plane.tell(owned.view()), owned.view()); },
             message.payload.size());
  return {};
}

void NodeCore::ask(const Outgoing& message, milliseconds timeout, ReplyCallback done) {
  Status valid = transport::validate(message, timeout);
  if (valid.ok() && stopped_.load()) valid = Status(Errc::stopped);
  if (!valid) return done({valid.code(), valid.text(), {}});
  if (const auto pass = link_->try_pass()) {
    return link_->plane().ask(message, timeout, std::move(done));
  }
  if (link_->crowded()) return done({Errc::overloaded, kInboxFull, {}});
  link_->run([owned = transport::OwnedMessage(message), timeout, done = std::move(done)](
                 DataPlane& plane) mutable { plane.ask(owned.view(), timeout, std::move(done)); },
             message.payload.size());
}

Result<std::string> NodeCore::ask_and_wait(const Outgoing& message, milliseconds timeout) {
  if (transport::Reactor::inside_pass()) {
    return Status(Errc::would_deadlock,
                  "use the callback or awaitable form inside handlers and callbacks");
  }
  return transport::wait_for_reply(
      [&](ReplyCallback done) { ask(message, timeout, std::move(done)); });
}

Status NodeCore::answer(const ReplyAddress& to, const ReplyView& reply) {
  return answer_with(&DataPlane::answer, to, reply);
}

Status NodeCore::answer_by_right(const ReplyAddress& to, const ReplyView& reply) {
  return answer_with(&DataPlane::answer_by_right, to, reply);
}

Status NodeCore::answer_with(Answering how, const ReplyAddress& to, const ReplyView& reply) {
  if (stopped_.load()) return Status(Errc::stopped);
  if (const auto pass = link_->try_pass()) {
    (link_->plane().*how)(to, reply);
    return {};
  }
  link_->run([how, to, error = reply.error, text = std::string(reply.text),
              payload = std::string(reply.payload)](DataPlane& plane) {
    (plane.*how)(to, {error, text, payload});
  });
  return {};
}

// --- life ---

Status NodeCore::wait_ready(milliseconds timeout, std::uint32_t members) const {
  if (transport::Reactor::inside_pass()) {
    return {Errc::would_deadlock, "wait_ready() inside a callback or handler"};
  }
  return readiness_.wait(timeout, members, [this] {
    std::string why;
    link_->run_and_wait([&](DataPlane& plane) { why = plane.dispatch().unsettled(); });
    return why;
  });
}

Status NodeCore::leave(milliseconds deadline) {
  if (inside_callback()) return {Errc::would_deadlock, "leave() inside a callback or handler"};
  if (stopped_.load()) return {};
  const Time until = transport::now() + deadline;
  control_->leave();
  const bool left = control_->wait_left(until);
  link_->run_and_wait([](DataPlane& plane) { plane.give_up_states(); });
  if (left) part(std::min(until, transport::now() + std::chrono::seconds(4)));
  stop();
  if (left) return {};
  return {Errc::timeout, "shards were not handed over within the deadline"};
}

// Clients are told to go elsewhere, and get the answers to what they have asked. The others say
// goodbye once nothing of theirs is under way through this node any more; what waits here for its
// turn goes out; then the node has the last word on its links, and stops when that has been heard.
void NodeCore::part(Time until) {
  link_->run_and_wait([](DataPlane& plane) { plane.front().say_goodbye(); });
  const bool heard = wait_until(until, [](DataPlane& plane) { return plane.parted(); });
  link_->run_and_wait([](DataPlane& plane) { plane.links().say_goodbye(); });
  const bool answered = wait_until(until, [](DataPlane& plane) { return plane.links().parted(); });
  if (heard && answered) return;
  if (!control_->was_member()) return;  // nobody relied on it
  log_.write(LogLevel::warn, "membership.left_unheard",
             heard
                 ? "a node did not answer our goodbye in time"
                 : "asks or tells through this node were still open; asks end in unknown_outcome");
}

bool NodeCore::wait_until(Time until, const std::function<bool(DataPlane&)>& holds) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  for (;;) {
    bool done = false;
    link_->run_and_wait([&](DataPlane& plane) { done = holds(plane); });
    if (done || transport::now() >= until) return done;
    never.wait_for(lock, std::chrono::milliseconds(2));
  }
}

void NodeCore::stop() {
  if (stopped()) return;
  if (inside_callback()) {
    throw std::logic_error("Node::stop() would wait for the callback or handler that it is in");
  }
  halt();
}

void NodeCore::halt() {
  if (stopped_.exchange(true)) return;
  readiness_.close();
  if (control_ != nullptr) control_->stop();
  if (link_ != nullptr && control_ != nullptr) {
    link_->run_and_wait([](DataPlane& plane) { plane.abandon(Errc::stopped, "the node stops"); });
  }
  if (pool_ != nullptr) pool_->stop();
  if (link_ != nullptr) link_->stop();
}

}  // namespace shardbus::runtime
