// Rules that can be broken on purpose, to see that the checks notice. Two are settings of the
// control plane; the others are done by the harness around the planes, or by its entities.
#pragma once

#include <string>
#include <vector>

namespace shardbus::sim {

struct Breaks {
  bool answer_unchecked = false;
  bool ask_forgotten = false;
  bool command_forged = false;
  bool handled_twice = false;
  bool lease_ignored = false;
  bool limit_lowered = false;
  bool lower_term_repeated = false;
  bool order_swapped = false;
  bool outcome_denied = false;
  bool place_kept = false;
  bool reply_mixed_up = false;
  bool reply_repeated = false;
  bool state_lost = false;
  bool tell_lost = false;
  bool wake_lost = false;
};

struct Break {
  const char* name;
  const char* what;
  bool Breaks::*flag;
};

const std::vector<Break>& all_breaks();
// Everything holds for a name that is empty or unknown.
Breaks breaks_named(const std::string& name);

}  // namespace shardbus::sim
