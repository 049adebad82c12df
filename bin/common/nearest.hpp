// Guesses what a mistyped word was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardbus_tools {

// The candidate that `word` was probably meant to be; empty if none is near. Upper case, and which
// of - . _ stands between words, make no difference.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace shardbus_tools
