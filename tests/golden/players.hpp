// One player per core; each file of tests/golden/<core> is a script for it.
#pragma once

#include <memory>

#include "support/golden.hpp"

namespace shardbus::golden {

std::unique_ptr<Player> make_failure_player();
std::unique_ptr<Player> make_downing_player();
std::unique_ptr<Player> make_membership_player();
std::unique_ptr<Player> make_election_player();
std::unique_ptr<Player> make_coordinator_player();
std::unique_ptr<Player> make_control_player();
std::unique_ptr<Player> make_region_player();

}  // namespace shardbus::golden
