// A region without messages: it keeps the states of protocols.md section 1 for each shard, answers
// commands, and moves a shard by one transfer frame and its acknowledgement.
#include <algorithm>
#include <map>
#include <utility>

#include "base/model/text.hpp"
#include "sim/region.hpp"
#include "wire/codec.hpp"

namespace shardbus::sim {
namespace {

struct Slot {
  RegionState state = RegionState::none;
  Generation generation;
  NodeKey other;
  Generation frozen;  // never own this or an older one
};

class StubRegion final : public Region {
 public:
  StubRegion(NodeKey self, const RegionBreaks& breaks) : self_(self), breaks_(breaks) {}

  void on_command(Time /*now*/, const ControlMessage& message) override {
    std::visit([this](const auto& m) { obey(m); }, message);
  }

  void on_frame(Time /*now*/, NodeKey from, std::string_view bytes) override {
    if (bytes.empty()) return;
    wire::Envelope envelope;
    std::string_view rest = bytes.substr(1);
    ControlMessage message;
    if (wire::next_envelope(rest, envelope) != Errc::ok) return;
    if (wire::decode(envelope, message) != Errc::ok) return;
    const auto* transfer = std::get_if<PrepareHandoff>(&message);
    if (transfer == nullptr) return;
    if (bytes.front() == 'x') take_transfer(from, *transfer);
    if (bytes.front() == 'a') transfer_done(*transfer);
  }

  void on_table(Time /*now*/, const AllocationTable& table) override {
    for (const TypeTable& type : table.types) {
      for (std::uint32_t i = 0; i < type.entries.size(); ++i) {
        Slot& slot = slots_[ShardName{type.name, ShardId{i}}];
        counts_[type.name] = type.shard_count;
        follow(slot, type.entries[i]);
      }
    }
  }

  void on_hosts(Time /*now*/, const std::vector<HostedType>& hosts) override {
    hosts_ = hosts;
    for (const HostedType& type : hosts) counts_[type.name] = type.shard_count;
  }

  void on_dead(Time /*now*/, NodeKey /*node*/) override {}
  void on_tick(Time /*now*/) override {}
  [[nodiscard]] Time next_deadline() const override { return kNever; }

  std::vector<RegionOutput> take_outputs() override { return std::exchange(outputs_, {}); }

  [[nodiscard]] std::vector<OwnedShard> owned() const override {
    std::vector<OwnedShard> result;
    for (const auto& [name, slot] : slots_) {
      if (slot.state == RegionState::owner && hosts(name.type)) {
        result.push_back(OwnedShard{name, slot.generation});
      }
    }
    return result;
  }

  [[nodiscard]] std::string state_text() const override {
    std::string out = "region " + to_text(self_) + " term " + std::to_string(term_.value);
    for (const auto& [name, slot] : slots_) {
      if (slot.state == RegionState::none) continue;
      out += " " + to_text(name) + "=" + to_text(slot.state) + "@" + to_text(slot.generation) +
             ">" + to_text(slot.other);
    }
    return out;
  }

 private:
  [[nodiscard]] bool hosts(const std::string& type) const {
    return std::any_of(hosts_.begin(), hosts_.end(),
                       [&](const HostedType& hosted) { return hosted.name == type; });
  }

  template <class T>
  void obey(const T& /*not for a region*/) {}

  void obey(const RehomeShard& m) {
    Slot& slot = slots_[m.shard];
    counts_[m.shard.type] = m.shard_count;
    if (!accepts(m.shard, slot, m.generation)) return;
    set(slot, RegionState::owner, m.generation, kNoNode);
    answer(RegionAnswerKind::owned, m.shard, m.generation);
  }

  void obey(const BeginHandoff& m) {
    Slot& slot = slots_[m.shard];
    if (slot.generation == m.generation && slot.state == RegionState::forward) return;
    if (slot.generation == m.generation && slot.state == RegionState::sending) {
      send_transfer(m.shard, slot);
      return;
    }
    if (!accepts(m.shard, slot, m.generation)) return;
    if (slot.state != RegionState::owner) {
      answer(RegionAnswerKind::refused, m.shard, m.generation);
      return;
    }
    set(slot, RegionState::sending, m.generation, m.next);
    send_transfer(m.shard, slot);
  }

  void obey(const PrepareHandoff& m) {
    Slot& slot = slots_[m.shard];
    if (slot.generation == m.generation && slot.state == RegionState::owner) {
      answer(RegionAnswerKind::owned, m.shard, m.generation);
      return;
    }
    if (slot.generation == m.generation && slot.state == RegionState::incoming) return;
    // An owner is not told to take its own shard; its coordinator has yet to learn that it owns it.
    if (slot.state == RegionState::owner || !accepts(m.shard, slot, m.generation)) return;
    set(slot, RegionState::incoming, m.generation, m.from);
  }

  void obey(const FreezeShard& m) {
    Slot& slot = slots_[m.shard];
    if (slot.state == RegionState::owner && m.generation <= slot.generation) {
      answer(RegionAnswerKind::owned, m.shard, slot.generation);
      return;
    }
    slot.frozen = std::max(slot.frozen, m.generation);
    if (slot.state == RegionState::incoming && slot.generation <= slot.frozen) {
      slot.state = RegionState::frozen;
    }
    answer(RegionAnswerKind::frozen, m.shard, m.generation);
  }

  void obey(const ReportRequest& m) {
    if (m.term < term_) return;
    term_ = m.term;
    RegionReport report{m.term, m.claimant, self_, {}};
    for (const auto& [name, slot] : slots_) {
      if (slot.state == RegionState::none) continue;
      report.shards.push_back(
          ReportedShard{name, counts_[name.type], slot.state, slot.generation, slot.other});
    }
    outputs_.push_back(RegionOutput{kNoNode, std::move(report), {}});
  }

  // Whether a command with this generation is news; says so to the sender where it is not.
  bool accepts(const ShardName& name, const Slot& slot, const Generation& generation) {
    if (breaks_.generation_unchecked) return true;
    const bool repeated = slot.state == RegionState::owner && slot.generation == generation;
    const bool news = generation > slot.generation && generation > slot.frozen;
    if (generation.term < term_) {
      answer(RegionAnswerKind::refused, name, generation);
    } else if (!repeated && !news) {
      answer(RegionAnswerKind::frozen, name, generation);
    } else {
      term_ = std::max(term_, generation.term);
      return true;
    }
    return false;
  }

  void send_transfer(const ShardName& name, const Slot& slot) {
    frame(slot.other, 'x', PrepareHandoff{name, slot.generation, self_});
  }

  void take_transfer(NodeKey from, const PrepareHandoff& m) {
    Slot& slot = slots_[m.shard];
    const bool known = slot.state == RegionState::incoming && slot.generation == m.generation;
    const bool takes = (known || slot.generation < m.generation) && m.generation > slot.frozen &&
                       m.generation.term >= term_;
    if (takes || breaks_.generation_unchecked) {
      set(slot, RegionState::owner, m.generation, kNoNode);
      answer(RegionAnswerKind::owned, m.shard, slot.generation);
    }
    // Owned or passed: acknowledged again, nothing applied.
    const bool passed = slot.generation >= m.generation && slot.state != RegionState::frozen;
    if (passed) frame(from, 'a', m);
  }

  void transfer_done(const PrepareHandoff& m) {
    Slot& slot = slots_[m.shard];
    if (slot.state == RegionState::sending && slot.generation == m.generation) {
      slot.state = RegionState::forward;
    }
  }

  // A higher generation elsewhere ends every right to the shard.
  void follow(Slot& slot, const TableEntry& entry) {
    if (entry.generation < slot.generation) return;
    if (entry.generation == slot.generation) {
      if (slot.state == RegionState::sending && entry.owner == slot.other) {
        slot.state = RegionState::forward;
      }
      return;
    }
    if (entry.owner == self_) return;
    set(slot, RegionState::none, entry.generation, kNoNode);
  }

  static void set(Slot& slot, RegionState state, const Generation& generation, NodeKey other) {
    slot.state = state;
    slot.generation = generation;
    slot.other = other;
  }

  void answer(RegionAnswerKind kind, const ShardName& shard, const Generation& generation) {
    outputs_.push_back(RegionOutput{kNoNode, RegionAnswer{kind, shard, generation, self_}, {}});
  }

  void frame(NodeKey to, char kind, const PrepareHandoff& content) {
    std::string bytes(1, kind);
    wire::encode(bytes, ControlMessage(content));
    outputs_.push_back(RegionOutput{to, {}, std::move(bytes)});
  }

  NodeKey self_;
  RegionBreaks breaks_;
  Term term_;
  std::map<ShardName, Slot> slots_;
  std::map<std::string, std::uint32_t> counts_;  // shards per type
  std::vector<HostedType> hosts_;
  std::vector<RegionOutput> outputs_;
};

}  // namespace

std::unique_ptr<Region> make_stub_region(NodeKey self, const RegionBreaks& breaks) {
  return std::make_unique<StubRegion>(self, breaks);
}

}  // namespace shardbus::sim
