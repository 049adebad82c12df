// UTF-8 of the wire's str fields.
#pragma once

#include <string>
#include <string_view>

namespace shardbus::wire {

// Strings reach clients whose decoders throw on broken UTF-8, so none may pass a node.
bool valid_utf8(std::string_view text) noexcept;

// `text` as it may be sent: valid, at most kTextBytesMax long, cut between characters. Bytes that
// are not UTF-8 become '?'. `scratch` holds the result where it differs from the input.
std::string_view clean_text(std::string_view text, std::string& scratch);

}  // namespace shardbus::wire
