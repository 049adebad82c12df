// The smallest program of a user: includes an installed header and calls into the library.

#if __has_include(<shardbus/shardbus.hpp>)
#include <shardbus/shardbus.hpp>
#endif
#include <shardbus/status.hpp>

int main() {
  const shardbus::ErrorInfo& info = shardbus::error_info(shardbus::Errc{1});
  return info.name.empty() ? 1 : 0;
}
