// Any msgpack value as JSON, so that a vector can be read without a codec of ours:
// bin is {"bin": "<hex>"}, everything else is itself.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace shardbus::test {

// Takes one value off the front of `rest`, which holds valid msgpack.
nlohmann::ordered_json to_json(std::string_view& rest);

}  // namespace shardbus::test
