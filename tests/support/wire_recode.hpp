// Decodes any envelope into its struct and encodes that again: what round-trip tests compare.
#pragma once

#include <string>
#include <string_view>

#include "wire/codec.hpp"

namespace shardbus::test {

// Takes one envelope off the front of `rest` and appends its canonical form to `out`.
Errc recode(std::string_view& rest, std::string& out);

std::string hex(std::string_view bytes);
std::string unhex(std::string_view text);

}  // namespace shardbus::test
