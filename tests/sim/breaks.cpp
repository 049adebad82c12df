#include "sim/breaks.hpp"

namespace shardbus::sim {

const std::vector<Break>& all_breaks() {
  static const std::vector<Break> kBreaks = {
      {"answer-unchecked", "the coordinator believes an answer of any generation",
       &Breaks::answer_unchecked},
      {"ask-forgotten", "an answer now and then does not reach its asker", &Breaks::ask_forgotten},
      {"command-forged", "a node is told to own a shard that another one was given",
       &Breaks::command_forged},
      {"handled-twice", "an entity handles a message again now and then", &Breaks::handled_twice},
      {"lease-ignored", "owners of strict types run them as if they always had a majority",
       &Breaks::lease_ignored},
      {"limit-lowered", "buffers are held against a tenth of their limits", &Breaks::limit_lowered},
      {"lower-term-repeated", "members repeat a lower term after a higher one",
       &Breaks::lower_term_repeated},
      {"order-swapped", "a caller now and then sends its next message first",
       &Breaks::order_swapped},
      {"outcome-denied", "callers are told that nothing happened when nobody knows",
       &Breaks::outcome_denied},
      {"place-kept", "a node that lost its place in the cluster goes on as before",
       &Breaks::place_kept},
      {"reply-mixed-up", "an entity now and then answers with what another ask sent",
       &Breaks::reply_mixed_up},
      {"reply-repeated", "an asker is now and then called back twice", &Breaks::reply_repeated},
      {"state-lost", "an entity now and then saves nothing before it moves", &Breaks::state_lost},
      {"tell-lost", "a tell that was accepted now and then goes nowhere", &Breaks::tell_lost},
      {"wake-lost", "nobody wakes a data plane at its deadline", &Breaks::wake_lost},
  };
  return kBreaks;
}

Breaks breaks_named(const std::string& name) {
  Breaks breaks;
  for (const Break& known : all_breaks()) {
    if (name == known.name) breaks.*(known.flag) = true;
  }
  return breaks;
}

}  // namespace shardbus::sim
