#include <algorithm>
#include <array>

#include "shardbus/status.hpp"

namespace shardbus {
namespace {

constexpr std::array kErrors = {
    ErrorInfo{Errc::ok, "ok", Retry::no, true, "success"},
#define SHARDBUS_ERROR(number, name, retry, may_have_happened, sentence) \
  ErrorInfo{Errc::name, #name, Retry::retry, may_have_happened, sentence},
#include "shardbus/errors.def"
#undef SHARDBUS_ERROR
};

constexpr ErrorInfo kUnknown{Errc::internal, "unknown_error", Retry::no, true,
                             "an error number that this version does not know"};

}  // namespace

const ErrorInfo& error_info(Errc code) noexcept {
  const auto* found = std::find_if(kErrors.begin(), kErrors.end(),
                                   [code](const ErrorInfo& row) { return row.code == code; });
  return found == kErrors.end() ? kUnknown : *found;
}

}  // namespace shardbus
