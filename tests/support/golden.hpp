// Golden transcripts: a file holds commands ("> ...") and, below each, exactly what it gave.
// Run with --rewrite to write the files anew; then read the diff.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace shardbus::golden {

// Plays the commands of one file; made anew for each.
class Player {
 public:
  virtual ~Player() = default;
  // Returns the transcript of one command: lines, each ended by '\n'. Throws on a wrong command.
  virtual std::string play(const std::string& command) = 0;
};

using MakePlayer = std::function<std::unique_ptr<Player>()>;

// Registers one test per *.txt of `folder`. `rewrite`: writes instead of comparing.
void register_folder(const std::string& folder, const MakePlayer& make, bool rewrite);

// Takes --rewrite off the arguments.
bool take_rewrite_flag(int& argc, char** argv);

}  // namespace shardbus::golden
