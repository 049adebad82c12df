#include "ctl/render.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>

namespace shardbusctl {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isdigit(c) != 0 || c == '.' || c == '-';
  });
}

std::size_t width(const std::string& text) {
  // Bytes that go on a UTF-8 character take no room.
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

struct Column {
  std::size_t width = 0;
  bool right = false;
};

std::vector<Column> measure(const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns(rows.front().size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t numbers = 0, blanks = 0;
    for (const auto& row : rows) {
      columns[i].width = std::max(columns[i].width, width(row[i]));
      if (row[i] == "-") ++blanks;
      if (row[i] != "-" && is_number(row[i])) ++numbers;
    }
    // The head is neither.
    columns[i].right = numbers > 0 && numbers + blanks == rows.size() - 1;
  }
  return columns;
}

Json member(const Json& object, const std::string& name) {
  return object.is_object() && object.contains(name) ? object[name] : Json(nullptr);
}

// "key: value" lines of the members that are there, in this order.
std::string lines(const Json& object, const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> rows{{"", ""}};
  for (const std::string& name : names) {
    if (object.contains(name)) rows.push_back({name, cell(object[name])});
  }
  const std::size_t widest = measure(rows)[0].width;
  std::string text;
  for (std::size_t i = 1; i < rows.size(); ++i)
    text += rows[i][0] + std::string(widest - rows[i][0].size() + 2, ' ') + rows[i][1] + "\n";
  return text;
}

std::string yes_no(const Json& value) {
  return value == true ? "yes" : "no";
}

// What a member is to the cluster.
std::string standing(const Json& one) {
  std::string text;
  for (const std::string name : {"self", "oldest", "coordinator", "cordoned", "draining"}) {
    if (member(one, name) == true) text += (text.empty() ? "" : ",") + name;
  }
  return text.empty() ? "-" : text;
}

std::string list(const Json& values) {
  std::string text;
  for (const Json& value : values) text += (text.empty() ? "" : ",") + cell(value);
  return text.empty() ? "-" : text;
}

std::string number(const Json& value) {
  if (value.is_object() && value.contains("$float")) return cell(value.at("$float"));
  if (!value.is_number_float()) return cell(value);
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value.get<double>());
  return text;
}

std::string render_owners(const Json& types) {
  std::vector<std::vector<std::string>> rows{{"TYPE", "OWNER", "SHARDS", "OF"}};
  for (const Json& type : types) {
    std::map<std::string, std::size_t> owned;
    for (const Json& shard : member(type, "shards")) ++owned[cell(shard.at(1))];
    for (const auto& [owner, count] : owned)
      rows.push_back({cell(member(type, "type")), owner == "-" ? "(nobody)" : owner,
                      std::to_string(count), cell(member(type, "shard_count"))});
  }
  return table(rows);
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows) {
  const std::vector<Column> columns = measure(rows);
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string gap(columns[i].width - width(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (columns[i].right ? gap + row[i] : row[i] + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string cell(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>().empty() ? "-" : value.get<std::string>();
  if (value.is_boolean()) return yes_no(value);
  if (value.is_array() && value.size() == 3)
    return cell(value[0]) + "/" + cell(value[1]) + "/" + cell(value[2]);
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string render_status(const Json& status) {
  std::string text = lines(
      status,
      {"node",       "key",         "incarnation",  "state",       "ready",          "why",
       "cluster",    "cluster_id",  "term",         "coordinator", "authority",      "evidence",
       "version",    "uptime_ms",   "listen",       "peer",        "gossip",         "members",
       "up",         "unreachable", "shards_owned", "entities",    "sessions",       "pending_asks",
       "moves_open", "min_members", "held_back",    "downing",     "founded_anew_ms"});
  const Json counters = member(status, "counters");
  if (counters.empty()) return text;
  std::vector<std::vector<std::string>> rows{{"COUNTER", "VALUE"}};
  for (const auto& [name, value] : counters.items()) {
    // Most are zero in a healthy node; --json has them all.
    if (value != 0) rows.push_back({name, cell(value)});
  }
  return rows.size() > 1 ? text + "\n" + table(rows) : text;
}

std::string render_members(const Json& members) {
  std::vector<std::vector<std::string>> rows{{"NAME", "STATE", "REACHABLE", "PHI", "AGE", "IS",
                                              "ZONE", "ROLES", "CAPACITY", "VERSION", "FRONT",
                                              "PEER"}};
  for (const Json& one : members)
    rows.push_back(
        {cell(member(one, "name")), cell(member(one, "state")), yes_no(member(one, "reachable")),
         number(member(one, "phi")), cell(member(one, "age")), standing(one),
         cell(member(one, "zone")), list(member(one, "roles")), cell(member(one, "capacity")),
         cell(member(one, "version")), cell(member(one, "front")), cell(member(one, "peer"))});
  return table(rows);
}

std::string render_shards(const Json& types, bool each_shard) {
  if (!each_shard) return render_owners(types);
  std::vector<std::vector<std::string>> rows{{"TYPE", "SHARD", "OWNER", "GENERATION", "STATE"}};
  for (const Json& type : types) {
    for (const Json& shard : member(type, "shards"))
      rows.push_back({cell(member(type, "type")), cell(shard.at(0)), cell(shard.at(1)),
                      cell(shard.at(2)), cell(shard.at(3))});
  }
  return table(rows);
}

std::string render_where(const Json& where) {
  return lines(where,
               {"type", "id", "hash", "tag", "shard", "shard_count", "owner", "generation", "why"});
}

}  // namespace shardbusctl
