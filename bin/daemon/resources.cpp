#include "daemon/resources.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>

namespace shardbusd {
namespace {

std::string too_few(std::uint64_t limit, std::uint32_t sessions) {
  std::string text = "sessions = " + std::to_string(sessions) + " needs " +
                     std::to_string(sessions + kOwnDescriptors) +
                     " file descriptors, but the hard limit is " + std::to_string(limit) +
                     ": raise it (ulimit -Hn, LimitNOFILE=)";
  if (limit > kOwnDescriptors)
    text += ", or set sessions to " + std::to_string(limit - kOwnDescriptors) + " or less";
  return text;
}

}  // namespace

std::string raise_descriptor_limit(std::uint32_t sessions) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return "cannot read the limit of file descriptors: " + std::generic_category().message(errno);
  if (limit.rlim_max < sessions + kOwnDescriptors) return too_few(limit.rlim_max, sessions);
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    return "cannot raise the limit of file descriptors: " + std::generic_category().message(errno);
  return "";
}

}  // namespace shardbusd
