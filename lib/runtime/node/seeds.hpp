// The seeds of a node while it is in no cluster: looks them up, asks each who it is, and knows of
// each one why it has not answered. It decides nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "runtime/node/seed_lookup.hpp"
#include "shardbus/options.hpp"
#include "transport/probe.hpp"
#include "transport/zmq.hpp"
#include "wire/codec.hpp"

namespace shardbus::runtime {

class Seeds {
 public:
  using Tell = std::function<void(LogLevel, std::string_view event, const std::string& text)>;
  struct Answer {
    std::string address;
    bool first = false;  // of the first seed of the list, if that is one node for sure
    wire::Here here;
  };

  // `configured` was validated.
  Seeds(transport::ZmqContext& context, const std::vector<std::string>& configured, Tell tell);

  void open(Time now);
  void add(const std::string& address, Time now);  // of a former member
  void ask(Time now);
  std::vector<Answer> read(Time now);
  void close() { seeds_.clear(); }

  [[nodiscard]] bool none() const { return sources_.empty() && seeds_.empty(); }
  // Whether all sources have been looked up, and each seed has said who it is, refuses connections,
  // or had its time: longer where something listens, as a node may be slow or stand still.
  [[nodiscard]] bool heard_out(Time now) const;
  [[nodiscard]] bool all_answered() const;
  // "tcp://10.0.0.1:7400 (connection refused), dns://x:7400 (x: Name or service not known)"
  [[nodiscard]] std::string unanswered() const;
  [[nodiscard]] std::string first() const { return sources_.empty() ? "" : sources_[0].text; }
  [[nodiscard]] bool list_is_plain() const;
  [[nodiscard]] bool readable() const;
  [[nodiscard]] std::vector<int> descriptors() const;

 private:
  struct Seed {
    std::string address;
    std::string source;  // as configured
    transport::Socket socket;
    Time next_who{};
    bool answered = false;
    Time alive{};                                    // last connect or answer
    Time since{};                                    // asked for the first time
    std::optional<transport::Prober::Outcome> port;  // as seen last
    std::string trouble;
  };

  void look_up(Time now);
  void take_findings(Time now);
  void note(const SeedFinding& finding, Time now);
  void open_seed(const std::string& address, const std::string& source, Time now);
  void ask_one(Seed& seed, std::string_view who, Time now);
  void read_probes(Time now);
  [[nodiscard]] bool is_first(const Seed& seed) const;

  transport::ZmqContext& context_;
  Tell tell_;
  std::vector<transport::SeedSource> sources_;   // in the order of the list
  std::map<std::string, SeedFinding> findings_;  // by source: the newest that is known
  std::map<std::string, std::string> troubles_;  // by source: of the last look-up
  std::vector<Seed> seeds_;
  SeedLookup lookup_;
  transport::Prober prober_;
  Time next_lookup_{};
  Time known_at_ = kNever;
};

}  // namespace shardbus::runtime
