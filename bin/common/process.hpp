// Child processes and what they cost.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardbus_tools {

// A running program of ours. The destructor kills it.
//
// Lifetime: the child gets SIGKILL when the thread that started it ends, so that none is left over.
class Process {
 public:
  Process() = default;
  // Starts `arguments[0]` without any SHARDBUS_* variable; its stdout is read by read_line(), its
  // stderr is ours. Throws std::system_error.
  explicit Process(const std::vector<std::string>& arguments);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // The next line of its stdout, without the newline; nothing if the process closed it before, or
  // at the deadline.
  std::optional<std::string> read_line(std::chrono::steady_clock::time_point deadline);
  void signal(int number) const;
  // Waits until the process has closed its stdout: after SIGKILL none of its threads runs any more
  // then. Until the system lets wait() have it, that may take much longer on a busy machine. False:
  // not by the deadline.
  bool wait_closed(std::chrono::steady_clock::time_point deadline);
  // Waits for its end and gives its exit code, or 128 + signal.
  int wait();

 private:
  bool read_more(std::chrono::steady_clock::time_point deadline);
  pid_t pid_ = -1;
  int output_ = -1;
  bool closed_ = false;  // at the other end
  std::string buffer_;
};

// CPU time of a process so far, user and system, of all its threads. pid 0: this one.
std::chrono::nanoseconds cpu_time(pid_t pid);
// Waits until every thread of a process has stopped (SIGSTOP); false: not in time.
bool wait_stopped(pid_t pid, std::chrono::steady_clock::duration patience);
// Memory of a process that is resident now, in bytes. pid 0: this one.
std::uint64_t resident_bytes(pid_t pid);

// The program `name` in the folder of this program.
std::string beside_this_program(const std::string& name);

}  // namespace shardbus_tools
