// Entity states in frames that no socket took: the worker never saw them, so the node has them
// still.
#pragma once

#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/ids.hpp"
#include "wire/codec.hpp"

namespace shardbus::runtime {

// Takes the states for which `wanted` holds out of a frame, and leaves the rest in order.
template <class Wanted>
std::vector<wire::Restore> take_unsent(std::string& frame, Wanted wanted) {
  std::vector<wire::Restore> taken;
  std::string kept;
  std::string_view rest = frame;
  wire::Envelope envelope;
  while (!rest.empty() && wire::next_envelope(rest, envelope) == Errc::ok) {
    wire::Restore state;
    const bool is_state =
        envelope.kind == wire::Kind::restore && wire::decode(envelope, state) == Errc::ok;
    if (is_state && wanted(state)) {
      taken.push_back(std::move(state));
    } else {
      kept.append(envelope.raw);
    }
  }
  if (!taken.empty()) frame = std::move(kept);
  return taken;
}

}  // namespace shardbus::runtime
