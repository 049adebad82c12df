#include "transport/wakeup.hpp"

#include <sys/eventfd.h>
#include <unistd.h>
#include <cstdint>

namespace shardbus::transport {

Wakeup::Wakeup() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
Wakeup::~Wakeup() {
  close(descriptor_);
}

void Wakeup::signal() const {
  const std::uint64_t one = 1;
  (void)!write(descriptor_, &one, sizeof one);
}

void Wakeup::clear() const {
  std::uint64_t value = 0;
  (void)!read(descriptor_, &value, sizeof value);
}

}  // namespace shardbus::transport
