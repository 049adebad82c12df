// Errors as values: `Errc`, `Status`, and `Result<T>` (member names as in std::expected).
//
// Synchronous calls report through these; wrong use of the API (a programmer's error) throws.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "shardbus/export.hpp"

namespace shardbus {

// What went wrong; numbers are wire format (`errors.def` is the registry). Zero is success.
enum class Errc : std::uint16_t {
  ok = 0,
#define SHARDBUS_ERROR(number, name, retry, may_have_happened, sentence) name = (number),
#include "shardbus/errors.def"
#undef SHARDBUS_ERROR
};

// What a caller may do after an error.
enum class Retry : std::uint8_t { no, same_call, after_refresh };

// One row of the registry. All views point to static storage.
struct ErrorInfo {
  Errc code;
  std::string_view name;
  Retry retry;
  bool may_have_happened;
  std::string_view sentence;
};

// Finds the registry's row of `code`; an unknown number gives a row named "unknown_error" that may
// have happened. Safe from any thread.
SHARDBUS_EXPORT const ErrorInfo& error_info(Errc code) noexcept;

// Outcome of a call without a value: success, or a code and a text for humans. A tell's may be
// ignored: what is refused later is counted and logged anyway.
class Status {
 public:
  Status() noexcept = default;
  Status(Errc code, std::string text) : code_(code), text_(std::move(text)) {}
  explicit Status(Errc code) : code_(code) {}

  [[nodiscard]] bool ok() const noexcept { return code_ == Errc::ok; }
  // Throws ResultError where the call failed: for programs that can do nothing about it.
  void check() const;
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] Errc code() const noexcept { return code_; }
  // Detail of this one failure; may be empty.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::string_view name() const noexcept { return error_info(code_).name; }
  // "name: detail", or the registry's sentence where there is no detail.
  [[nodiscard]] std::string message() const {
    if (ok()) return "ok";
    const ErrorInfo& info = error_info(code_);
    return std::string(info.name) + ": " + (text_.empty() ? std::string(info.sentence) : text_);
  }
  friend bool operator==(const Status& a, const Status& b) { return a.code_ == b.code_; }

 private:
  Errc code_ = Errc::ok;
  std::string text_;
};

// Thrown by `Result<T>::value()` and `Status::check()` of what failed.
class ResultError : public std::runtime_error {
 public:
  explicit ResultError(Status status)
      : std::runtime_error(status.message()), status_(std::move(status)) {}
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

inline void Status::check() const {
  if (!ok()) throw ResultError(*this);
}

// A value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Status;

  Result(T value) : data_(std::in_place_index<0>, std::move(value)) {}
  // Throws std::logic_error if `status` is no error: there would be neither a value nor a reason.
  Result(Status status) : data_(std::in_place_index<1>, std::move(status)) {
    if (error().ok()) throw std::logic_error("a Result without a value was made from an ok Status");
  }

  [[nodiscard]] bool has_value() const noexcept { return data_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // Throws ResultError where there is no value.
  T& value() & { return checked(*this); }
  const T& value() const& { return checked(*this); }
  T&& value() && { return std::move(checked(*this)); }

  T& operator*() & noexcept { return *std::get_if<0>(&data_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&data_); }
  T* operator->() noexcept { return std::get_if<0>(&data_); }
  const T* operator->() const noexcept { return std::get_if<0>(&data_); }
  [[nodiscard]] const Status& error() const noexcept { return *std::get_if<1>(&data_); }
  template <class U>
  [[nodiscard]] T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }

 private:
  template <class Self>
  static auto& checked(Self& self) {
    if (!self.has_value()) throw ResultError(self.error());
    return *std::get_if<0>(&self.data_);
  }

  std::variant<T, Status> data_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  using error_type = Status;

  Result() noexcept = default;
  Result(Status status) : status_(std::move(status)) {}

  [[nodiscard]] bool has_value() const noexcept { return status_.ok(); }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const { status_.check(); }
  [[nodiscard]] const Status& error() const noexcept { return status_; }

 private:
  Status status_;
};

}  // namespace shardbus
