#include "runtime/node/seeds.hpp"

#include <algorithm>
#include <utility>

#include "base/hash.hpp"
#include "wire/limits.hpp"

namespace shardbus::runtime {
namespace {

constexpr Duration kPatience = std::chrono::seconds(2);
constexpr Duration kRetry = std::chrono::milliseconds(200);
// Before whoever may found a cluster does so without an answer.
constexpr Duration kUsualPatience = std::chrono::seconds(1);
constexpr Duration kSilentPatience = std::chrono::seconds(5);
constexpr Duration kListensPatience = std::chrono::seconds(15);
constexpr Duration kLookupRetry = std::chrono::seconds(2);

bool needs_look_up(const transport::SeedSource& source) {
  return source.kind != transport::SeedKind::address;
}

}  // namespace

Seeds::Seeds(transport::ZmqContext& context, const std::vector<std::string>& configured, Tell tell)
    : context_(context), tell_(std::move(tell)) {
  for (const std::string& text : configured) {
    if (const auto source = transport::parse_seed(text)) sources_.push_back(*source);
  }
}

void Seeds::open(Time now) {
  for (const transport::SeedSource& source : sources_) {
    if (!needs_look_up(source)) open_seed(source.text, source.text, now);
  }
  if (std::none_of(sources_.begin(), sources_.end(), needs_look_up)) known_at_ = now;
  look_up(now);
}

void Seeds::add(const std::string& address, Time now) {
  open_seed(address, address, now);
}

void Seeds::open_seed(const std::string& address, const std::string& source, Time now) {
  const bool known = std::any_of(seeds_.begin(), seeds_.end(),
                                 [&](const Seed& seed) { return seed.address == address; });
  if (known) return;
  auto socket = transport::Socket::open(context_, transport::SocketKind::dealer,
                                        transport::IoThread::control, wire::kFrameBytesMax);
  if (!socket) return tell_(LogLevel::error, "join.no_socket", socket.error().message());
  const Status connected = socket->connect(address);
  if (!connected) return tell_(LogLevel::error, "join.bad_seed", connected.message());
  seeds_.push_back({address, source, std::move(*socket), {}, false, now, now, {}, {}});
}

// --- looking up ---

void Seeds::look_up(Time now) {
  if (now < next_lookup_) return;
  next_lookup_ = now + kLookupRetry;
  std::vector<transport::SeedSource> named;
  for (const transport::SeedSource& source : sources_) {
    if (needs_look_up(source)) named.push_back(source);
  }
  if (!named.empty()) lookup_.start(std::move(named));
}

void Seeds::take_findings(Time now) {
  const auto findings = lookup_.take();
  if (!findings) return;
  for (const SeedFinding& finding : *findings) note(finding, now);
  const bool all = std::all_of(sources_.begin(), sources_.end(), [this](const auto& source) {
    return !needs_look_up(source) || findings_.contains(source.text);
  });
  if (all) known_at_ = std::min(known_at_, now);
}

// From a failed look-up only what it found follows: what was known before stays.
void Seeds::note(const SeedFinding& finding, Time now) {
  const std::string& source = finding.source.text;
  const transport::LookedUp& found = finding.found;
  const std::string before = std::exchange(troubles_[source], found.trouble);
  const bool news =
      !found.trouble.empty() && found.trouble != before && found.trouble != kNoAddress;
  if (news) tell_(LogLevel::warn, "join.bad_seed", source + ": " + found.trouble);
  const std::vector<std::string>& addresses = found.addresses;
  for (const std::string& address : addresses) open_seed(address, source, now);
  if (!found.known) return;
  findings_[source] = finding;
  std::erase_if(seeds_, [&](const Seed& seed) {
    return seed.source == source &&
           std::find(addresses.begin(), addresses.end(), seed.address) == addresses.end();
  });
}

bool Seeds::heard_out(Time now) const {
  using Outcome = transport::Prober::Outcome;
  if (known_at_ == kNever || now - known_at_ < kUsualPatience) return false;
  return std::all_of(seeds_.begin(), seeds_.end(), [now](const Seed& seed) {
    const bool listens = seed.port == Outcome::connected;
    return seed.answered || seed.port == Outcome::refused ||
           now - seed.since >= (listens ? kListensPatience : kSilentPatience);
  });
}

// --- asking ---

void Seeds::ask(Time now) {
  take_findings(now);
  look_up(now);
  read_probes(now);
  std::string who;
  wire::encode_empty(who, wire::Kind::who);
  for (Seed& seed : seeds_) ask_one(seed, who, now);
}

void Seeds::ask_one(Seed& seed, std::string_view who, Time now) {
  if (seed.next_who > now) return;
  seed.next_who = now + kRetry;
  if (!seed.answered && seed.trouble.empty()) {
    seed.trouble = "no answer";
    prober_.start(fnv1a64(seed.address), seed.address, now);
  }
  if (now - seed.alive >= kPatience) {
    // After a handshake that failed, with whatever answered there, ZeroMQ never tries again.
    seed.alive = now;
    seed.answered = false;
    seed.trouble.clear();  // and looked at again
    seed.port.reset();
    seed.socket.disconnect(seed.address);
    (void)seed.socket.connect(seed.address);
  }
  (void)seed.socket.send(who);
}

// Only to tell a closed port from a machine that does not answer.
void Seeds::read_probes(Time now) {
  for (const transport::Prober::Finding& finding : prober_.collect(now)) {
    for (Seed& seed : seeds_) {
      if (fnv1a64(seed.address) != finding.peer || seed.answered) continue;
      seed.port = finding.outcome;
      if (finding.outcome == transport::Prober::Outcome::refused) {
        seed.trouble = "connection refused";
      } else if (finding.outcome == transport::Prober::Outcome::connected) {
        seed.trouble = "takes connections, but does not answer as a node";
      }
    }
  }
}

std::vector<Seeds::Answer> Seeds::read(Time now) {
  std::vector<Answer> answers;
  for (Seed& seed : seeds_) {
    transport::Frame frame;
    while (seed.socket.receive(frame)) {
      std::string_view rest = frame.bytes();
      wire::Envelope envelope;
      wire::Here here;
      if (wire::next_envelope(rest, envelope) != Errc::ok || envelope.kind != wire::Kind::here ||
          wire::decode(envelope, here) != Errc::ok) {
        continue;
      }
      seed.answered = true;
      seed.trouble.clear();
      seed.alive = now;
      answers.push_back({seed.address, is_first(seed), std::move(here)});
    }
  }
  return answers;
}

// A name with several addresses may be that of all nodes, and then each of them would be the first.
bool Seeds::is_first(const Seed& seed) const {
  if (sources_.empty() || seed.source != sources_.front().text) return false;
  if (sources_.front().kind == transport::SeedKind::address) return true;
  const auto finding = findings_.find(seed.source);
  return sources_.front().kind == transport::SeedKind::host && finding != findings_.end() &&
         transport::names_one_node(finding->second.found.addresses);
}

// --- telling ---

bool Seeds::all_answered() const {
  return unanswered().empty();
}

std::string Seeds::unanswered() const {
  std::string text;
  const auto add = [&text](const std::string& seed, const std::string& why) {
    text += (text.empty() ? "" : ", ") + seed + " (" + why + ")";
  };
  for (const auto& [source, trouble] : troubles_) {
    if (!trouble.empty()) add(source, trouble);
  }
  for (const Seed& seed : seeds_) {
    if (seed.answered) continue;
    const bool named = seed.source != seed.address;
    add(named ? seed.source + " = " + seed.address : seed.address,
        seed.trouble.empty() ? "no answer" : seed.trouble);
  }
  return text;
}

bool Seeds::list_is_plain() const {
  return std::all_of(sources_.begin(), sources_.end(), [](const transport::SeedSource& source) {
    return source.kind == transport::SeedKind::address || source.kind == transport::SeedKind::host;
  });
}

bool Seeds::readable() const {
  return std::any_of(seeds_.begin(), seeds_.end(),
                     [](const Seed& seed) { return seed.socket.readable(); });
}

std::vector<int> Seeds::descriptors() const {
  std::vector<int> all;
  for (const Seed& seed : seeds_) all.push_back(seed.socket.descriptor());
  return all;
}

}  // namespace shardbus::runtime
