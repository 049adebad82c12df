// Payloads as JSON, both ways and without loss.
//
// Shape: 64-bit integers stay exact (one that fits no 64 bits is refused, not rounded). What JSON
// has no word for is an object with one member: {"$bin": "hex"} is binary, {"$ext": [type, "hex"]}
// an extension, {"$str": "hex"} a string that is not UTF-8, {"$float": "nan" | "inf" | "-inf"},
// and {"$map": [[key, value], ...]} a map whose keys are not all strings. A map that looks like one
// of these is written as $map, too.
#pragma once

#include <msgpack.hpp>
#include <nlohmann/json.hpp>
#include <shardbus/status.hpp>
#include <string>
#include <string_view>

namespace shardbusctl {

// Ordered: a payload is shown as its sender wrote it.
using Json = nlohmann::ordered_json;

// Depth of nesting that both ways accept; as that of the library.
inline constexpr std::size_t kMaxDepth = 32;

// Errors: invalid_argument with the place in the text.
shardbus::Result<std::string> json_to_msgpack(std::string_view text);
// An empty payload is null. Errors: decode_failed where the bytes are not one msgpack value.
shardbus::Result<Json> msgpack_to_json(std::string_view payload);

}  // namespace shardbusctl
