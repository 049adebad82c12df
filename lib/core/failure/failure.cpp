#include "core/failure/failure.hpp"

#include <algorithm>
#include <cmath>

#include "base/model/text.hpp"
#include "base/overloaded.hpp"

namespace shardbus::failure {
namespace {

std::int64_t to_us(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

// phi for a silence that is `y` standard deviations longer than the mean.
double phi_of(double y) {
  const double e = std::exp(-y * (1.5976 + 0.070566 * y * y));
  return y > 0 ? -std::log10(e / (1.0 + e)) : -std::log10(1.0 - 1.0 / (1.0 + e));
}

// The y at which phi reaches `threshold`: found once, so that a deadline is a plain sum later.
double deviations_for(double threshold) {
  double low = 0;
  double high = 12;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (phi_of(middle) < threshold ? low : high) = middle;
  }
  return high;
}

const char* name_of(Reach reach) {
  if (reach == Reach::reachable) return "reachable";
  return reach == Reach::unreachable ? "unreachable" : "dead";
}

}  // namespace

std::string to_text(const Output& output) {
  return std::visit(
      Overloaded{
          [](const Changed& o) { return shardbus::to_text(o.peer) + " is " + name_of(o.reach); },
          [](const SelfPaused& o) { return "self_paused " + shardbus::to_text(o.late); }},
      output);
}

Detector::Detector(const Config& config)
    : config_(config), alarm_deviations_(deviations_for(config.threshold)) {}

std::vector<Output> Detector::step(Time now, const Input& input) {
  std::vector<Output> out;
  check_own_pause(now, out);
  std::visit(Overloaded{[&](const Watch& i) { watch(now, i.peer); },
                        [&](const Forget& i) { peers_.erase(i.peer); },
                        [&](const Heard& i) { heard(now, i.peer, true, out); },
                        [&](const Traffic& i) { heard(now, i.peer, false, out); },
                        [&](const LinkLost& i) {
                          Peer* peer = find(i.peer);
                          if (peer == nullptr) return;
                          peer->link_lost = true;
                          note_alarm(*peer);
                        },
                        [&](const ProofOfDeath& i) {
                          Peer* peer = find(i.peer);
                          if (peer == nullptr || peer->reach == Reach::dead) return;
                          peer->reach = Reach::dead;
                          out.emplace_back(Changed{i.peer, Reach::dead});
                        },
                        [](const Tick&) {}},
             input);
  suspect(now, out);
  return out;
}

Time Detector::next_deadline() const {
  return std::min(stepped_ ? last_step_ + config_.tick : kNever, first_alarm_);
}

std::vector<NodeKey> Detector::watched() const {
  std::vector<NodeKey> keys;
  for (const auto& [key, peer] : peers_) keys.push_back(key);
  return keys;
}

Reach Detector::reach(NodeKey peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? Reach::unreachable : found->second.reach;
}

double Detector::phi(Time now, NodeKey key) const {
  const auto found = peers_.find(key);
  if (found == peers_.end()) return 0;
  const Peer& peer = found->second;
  const Duration pause = peer.link_lost ? Duration{} : config_.acceptable_pause;
  const Duration past = now - peer.last_heard - mean(peer) - pause;
  return phi_of(static_cast<double>(to_us(past)) / static_cast<double>(to_us(deviation(peer))));
}

Detector::Peer* Detector::find(NodeKey key) {
  const auto found = peers_.find(key);
  if (found != peers_.end()) return &found->second;
  ++ignored_unknown_;
  return nullptr;
}

// Runs before any other use of an input: what was not heard while this process stood still says
// nothing about the others.
void Detector::check_own_pause(Time now, std::vector<Output>& out) {
  const Duration late = stepped_ ? now - last_step_ - config_.tick : Duration{};
  stepped_ = true;
  last_step_ = now;
  if (late < config_.hiccup) return;
  rare_.hit(late >= config_.pause_limit ? Mark::own_pause : Mark::hiccup);
  for (auto& [key, peer] : peers_) {
    peer.last_heard = now;
    peer.last_digest = now;
  }
  if (late >= config_.pause_limit) out.emplace_back(SelfPaused{late});
}

void Detector::watch(Time now, NodeKey key) {
  const auto [found, added] = peers_.try_emplace(key);
  if (!added) return;
  Peer& peer = found->second;
  peer.last_heard = now;
  peer.last_digest = now;
  const std::int64_t expected = to_us(config_.expected_interval);
  add_interval(peer, expected - expected / 4, config_.window);
  add_interval(peer, expected + expected / 4, config_.window);
  note_alarm(peer);
}

void Detector::heard(Time now, NodeKey key, bool digest, std::vector<Output>& out) {
  Peer* peer = find(key);
  if (peer == nullptr || peer->reach == Reach::dead) return;
  // The gap of an outage is no sample: it would make the next outage harder to see.
  const bool sample = digest && peer->reach == Reach::reachable && !peer->link_lost;
  if (sample) add_interval(*peer, to_us(now - peer->last_digest), config_.window);
  if (digest) peer->last_digest = now;
  peer->last_heard = now;
  peer->link_lost = false;
  note_alarm(*peer);
  if (peer->reach == Reach::reachable) return;
  peer->reach = Reach::reachable;
  rare_.hit(Mark::heard_again);
  out.emplace_back(Changed{key, Reach::reachable});
}

// Each input asks, and hardly ever an alarm is due: most do not look at all peers.
void Detector::suspect(Time now, std::vector<Output>& out) {
  if (now < first_alarm_) return;
  first_alarm_ = kNever;
  for (auto& [key, peer] : peers_) {
    if (peer.reach != Reach::reachable) continue;
    const Time alarm = alarm_at(peer);
    if (now < alarm) {
      first_alarm_ = std::min(first_alarm_, alarm);
      continue;
    }
    peer.reach = Reach::unreachable;
    out.emplace_back(Changed{key, Reach::unreachable});
  }
}

void Detector::note_alarm(const Peer& peer) {
  first_alarm_ = std::min(first_alarm_, alarm_at(peer));
}

void Detector::add_interval(Peer& peer, std::int64_t interval_us, std::size_t window) {
  // Capped, so that sums of squares stay far from overflow.
  const std::int64_t capped = std::clamp<std::int64_t>(interval_us, 0, 10'000'000);
  peer.intervals_us.push_back(capped);
  peer.sum_us += capped;
  peer.sum_squares_us += capped * capped;
  if (peer.intervals_us.size() <= window) return;
  const std::int64_t oldest = peer.intervals_us.front();
  peer.intervals_us.pop_front();
  peer.sum_us -= oldest;
  peer.sum_squares_us -= oldest * oldest;
}

// Digests that go out at once on a change make short intervals; they must not make the detector
// impatient, so the mean has a lower bound.
Duration Detector::mean(const Peer& peer) const {
  const auto count = static_cast<std::int64_t>(peer.intervals_us.size());
  const Duration measured =
      std::chrono::microseconds(peer.sum_us / std::max<std::int64_t>(count, 1));
  return std::max(measured, config_.expected_interval);
}

Duration Detector::deviation(const Peer& peer) const {
  const auto count = static_cast<double>(std::max<std::size_t>(peer.intervals_us.size(), 1));
  const double average = static_cast<double>(peer.sum_us) / count;
  const double variance = static_cast<double>(peer.sum_squares_us) / count - average * average;
  const auto us = static_cast<std::int64_t>(std::sqrt(std::max(variance, 0.0)));
  return std::clamp<Duration>(std::chrono::microseconds(us), config_.min_std_deviation,
                              config_.max_std_deviation);
}

Time Detector::alarm_at(const Peer& peer) const {
  const Duration pause = peer.link_lost ? Duration{} : config_.acceptable_pause;
  const auto spread =
      static_cast<std::int64_t>(static_cast<double>(to_us(deviation(peer))) * alarm_deviations_);
  return peer.last_heard + mean(peer) + pause + std::chrono::microseconds(spread);
}

std::string Detector::state_text() const {
  std::string out = "failure";
  for (const auto& [key, peer] : peers_) {
    out += " " + shardbus::to_text(key) + ":" + name_of(peer.reach) +
           (peer.link_lost ? ",link_lost" : "");
  }
  return out + " ignored_unknown=" + std::to_string(ignored_unknown_);
}

}  // namespace shardbus::failure
