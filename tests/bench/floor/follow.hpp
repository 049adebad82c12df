// Moves libzmq's I/O thread to the core of the thread that polls: a wake-up there costs a tenth.
#pragma once

#include <sched.h>
#include <sys/types.h>

namespace shardbus_floor {

class Follower {
 public:
  // Finds the I/O thread of the process's one context. Off: does nothing.
  explicit Follower(bool on);
  // Once per pass.
  void pass();

 private:
  pid_t thread_ = 0;
  int core_ = -1;
  int passes_ = 0;
};

}  // namespace shardbus_floor
