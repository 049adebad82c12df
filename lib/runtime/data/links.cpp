#include "runtime/data/links.hpp"

#include <algorithm>
#include <iterator>

#include "runtime/data/dispatch.hpp"

namespace shardbus::runtime {
namespace {

constexpr std::size_t kWaitingBytesMax = std::size_t{32} << 20;
constexpr Duration kHelloRetry = std::chrono::seconds(1);

}  // namespace

void Links::open(const NodeInfo& node, Time until) {
  if (node.key == context_.self()) return;
  const auto [entry, added] = links_.try_emplace(node.key);
  Link& link = entry->second;
  link.until = std::max(link.until, until);
  if (!added) return;
  link.node = node;
  link.heard = context_.now;
  context_.wire->open_link(node);
  context_.dispatch->on_link_opened(node.key);
}

void Links::limit(NodeKey node, Time until) {
  if (Link* link = find(node)) link->until = until;
}

std::vector<std::string> Links::take_unsent(NodeKey node) {
  std::vector<std::string> unsent;
  Link* link = find(node);
  if (link == nullptr) return unsent;
  std::erase_if(link->waiting, [&](Waiting& waiting) {
    if (waiting.sort != Sort::message) return false;
    --link->waiting_bounded;
    link->waiting_bytes -= waiting.envelope.size();
    unsent.push_back(std::move(waiting.envelope));
    return true;
  });
  return unsent;
}

std::vector<std::string> Links::close(NodeKey node) {
  const auto found = links_.find(node);
  if (found == links_.end()) return {};
  std::vector<std::string> unsent = take_unsent(node);
  note_lost_tells(found->second);
  context_.wire->close_link(node);
  last_ = nullptr;
  std::erase(dirty_, node);
  links_.erase(found);
  return unsent;
}

std::vector<std::uint64_t> Links::unsent_asks(NodeKey node) const {
  std::vector<std::uint64_t> slots;
  const auto found = links_.find(node);
  if (found == links_.end()) return slots;
  for (const Waiting& waiting : found->second.waiting) {
    if (waiting.sort != Sort::message) continue;
    const wire::Message message = wire::own_envelope(waiting.envelope).message;
    if (message.kind == wire::Kind::ask) slots.push_back(message.correlation.slot);
  }
  return slots;
}

const NodeInfo* Links::info(NodeKey node) const {
  const auto found = links_.find(node);
  return found == links_.end() ? nullptr : &found->second.node;
}

NodeKey Links::find_by_name(std::string_view name) const {
  NodeKey best;
  std::uint64_t incarnation = 0;
  for (const auto& [key, link] : links_) {
    if (link.node.name != name || link.node.incarnation < incarnation) continue;
    // The control plane may have a word for a node that died: such a link goes by itself.
    if (context_.dispatch->is_gone(key)) continue;
    best = key;
    incarnation = link.node.incarnation;
  }
  return best;
}

bool Links::commit(Link& link, std::size_t before, Sort sort) {
  const bool may_go = link.state == State::ready && link.waiting.empty() &&
                      (!counted(sort) || link.credit.covers(link.batch.size() - before));
  if (!may_go) return put_aside(link, before, sort);
  take(link, before, counted(sort));
  return true;
}

void Links::take(Link& link, std::size_t before, bool counted) {
  if (link.batch.size() > wire::kFrameBytesMax && link.batch_count > 0) {  // one too many
    const std::string last = link.batch.substr(before);
    link.batch.resize(before);
    flush_link(link);
    before = start(link);
    link.batch.append(last);
  }
  if (counted) link.credit.use(link.batch.size() - before);
  ++link.sequence;
  ++link.batch_count;
  mark_dirty(link);
  if (link.batch.size() >= wire::kFlushBytes || link.batch_count >= wire::kBatchMax - 1) {
    flush_link(link);
  }
}

bool Links::put_aside(Link& link, std::size_t before, Sort sort) {
  const std::size_t size = link.batch.size() - before;
  const std::size_t share = sort == Sort::answer ? 2 : 1;
  const bool many =
      sort != Sort::reply && link.waiting_bounded >= share * context_.config.peer_credit;
  const bool full = many || link.waiting_bytes + size > share * kWaitingBytesMax;
  const bool fits = of_handoff(sort) || !full;
  if (fits) {
    link.waiting.push_back({link.batch.substr(before), sort});
    link.waiting_bounded += sort == Sort::message || sort == Sort::answer ? 1 : 0;
    (of_handoff(sort) ? link.stream_bytes : link.waiting_bytes) += size;
  }
  link.batch.resize(before);
  if (link.batch_count == 0) link.batch.clear();
  return fits;
}

bool Links::send_raw(NodeKey node, std::string_view envelope) {
  Link* link = find(node);
  if (link == nullptr) return false;
  const std::size_t before = start(*link);
  link->batch.append(envelope);
  return commit(*link, before, Sort::answer);
}

bool Links::stream_is_full(NodeKey node) const {
  const auto found = links_.find(node);
  return found != links_.end() && found->second.stream_bytes >= context_.config.buffered_bytes;
}

void Links::send_ack(NodeKey node, std::string_view envelope) {
  Link* link = find(node);
  if (link == nullptr) return;
  const std::size_t before = start(*link);
  link->batch.append(envelope);
  (void)commit(*link, before, Sort::ack);
}

std::vector<NodeInfo> Links::nodes() const {
  std::vector<NodeInfo> all;
  all.reserve(links_.size());
  for (const auto& [key, link] : links_) all.push_back(link.node);
  return all;
}

bool Links::send_control(NodeKey node, const ControlMessage& message) {
  std::string envelope;
  wire::encode(envelope, message);
  return send_raw(node, envelope);
}

void Links::say_goodbye(NodeKey node) {
  Link* link = find(node);
  if (link == nullptr || std::exchange(link->closing, true)) return;
  repeat_goodbye(node);
}

void Links::repeat_goodbye(NodeKey node) {
  std::string goodbye;
  wire::encode_empty(goodbye, wire::Kind::goodbye);
  (void)send_raw(node, goodbye);
}

void Links::say_goodbye() {
  for (auto& [node, link] : links_) say_goodbye(node);
  flush();
}

bool Links::parted() const {
  return std::all_of(links_.begin(), links_.end(), [](const auto& entry) {
    const Link& link = entry.second;
    const bool unsent = std::any_of(link.waiting.begin(), link.waiting.end(),
                                    [](const auto& one) { return one.sort == Sort::message; });
    return link.parted || (link.state != State::ready && !unsent);
  });
}

void Links::flush() {
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    if (Link* link = find(dirty_[i])) {
      link->dirty = false;
      flush_link(*link);
    }
  }
  dirty_.clear();
}

void Links::flush(NodeKey node) {
  if (Link* link = find(node)) flush_link(*link);
}

void Links::flush_link(Link& link) {
  if (link.batch_count > 0) {
    if (!link.blocked.empty() || !context_.wire->send_link(link.node.key, link.batch)) {
      link.blocked.push_back(link.batch);
    }
    link.batch.clear();
    link.batch_count = 0;
    link.sent = context_.now;
  }
  while (!link.blocked.empty() && context_.wire->send_link(link.node.key, link.blocked.front())) {
    link.blocked.pop_front();
  }
}

// Sends what waited, as far as the credit goes.
void Links::pump(Link& link) {
  while (!link.waiting.empty() && link.state == State::ready) {
    const Waiting& next = link.waiting.front();
    if (counted(next.sort) && !link.credit.covers(next.envelope.size())) return;
    const std::size_t before = start(link);
    link.batch.append(next.envelope);
    take(link, before, counted(next.sort));
    if (next.sort == Sort::message || next.sort == Sort::answer) --link.waiting_bounded;
    (of_handoff(next.sort) ? link.stream_bytes : link.waiting_bytes) -= next.envelope.size();
    link.waiting.pop_front();
  }
}

void Links::greet(Link& link) {
  link.state = State::greeting;
  link.next_hello = context_.now + kHelloRetry;
  wire::Hello hello;
  hello.cluster = context_.config.cluster;
  hello.role = wire::Role::node;
  hello.node = context_.config.self;
  hello.to = link.node.key;
  hello.max_batch = wire::kBatchMax;
  std::string frame;
  wire::encode(frame, hello);
  (void)context_.wire->send_link(link.node.key, frame);
}

void Links::break_session(Link& link) {
  const bool was_ready = link.state == State::ready;
  link.state = State::down;
  link.session = 0;
  link.next_hello = kNever;
  note_lost_tells(link);
  link.batch.clear();
  link.batch_count = 0;
  link.blocked.clear();
  if (!was_ready) return;
  context_.count(Count::link_resets);
  context_.dispatch->on_link_broken(link.node.key);
}

void Links::note_lost_tells(const Link& link) {
  for (const std::string& frame : link.blocked) context_.dispatch->note_lost_tells(frame);
  context_.dispatch->note_lost_tells(link.batch);
}

void Links::on_connected(NodeKey node) {
  Link* link = find(node);
  if (link == nullptr) return;
  break_session(*link);
  link->heard = context_.now;
  greet(*link);
}

void Links::on_disconnected(NodeKey node) {
  Link* link = find(node);
  if (link == nullptr) return;
  break_session(*link);
  context_.listener->on_link_lost(node);
}

void Links::on_frame(NodeKey node, std::string_view frame) {
  Link* link = find(node);
  if (link == nullptr) return;
  link->heard = context_.now;
  wire::Envelope envelope;
  while (!frame.empty()) {
    if (wire::next_envelope(frame, envelope) != Errc::ok) {
      context_.count(Count::malformed_frames);
      return;
    }
    on_envelope(*link, envelope);
  }
}

void Links::on_envelope(Link& link, const wire::Envelope& envelope) {
  switch (envelope.kind) {
    case wire::Kind::welcome: {
      wire::Welcome welcome;
      if (wire::decode(envelope, welcome) == Errc::ok) on_welcome(link, welcome);
      return;
    }
    case wire::Kind::credit: {
      wire::Credit credit;
      if (wire::decode(envelope, credit) != Errc::ok) return;
      link.credit.grant(credit.envelopes, credit.bytes);
      pump(link);
      return;
    }
    case wire::Kind::goodbye:
      link.parted = true;
      return;
    case wire::Kind::no_session:
      // The other side restarted, or the connection was replaced behind our back.
      if (link.state == State::greeting) return;
      if (link.closing) {
        link.parted = true;
        return;
      }
      break_session(link);
      greet(link);
      return;
    case wire::Kind::reject: {
      wire::Reject reject;
      if (wire::decode(envelope, reject) != Errc::ok) return;
      context_.listener->log(LogLevel::warn, "link.rejected",
                             "node=" + link.node.name + " reason=" +
                                 std::string(error_info(static_cast<Errc>(reject.code)).name) +
                                 " text=" + reject.text);
      link.next_hello =
          context_.now + std::max<Duration>(milliseconds(reject.retry_after_ms), kHelloRetry);
      const NodeKey node = link.node.key;
      // Nobody will answer for this incarnation any more.
      if (reject.code == static_cast<std::uint16_t>(Errc::no_such_node)) {
        context_.listener->on_link_lost(node);
      }
      // Or we are what is over: whoever joins in vain has to know, and this refusal is all it gets.
      if (reject.code == static_cast<std::uint16_t>(Errc::stale_incarnation)) {
        context_.listener->on_control(node, JoinRefused{reject.code, reject.text});
      }
      return;
    }
    default:
      return;  // pong, and whatever later versions add
  }
}

void Links::on_welcome(Link& link, const wire::Welcome& welcome) {
  if (link.state != State::greeting) return;
  if (welcome.node.key != link.node.key) {
    // Another incarnation took the address: nobody will answer for this one any more.
    context_.listener->on_link_lost(link.node.key);
    return;
  }
  link.state = State::ready;
  link.session = welcome.session;
  link.sequence = 0;
  link.credit = {};
  link.credit.grant(welcome.credit.envelopes, welcome.credit.bytes);
  link.next_hello = kNever;
  const NodeKey node = link.node.key;
  // Streams start again ahead of their newer items that waited here: behind a gap the receiver
  // would take the newer ones for all there is.
  std::deque<Waiting> waited = std::exchange(link.waiting, {});
  context_.dispatch->resend_streams(node);
  std::move(waited.begin(), waited.end(), std::back_inserter(link.waiting));
  pump(link);
  context_.dispatch->on_link_ready(node);
  if (link.closing) repeat_goodbye(node);  // the older session may have lost it
}

void Links::tick() {
  std::vector<NodeKey> over;
  for (auto& [key, link] : links_) {
    tick(link);
    if (link.until <= context_.now) over.push_back(key);
  }
  for (const NodeKey node : over) {
    context_.dispatch->on_way_lost(node, close(node));
  }
}

void Links::tick(Link& link) {
  if (!link.blocked.empty()) flush_link(link);
  if (link.next_hello <= context_.now) greet(link);
  if (link.state != State::ready) return;
  // In its place in the order: a ping that overtakes what waits in the batch leaves a gap there.
  if (!link.closing && link.blocked.empty() &&
      context_.now - link.quiet_since() >= context_.config.ping_interval) {
    const std::size_t before = start(link);
    wire::encode_empty(link.batch, wire::Kind::ping);
    take(link, before, false);
    link.pinged = context_.now;
  }
  if (context_.now - link.heard < 4 * context_.config.ping_interval) return;
  link.heard = context_.now;
  context_.rare.hit(Mark::link_silent);
  break_session(link);
  context_.wire->close_link(link.node.key);
  context_.wire->open_link(link.node);
  context_.listener->on_link_lost(link.node.key);
}

Time Links::next_deadline() const {
  Time next = kNever;
  for (const auto& [key, link] : links_) {
    next = std::min({next, link.next_hello, link.until});
    if (!link.blocked.empty()) next = std::min(next, context_.now + milliseconds(5));
    if (link.state != State::ready) continue;
    next = std::min({next, link.quiet_since() + context_.config.ping_interval,
                     link.heard + 4 * context_.config.ping_interval});
  }
  return next;
}

std::size_t Links::waiting() const {
  std::size_t total = 0;
  for (const auto& [key, link] : links_) total += link.waiting_bounded;
  return total;
}

std::size_t Links::waiting_streams() const {
  std::size_t total = 0;
  for (const auto& [key, link] : links_) total += link.waiting.size() - link.waiting_bounded;
  return total;
}

std::size_t Links::stream_bytes() const {
  std::size_t total = 0;
  for (const auto& [key, link] : links_) total += link.stream_bytes;
  return total;
}

}  // namespace shardbus::runtime
