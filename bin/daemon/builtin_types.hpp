// The entity types that every shardbusd hosts, so that a broker is useful alone: echo, counter, kv.
//
// They use the public API only, as an example for own types. bin/README.md describes the methods.
#pragma once

#include <shardbus/node.hpp>

namespace shardbusd {

shardbus::EntityType echo_type();
shardbus::EntityType counter_type();
shardbus::EntityType kv_type();

// Hosts all three with these options. Errors: those of Node::host.
shardbus::Status host_builtin_types(shardbus::Node& node, const shardbus::TypeOptions& options);

}  // namespace shardbusd
