#include "common/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace shardbus_tools {
namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

// Our own variables are for us: shardbusd refuses those that it does not know.
std::vector<char*> environment_for_child() {
  std::vector<char*> kept;
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("SHARDBUS_")) kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));  // execve takes them so, unchanged
  words.push_back(nullptr);
  std::vector<char*> environment = environment_for_child();
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "pipe2");
  pid_ = ::fork();
  if (pid_ == 0) {
    // Only calls that are safe between fork and exec.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDOUT_FILENO);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(words[0], words.data(), environment.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output_ = ends[0];
  if (pid_ < 0) {
    ::close(std::exchange(output_, -1));
    throw std::system_error(errno, std::generic_category(), "fork");
  }
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      closed_(other.closed_),
      buffer_(std::move(other.buffer_)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(output_, other.output_);
  std::swap(closed_, other.closed_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

Process::~Process() {
  if (pid_ > 0) {
    signal(SIGKILL);
    wait();
  }
  if (output_ >= 0) ::close(output_);
}

std::optional<std::string> Process::read_line(std::chrono::steady_clock::time_point deadline) {
  while (true) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (!read_more(deadline)) return {};
  }
}

bool Process::wait_closed(std::chrono::steady_clock::time_point deadline) {
  while (read_more(deadline)) {
  }
  return closed_;
}

bool Process::read_more(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  pollfd ready{output_, POLLIN, 0};
  if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) return false;
  std::array<char, 512> chunk{};
  const ssize_t size = ::read(output_, chunk.data(), chunk.size());
  closed_ = size == 0;
  if (size <= 0) return false;
  buffer_.append(chunk.data(), static_cast<std::size_t>(size));
  return true;
}

void Process::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

int Process::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::chrono::nanoseconds cpu_time(pid_t pid) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

namespace {

// State 'T' of /proc/PID/task/TID/stat, which stands behind the name in brackets.
bool all_threads_stopped(pid_t pid) {
  std::error_code error;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || line.compare(name_end, 3, ") T") != 0) return false;
  }
  return !error;
}

}  // namespace

bool wait_stopped(pid_t pid, std::chrono::steady_clock::duration patience) {
  constexpr std::chrono::microseconds kBetweenLooks{100};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!all_threads_stopped(pid)) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

std::uint64_t resident_bytes(pid_t pid) {
  const std::string process = pid == 0 ? "self" : std::to_string(pid);
  std::ifstream file("/proc/" + process + "/statm");
  std::uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string beside_this_program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

}  // namespace shardbus_tools
