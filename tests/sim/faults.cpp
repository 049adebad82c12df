#include "sim/faults.hpp"

#include <algorithm>
#include <array>

#include "base/model/text.hpp"

namespace shardbus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kKinds = static_cast<std::size_t>(Fault::count_of_faults);
constexpr std::array<const char*, kKinds> kNames = {
    "crash",  "restart", "pause",   "slow",  "late_control", "clock_jump", "drift",
    "split",  "one_way", "isolate", "lossy", "bad_link",     "clog",       "reset",
    "garble", "leave",   "hosts",   "down",  "stuck",        "moves",      "drain"};

// How long what a fault does goes on, in milliseconds.
struct Range {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};
constexpr std::array<Range, kKinds> kLasts = {
    {{5, 4000},   {0, 0},      {100, 5000}, {200, 6000}, {200, 6000},  {10, 2000},   {0, 0},
     {100, 7000}, {100, 6000}, {100, 7000}, {500, 8000}, {500, 6000},  {100, 12000}, {0, 0},
     {0, 0},      {0, 0},      {5, 4000},   {0, 0},      {2500, 7000}, {0, 60},      {5, 4000}}};

// Drawn apart, see add_orders.
constexpr std::size_t kOrderKinds = 2;
constexpr std::int64_t kDriftMax = 30'000;  // ppm

bool is_gentle(Fault kind) {
  return kind == Fault::leave || kind == Fault::hosts || kind == Fault::drift ||
         kind == Fault::clock_jump || kind == Fault::lossy;
}

Duration between(Random& random, std::uint64_t low_ms, std::uint64_t high_ms) {
  return std::chrono::milliseconds(random.between(low_ms, high_ms));
}

// Mostly short, now and then above every limit.
Duration lateness(Random& random) {
  if (random.chance(0.6)) return between(random, 1, 60);
  return random.chance(0.7) ? between(random, 60, 700) : between(random, 700, 2500);
}

// From a millisecond to an hour, either way.
Duration jump(Random& random) {
  const auto scale = std::int64_t{1} << random.below(22);
  const Duration by = std::chrono::milliseconds(
      scale + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(scale))));
  return random.chance(0.6) ? -by : by;
}

}  // namespace

const char* name_of(Fault kind) {
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string describe(const PlannedFault& fault) {
  const auto name = [](int machine) { return std::string(1, static_cast<char>('a' + machine)); };
  return std::to_string(fault.index) + " at " + to_text(fault.at) + ": " + name_of(fault.kind) +
         " " + name(fault.machine) + (fault.at_decider ? " or whoever decides" : "") + " (and " +
         name(fault.other) + ", where it takes two) for " + to_text(fault.lasts);
}

bool FaultMix::has(Fault kind) const {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

bool FaultMix::overlap_allowed() const {
  if (lossless) return false;
  const bool cuts = has(Fault::split) || has(Fault::one_way) || has(Fault::isolate) ||
                    has(Fault::bad_link) || has(Fault::down) || has(Fault::stuck);
  const bool stands = has(Fault::pause) || has(Fault::slow) || has(Fault::late_control);
  const bool ends =
      has(Fault::crash) || has(Fault::leave) || has(Fault::restart) || has(Fault::clock_jump);
  return cuts || (stands && ends);
}

FaultMix draw_mix(Random& random, bool lossless) {
  FaultMix mix;
  mix.lossless = lossless;
  for (std::size_t kind = 0; kind < kKinds - kOrderKinds; ++kind) {
    const auto fault = static_cast<Fault>(kind);
    if (random.chance(0.5) && (is_gentle(fault) || !lossless)) mix.kinds.push_back(fault);
  }
  return mix;
}

std::vector<PlannedFault> draw_faults(std::uint64_t seed, const FaultMix& mix, int machines,
                                      Duration until) {
  std::vector<PlannedFault> plan;
  if (mix.kinds.empty()) return plan;
  Random times(seed);
  const auto all = static_cast<std::uint64_t>(machines);
  const std::uint64_t pace = times.chance(0.3) ? 400 : 2500;
  for (Duration at = between(times, 500, 2500); at < until; at += between(times, 20, pace)) {
    Random own(times.next());
    PlannedFault fault;
    fault.index = static_cast<int>(plan.size());
    fault.at = at;
    fault.kind = mix.kinds[own.below(mix.kinds.size())];
    fault.machine = static_cast<int>(own.below(all));
    fault.other = (fault.machine + 1 + static_cast<int>(own.below(all - 1))) % machines;
    const Range lasts = kLasts.at(static_cast<std::size_t>(fault.kind));
    // Half of them short, so that much happens at once.
    fault.lasts =
        between(own, lasts.low, own.chance(0.5) ? lasts.high : lasts.low + lasts.high / 8);
    fault.at_decider = own.chance(0.2);
    fault.seed = own.next();
    plan.push_back(fault);
  }
  return plan;
}

void add_orders(std::uint64_t seed, const FaultMix& mix, int machines, Duration until,
                std::vector<PlannedFault>& plan) {
  Random times(seed);
  if (times.chance(0.1)) return;
  const auto all = static_cast<std::uint64_t>(machines);
  constexpr std::array<std::uint64_t, 5> kPaces = {80, 300, 300, 2000, 2000};
  const std::uint64_t pace = kPaces.at(times.below(kPaces.size()));
  const bool breaks = !mix.kinds.empty() && !mix.lossless && times.chance(0.7);
  for (Duration at = between(times, 2000, 4000); at < until; at += between(times, 20, pace)) {
    Random own(times.next());
    PlannedFault order;
    order.index = static_cast<int>(plan.size());
    order.at = at;
    order.kind = own.chance(0.9) ? Fault::moves : Fault::drain;
    order.machine = static_cast<int>(own.below(all));
    order.other = (order.machine + 1 + static_cast<int>(own.below(all - 1))) % machines;
    const Range lasts = kLasts.at(static_cast<std::size_t>(order.kind));
    order.lasts = between(own, lasts.low, lasts.high);
    order.seed = own.next();
    plan.push_back(order);
    if (!breaks || own.chance(0.5)) continue;
    PlannedFault behind = order;
    ++behind.index;
    behind.at += std::chrono::microseconds(own.below(own.chance(0.5) ? 5'000 : 40'000));
    behind.kind = mix.kinds[own.below(mix.kinds.size())];
    behind.at_decider = own.chance(0.3);
    const Range range = kLasts.at(static_cast<std::size_t>(behind.kind));
    behind.lasts = between(own, range.low, range.low + (range.high - range.low) / 4);
    behind.seed = own.next();
    plan.push_back(behind);
  }
}

void FaultDriver::schedule(const std::vector<PlannedFault>& plan, const std::set<int>& without) {
  for (const PlannedFault& fault : plan) {
    if (without.contains(fault.index)) continue;
    world_.after(fault.at, [this, fault] {
      if (over_) return;
      ++begun_;
      PlannedFault aimed = fault;
      const int decider = fault.at_decider ? world_.decider() : -1;
      if (decider >= 0) aimed.machine = decider;
      if (aimed.other == aimed.machine) aimed.other = fault.machine;
      begin(aimed);
    });
  }
}

void FaultDriver::begin(const PlannedFault& fault) {
  switch (fault.kind) {
    case Fault::crash:
    case Fault::restart:
    case Fault::pause:
    case Fault::slow:
    case Fault::late_control:
      return of_process(fault);
    case Fault::clock_jump:
    case Fault::drift:
      return of_clock(fault);
    case Fault::one_way:
    case Fault::lossy:
    case Fault::bad_link:
    case Fault::clog:
    case Fault::reset:
    case Fault::garble:
      return of_link(fault);
    case Fault::split:
    case Fault::isolate:
    case Fault::leave:
    case Fault::hosts:
    case Fault::down:
    case Fault::stuck:
    case Fault::count_of_faults:
      return of_cluster(fault);
    case Fault::moves:
    case Fault::drain:
      return of_operator(fault);
  }
}

void FaultDriver::of_process(const PlannedFault& fault) {
  const int machine = fault.machine;
  const auto later = [&](auto what) { world_.after(fault.lasts, what); };
  Random random(fault.seed);
  switch (fault.kind) {
    case Fault::crash:
      world_.crash(machine);
      return later([this, machine] { world_.start(machine, false); });
    case Fault::restart:
      world_.crash(machine);
      return world_.start(machine, false);
    case Fault::pause:
      world_.pause(machine);
      return later([this, machine] { world_.resume(machine); });
    case Fault::slow:
      world_.slow(machine, lateness(random));
      return later([this, machine] { world_.slow(machine, {}); });
    default:
      world_.slow_control(machine, lateness(random));
      return later([this, machine] { world_.slow_control(machine, {}); });
  }
}

void FaultDriver::of_clock(const PlannedFault& fault) {
  const int machine = fault.machine;
  Random random(fault.seed);
  if (fault.kind == Fault::drift) {
    const auto rate = static_cast<std::int64_t>(random.below(2 * kDriftMax + 1)) - kDriftMax;
    return world_.drift(machine, rate);
  }
  world_.jump_clock(machine, jump(random));
  if (lossless_ || random.chance(0.4)) return;
  world_.crash(machine);
  world_.after(fault.lasts, [this, machine] { world_.start(machine, false); });
}

void FaultDriver::of_link(const PlannedFault& fault) {
  const int from = fault.machine;
  const int to = fault.other;
  const auto later = [&](auto what) { world_.after(fault.lasts, what); };
  Random random(fault.seed);
  switch (fault.kind) {
    case Fault::one_way:
      world_.block(from, to);
      return later([this, from, to] { world_.unblock(from, to); });
    case Fault::clog:
      world_.clog(from, to);
      return later([this, from, to] { world_.release(from, to); });
    case Fault::lossy: {
      LinkWeather weather{static_cast<double>(random.below(30)) / 100,
                          static_cast<double>(random.below(30)) / 100, between(random, 0, 50), 0};
      world_.set_weather(from, to, weather);
      return later([this, from, to] { world_.set_weather(from, to, {}); });
    }
    case Fault::bad_link: {
      LinkWeather weather{static_cast<double>(random.between(30, 100)) / 100, 0.2,
                          between(random, 0, 1500), static_cast<double>(random.below(20)) / 100};
      world_.set_weather(from, to, weather);
      return later([this, from, to] { world_.set_weather(from, to, {}); });
    }
    case Fault::reset:
      return world_.reset_link(from, to);
    default:
      return world_.garble(from, to, static_cast<Garble>(random.between(1, 3)));
  }
}

void FaultDriver::of_cluster(const PlannedFault& fault) {
  const int machine = fault.machine;
  Random random(fault.seed);
  switch (fault.kind) {
    case Fault::split: {
      const std::uint64_t all = (std::uint64_t{1} << world_.machines()) - 1;
      return cut(1 + random.below(all - 1), fault.lasts);
    }
    case Fault::isolate:
      return cut(std::uint64_t{1} << machine, fault.lasts);
    case Fault::stuck:
      // Late, and not so late that its passes are held.
      world_.slow_control(machine, between(random, 60, 700));
      world_.after(fault.lasts, [this, machine] { world_.slow_control(machine, {}); });
      return cut(std::uint64_t{1} << machine, fault.lasts);
    case Fault::leave:
      return world_.leave(machine);
    case Fault::hosts:
      if (!world_.can_spare(machine)) return;
      world_.host(machine, random.chance(0.5)
                               ? std::vector<HostedType>{types_[random.below(types_.size())]}
                               : std::vector<HostedType>{});
      return world_.after(fault.lasts, [this, machine] { world_.host(machine, types_); });
    default:
      // Operators do this to what stands still; to a healthy node only by mistake.
      if (world_.node(fault.other).paused || random.chance(0.1)) world_.down(machine, fault.other);
      return;
  }
}

// Of the two machines one is where faults strike that come right behind.
void FaultDriver::of_operator(const PlannedFault& fault) {
  using coordinator::OrderKind;
  Random random(fault.seed);
  const auto order = [this](OrderKind kind, int machine, const ShardName& shard) {
    world_.order({kind, world_.node(machine).name, shard, {}, {}});
  };
  if (fault.kind == Fault::drain) {
    order(OrderKind::drain, fault.machine, {});
    return world_.after(
        fault.lasts, [order, machine = fault.machine] { order(OrderKind::uncordon, machine, {}); });
  }
  ShardName shard;
  const bool one = random.chance(0.6);
  const bool hot = random.chance(0.6);  // always the same one, so that its moves meet
  const std::uint64_t moves = random.between(1, 5);
  for (std::uint64_t i = 0; i < moves; ++i) {
    if (i == 0 || !one) {
      const HostedType& type = hot ? types_.front() : types_[random.below(types_.size())];
      const auto number = hot ? 0 : static_cast<std::uint32_t>(random.below(type.shard_count));
      shard = {type.name, ShardId{number}};
    }
    const int to = random.chance(0.5) ? fault.machine : fault.other;
    const auto wait = Duration(static_cast<std::int64_t>(
        random.below(static_cast<std::uint64_t>(fault.lasts.count()) + 1)));
    world_.after(wait, [this, order, to, shard] {
      if (!over_) order(OrderKind::move, to, shard);
    });
  }
}

void FaultDriver::cut(std::uint64_t side, Duration lasts) {
  const auto each = [this, side](auto&& what) {
    for (int a = 0; a < world_.machines(); ++a) {
      for (int b = 0; b < world_.machines(); ++b) {
        if (((side >> a) & 1U) != ((side >> b) & 1U)) what(a, b);
      }
    }
  };
  each([this](int a, int b) { world_.block(a, b); });
  world_.after(lasts, [this, each] { each([this](int a, int b) { world_.unblock(a, b); }); });
}

}  // namespace shardbus::sim
