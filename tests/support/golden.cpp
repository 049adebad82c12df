#include "support/golden.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace shardbus::golden {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The file as it should be: comments and commands as they are, each with its transcript.
std::string perform(const std::string& script, Player& player) {
  std::string out;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    const bool command = line.rfind("> ", 0) == 0;
    if (command || line.empty() || line[0] == '#') out += line + "\n";
    if (command) out += player.play(line.substr(2));
  }
  return out;
}

class GoldenTest : public testing::Test {
 public:
  GoldenTest(fs::path path, MakePlayer make, bool rewrite)
      : path_(std::move(path)), make_(std::move(make)), rewrite_(rewrite) {}

  void TestBody() override {
    const std::string expected = read(path_);
    const auto player = make_();
    const std::string actual = perform(expected, *player);
    if (rewrite_) {
      std::ofstream(path_) << actual;
    } else {
      EXPECT_EQ(actual, expected) << path_ << "\nIf the change is wanted: run with --rewrite";
    }
  }

 private:
  fs::path path_;
  MakePlayer make_;
  bool rewrite_;
};

}  // namespace

void register_folder(const std::string& folder, const MakePlayer& make, bool rewrite) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    testing::RegisterTest(fs::path(folder).filename().c_str(), path.stem().c_str(), nullptr,
                          nullptr, __FILE__, __LINE__,
                          [=]() -> testing::Test* { return new GoldenTest(path, make, rewrite); });
  }
}

bool take_rewrite_flag(int& argc, char** argv) {
  const auto end = std::remove(argv, argv + argc, std::string("--rewrite"));
  const bool found = end != argv + argc;
  argc = static_cast<int>(end - argv);
  return found;
}

}  // namespace shardbus::golden
