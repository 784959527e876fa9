// What a function returns when the world may disappoint it: Status, and Result<T> for a value or a
// Status. A message names the thing, the rule, what was expected and what was found, on one line.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace hadal {

// Few codes, each of which means an action of the caller.
enum class StatusCode {
  kOk,
  kInvalidArgument,    // the caller's fault
  kNotFound,           // the thing named does not exist
  kResourceExhausted,  // try again later, or with less
  kUnsupported,        // sound, but not something that this build can do
  kCorrupt,            // a file or a message breaks its own rules
  kIo,                 // the operating system refused
  kCancelled,          // somebody asked us to stop
  kDeadlineExceeded,   // it took longer than the caller allows
  kInternal,           // our own fault
};

// "invalid argument", "not found", ...
std::string_view StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return {}; }
  static Status InvalidArgument(std::string m) {
    return {StatusCode::kInvalidArgument, std::move(m)};
  }
  static Status NotFound(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
  static Status ResourceExhausted(std::string m) {
    return {StatusCode::kResourceExhausted, std::move(m)};
  }
  static Status Unsupported(std::string m) { return {StatusCode::kUnsupported, std::move(m)}; }
  static Status Corrupt(std::string m) { return {StatusCode::kCorrupt, std::move(m)}; }
  static Status Io(std::string m) { return {StatusCode::kIo, std::move(m)}; }
  static Status Cancelled(std::string m) { return {StatusCode::kCancelled, std::move(m)}; }
  static Status DeadlineExceeded(std::string m) {
    return {StatusCode::kDeadlineExceeded, std::move(m)};
  }
  static Status Internal(std::string m) { return {StatusCode::kInternal, std::move(m)}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same failure with "context: " before the message; ok stays ok.
  Status Annotate(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// A value, or why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<1>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Status status) : state_(std::in_place_index<0>, std::move(status)) {  // NOLINT
    HADAL_CHECK(!std::get<0>(state_).ok());
  }

  bool ok() const { return state_.index() == 1; }
  const Status& status() const {
    static const Status kOk;
    return ok() ? kOk : std::get<0>(state_);
  }

  // REQUIRES: ok().
  T& value() & {
    HADAL_CHECK(ok());
    return std::get<1>(state_);
  }
  const T& value() const& {
    HADAL_CHECK(ok());
    return std::get<1>(state_);
  }
  T&& value() && {
    HADAL_CHECK(ok());
    return std::get<1>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<Status, T> state_;
};

}  // namespace hadal

#define HADAL_CONCAT_INNER(a, b) a##b
#define HADAL_CONCAT(a, b) HADAL_CONCAT_INNER(a, b)

// Leaves the function with the status when it is not ok.
#define RETURN_IF_ERROR(expression)                                                           \
  do {                                                                                        \
    if (::hadal::Status hadal_status = (expression); !hadal_status.ok()) return hadal_status; \
  } while (false)

// ASSIGN_OR_RETURN(auto x, F()): the value of F(), or leaves the function with its status.
#define ASSIGN_OR_RETURN(declaration, expression) \
  HADAL_ASSIGN_OR_RETURN(HADAL_CONCAT(hadal_result_, __LINE__), declaration, expression)
#define HADAL_ASSIGN_OR_RETURN(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) return result.status();                     \
  declaration = std::move(result).value()
