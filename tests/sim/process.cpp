#include "sim/process.hpp"

namespace shardbus::sim {

Process::Process(Time now, control::ControlConfig control_config, runtime::DataConfig data_config,
                 SimWire& wire, ProcessOptions options)
    : notes(std::move(options.log), std::move(options.awake)),
      pool(options.length
               ? std::make_unique<SimPool>(std::move(options.later), std::move(options.length))
               : nullptr),
      control(now, std::move(control_config)),
      data(std::move(data_config), wire, notes, messenger, pool.get()) {
  messenger->plane = &data;
}

Process::~Process() {
  messenger->plane = nullptr;  // ports of entities that end now answer nobody
  data.end_entities();
}

Marks Process::marks() const {
  Marks all = control.marks();
  all.add(data.marks());
  return all;
}

std::string Process::state_text() const {
  std::string out = control.state_text() + "  data";
  for (const runtime::Type& type : data.dispatch().types()) {
    for (std::uint32_t i = 0; i < type.shard_count; ++i) {
      const runtime::Shard& shard = type.shards[i];
      const bool dull =
          shard.region.state() == RegionState::none && shard.route.may_send() && shard.held.empty();
      if (dull) continue;
      out += "\n    " + type.name + ":" + std::to_string(i) + " " + shard.region.state_text() +
             " via n" + std::to_string(shard.route.via().value) + " fence " +
             std::to_string(shard.route.fence_id()) + " waiting " +
             std::to_string(shard.held.size());
    }
  }
  return out + "\n";
}

}  // namespace shardbus::sim
