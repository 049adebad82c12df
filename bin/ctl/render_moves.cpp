#include "ctl/render_moves.hpp"

#include <cstdio>

#include "ctl/render.hpp"

namespace shardbusctl {
namespace {

std::string shard_of(const Json& row) {
  return cell(row.at("type")) + ":" + cell(row.at("shard"));
}

std::string ms(const Json& value) {
  if (!value.is_number()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value.get<double>());
  return text;
}

std::string joined(const Json& names) {
  std::string text;
  for (const Json& name : names) text += (text.empty() ? "" : " ") + cell(name);
  return text.empty() ? "-" : text;
}

}  // namespace

std::string render_plan(const Json& plan) {
  std::string text;
  if (plan.at("moves").empty()) {
    text = "nothing to move\n";
  } else {
    std::vector<std::vector<std::string>> rows{
        {"SHARD", "FROM", "TO", "WHY", "ENTITIES", "BYTES", "PAUSE_MS"}};
    for (const Json& move : plan.at("moves"))
      rows.push_back({shard_of(move), cell(move.at("from")), cell(move.at("to")),
                      cell(move.at("why")), cell(move.at("entities")), cell(move.at("bytes")),
                      ms(move.at("pause_ms"))});
    text = table(rows) + "\nto make these moves: shardbusctl apply " + cell(plan.at("plan")) + "\n";
  }
  const std::string frozen = plan.at("frozen").get<std::string>();
  return frozen.empty() ? text : text + "no moves for balance now: " + frozen + "\n";
}

std::string render_moves(const Json& moves) {
  std::string text = "cordoned   " + joined(moves.at("cordoned")) + "\n" + "draining   " +
                     joined(moves.at("draining")) + "\n" + "rebalance  " +
                     (moves.at("suspended") == true ? "suspended" : "on") + "\n" + "waiting    " +
                     cell(moves.at("waiting")) + "\n";
  if (!moves.at("pins").empty()) {
    std::vector<std::vector<std::string>> rows{{"PIN", "NODE"}};
    for (const Json& pin : moves.at("pins")) rows.push_back({shard_of(pin), cell(pin.at("node"))});
    text += "\n" + table(rows);
  }
  if (moves.at("open").empty()) return text + "\nno move is under way\n";
  std::vector<std::vector<std::string>> rows{
      {"SHARD", "KIND", "FROM", "TO", "FOR_MS", "WHY", "ACTOR"}};
  for (const Json& move : moves.at("open"))
    rows.push_back({shard_of(move), cell(move.at("kind")), cell(move.at("from")),
                    cell(move.at("to")), cell(move.at("for_ms")), cell(move.at("why")),
                    cell(move.at("actor"))});
  return text + "\n" + table(rows);
}

std::string render_history(const Json& changes) {
  std::vector<std::vector<std::string>> rows{
      {"AGO_MS", "SHARD", "FROM", "TO", "GENERATION", "WHY", "ACTOR"}};
  for (const Json& change : changes)
    rows.push_back({cell(change.at("ago_ms")), shard_of(change), cell(change.at("from")),
                    cell(change.at("to")), cell(change.at("generation")), cell(change.at("why")),
                    cell(change.at("actor"))});
  return table(rows);
}

}  // namespace shardbusctl
