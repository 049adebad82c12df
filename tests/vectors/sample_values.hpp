// Values that the samples share, the same as in the examples of PROTOCOL.md.
#pragma once

#include "base/hash.hpp"
#include "wire/codec.hpp"

namespace shardbus::test {

inline NodeInfo sample_node(std::string_view name, std::uint64_t incarnation, unsigned port) {
  const auto endpoint = [port](unsigned offset) {
    return "tcp://10.0.0.1:" + std::to_string(port + offset);
  };
  return {std::string(name), incarnation, node_key(name, incarnation),
          endpoint(0),       endpoint(1), endpoint(2)};
}

inline NodeInfo node_a() {
  return sample_node("node-a", 1700000000000000, 7400);
}
inline NodeInfo node_b() {
  return sample_node("node-b", 1700000000000001, 7410);
}
inline Generation sample_generation(std::uint64_t counter = 5) {
  return {Term{3}, node_a().key, counter};
}

// `tell` counter cart-42 add {"amount": 3}.
inline wire::Message sample_tell() {
  wire::Message message;
  message.type = "counter";
  message.id = "cart-42";
  message.method = "add";
  message.payload =
      "\x81\xa6"
      "amount"
      "\x03";
  return message;
}

// `ask` counter cart-42 get, correlation 7, five seconds left.
inline wire::Message sample_ask() {
  wire::Message message;
  message.kind = wire::Kind::ask;
  message.correlation.opaque = "\x07";
  message.type = "counter";
  message.id = "cart-42";
  message.method = "get";
  message.time_left_ms = 5000;
  message.payload = "\xc0";
  return message;
}

}  // namespace shardbus::test
