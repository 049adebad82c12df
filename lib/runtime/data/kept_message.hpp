// A message of an entity here that waits for its turn on this node: kept in parts, as nearly all of
// them are handled and not sent on, so that nobody has to read an envelope again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/region/region_types.hpp"
#include "wire/codec.hpp"

namespace shardbus::runtime {

class KeptMessage {
 public:
  KeptMessage(std::uint64_t sender, const wire::Message& message, Time deadline)
      : sender_(sender), deadline_(deadline), message_(message) {
    const std::size_t all = message.correlation.opaque.size() + message.id.size() +
                            message.method.size() + message.headers.size() + message.payload.size();
    bytes_.reserve(all);
    bytes_.append(message.correlation.opaque).append(message.id).append(message.method);
    bytes_.append(message.headers).append(message.payload);
  }
  explicit KeptMessage(const core::Parked& parked)
      : KeptMessage(parked.sender, wire::own_envelope(parked.envelope).message, parked.deadline) {}

  [[nodiscard]] std::uint64_t sender() const { return sender_; }
  [[nodiscard]] Time deadline() const { return deadline_; }
  [[nodiscard]] NodeKey asker() const { return message_.correlation.node; }
  [[nodiscard]] std::uint64_t slot() const { return message_.correlation.slot; }

  // Valid for as long as this stays where it is. `type` is the name of the entity type.
  [[nodiscard]] wire::Message view(std::string_view type) const {
    wire::Message message = message_;
    message.type = type;
    std::string_view rest = bytes_;
    for (std::string_view* part : {&message.correlation.opaque, &message.id, &message.method,
                                   &message.headers, &message.payload}) {
      const std::size_t size = part->size();  // of what it pointed to once
      *part = rest.substr(0, size);
      rest.remove_prefix(size);
    }
    return message;
  }
  // As it moves on with its shard.
  [[nodiscard]] core::Parked parked(std::string_view type) const {
    core::Parked parked{sender_, message_.generation, {}, deadline_, asker(), slot()};
    wire::encode(parked.envelope, view(type));
    return parked;
  }

 private:
  std::uint64_t sender_;
  Time deadline_;
  wire::Message message_;  // of its views the sizes alone mean anything
  std::string bytes_;
};

}  // namespace shardbus::runtime
