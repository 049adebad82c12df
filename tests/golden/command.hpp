// Reads the commands of golden files: "<ms> <verb> [word ...] [key=value ...]".
// Nodes are numbers, lists are joined by commas, triples by slashes.
#pragma once

#include <chrono>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/model/keys.hpp"
#include "base/time.hpp"
#include "core/downing/policy.hpp"

namespace shardbus::golden {

struct Command {
  Time now;
  std::string verb;
  std::vector<std::string> words;
  std::map<std::string, std::string> values;

  explicit Command(const std::string& text) {
    std::istringstream in(text);
    std::int64_t ms = 0;
    if (!(in >> ms >> verb)) throw std::invalid_argument("no time and verb: " + text);
    now = Time{} + std::chrono::milliseconds(ms);
    for (std::string word; in >> word;) {
      const auto equals = word.find('=');
      if (equals == std::string::npos) {
        words.push_back(word);
      } else {
        values[word.substr(0, equals)] = word.substr(equals + 1);
      }
    }
  }

  [[nodiscard]] std::string value(const std::string& key, const std::string& otherwise = "") const {
    const auto found = values.find(key);
    return found == values.end() ? otherwise : found->second;
  }
};

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

inline NodeKey node(const std::string& text) {
  return NodeKey{std::stoull(text)};
}

inline KeySet nodes(const std::string& text) {
  KeySet keys;
  for (const std::string& part : split(text, ',')) insert(keys, node(part));
  return keys;
}

// "term/claimant/number" as a Stamp, Generation or TableVersion.
template <class T>
T triple(const std::string& text) {
  const auto parts = split(text, '/');
  return T{Term{std::stoull(parts.at(0))}, node(parts.at(1)), std::stoull(parts.at(2))};
}

// members=1,2:joining,3 stamp=1/1/3 previous=1,2 evidence=1; counted unless previous is given.
inline MemberSet member_set(const Command& command) {
  static const std::map<std::string, MemberState> kStates = {{"joining", MemberState::joining},
                                                             {"up", MemberState::up},
                                                             {"leaving", MemberState::leaving},
                                                             {"exiting", MemberState::exiting}};
  MemberSet set;
  set.stamp = triple<Stamp>(command.value("stamp", "1/1/1"));
  set.previous = nodes(command.value("previous"));
  set.counted = set.previous.empty();
  set.evidence = command.value("evidence") == "1";
  std::uint64_t age = 0;
  for (const std::string& part : split(command.value("members"), ',')) {
    const auto fields = split(part, ':');
    Member member;
    member.node.key = node(fields[0]);
    member.node.name = "node" + fields[0];
    member.node.incarnation = 1;
    member.state = fields.size() > 1 ? kStates.at(fields[1]) : MemberState::up;
    member.age = ++age;
    set.members.push_back(member);
  }
  return set;
}

// POLICY quorum_size= down_if_alone=
inline downing::Rules downing_rules(const Command& command) {
  static const std::map<std::string, DowningPolicy> kPolicies = {
      {"keep-majority", DowningPolicy::keep_majority},
      {"static-quorum", DowningPolicy::static_quorum},
      {"keep-oldest", DowningPolicy::keep_oldest},
      {"down-all", DowningPolicy::down_all}};
  return {kPolicies.at(command.words.at(0)),
          static_cast<std::uint32_t>(std::stoul(command.value("quorum_size", "0"))),
          command.value("down_if_alone", "true") == "true"};
}

// Every output on its own line.
template <class Outputs>
std::string lines_of(const Outputs& outputs) {
  std::string out;
  for (const auto& output : outputs) out += to_text(output) + "\n";
  return out;
}

}  // namespace shardbus::golden
