// Plays the transcripts of the cores. --rewrite writes them anew.
#include <gtest/gtest.h>

#include <cstdlib>

#include "golden/players.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  using namespace shardbus::golden;
  const bool rewrite = take_rewrite_flag(argc, argv);
  const std::string root = SHARDBUS_GOLDEN_DIR;
  register_folder(root + "/failure", make_failure_player, rewrite);
  register_folder(root + "/downing", make_downing_player, rewrite);
  register_folder(root + "/membership", make_membership_player, rewrite);
  register_folder(root + "/election", make_election_player, rewrite);
  register_folder(root + "/coordinator", make_coordinator_player, rewrite);
  register_folder(root + "/control", make_control_player, rewrite);
  register_folder(root + "/region", make_region_player, rewrite);
  return RUN_ALL_TESTS();
}
