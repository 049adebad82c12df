// Answers of nodes as text for people: aligned columns, no colours, the same with and without a
// TTY.
#pragma once

#include <string>
#include <vector>

#include "ctl/payload_json.hpp"

namespace shardbusctl {

// Rows of cells, the first being the heads. Columns are as wide as their widest cell; columns whose
// cells below the head are all numbers stand to the right.
std::string table(const std::vector<std::vector<std::string>>& rows);

// A value as one cell: text without quotes, "-" for nil, "3/a/12" for a generation.
std::string cell(const Json& value);

std::string render_status(const Json& status);
std::string render_members(const Json& members);
// Per type and owner; with `each_shard` one row per shard.
std::string render_shards(const Json& types, bool each_shard);
std::string render_where(const Json& where);

}  // namespace shardbusctl
