// Result<T>: a value or an Error. The only way a failure travels between functions of this project:
// exceptions of a library stop in the file that wraps the library. Values; safe to move between threads.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace evenkeel::base {

// What the caller can do about it, not where it happened: few codes, so that each is handled somewhere.
enum class ErrorCode {
  kInvalidInput,      // the user's file, field or argument is wrong: tell, never retry
  kCorruptData,       // a record, checkpoint or frame does not verify
  kNotFound,          // asked for, not there
  kAlreadyExists,     // made earlier or by someone else
  kPermissionDenied,  // the system or the API server says no
  kUnavailable,       // peer, server or resource away: retry with back-off
  kDeadlineExceeded,  // no answer in the time given: the outcome may be unknown
  kAborted,           // stopped on purpose: abort, fence, shutdown
  kConflict,          // changed in between: read again, compute again
  kMismatch,          // two sides hold different plans or configurations
  kNumerical,         // non-finite numbers
  kIo,                // the disk or a pipe failed
  kUnsupported,       // known, but this build or this version does not do it
  kInternal,          // an invariant is broken: our bug
};

const char* error_code_name(ErrorCode code);

// `message` says what failed, the offending value and what to do, as one or more sentences for the user.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

// The same error seen from one level up: "reading /data/x: truncated at byte 12".
inline Error with_context(std::string context, Error error) {
  error.message = std::move(context) + ": " + error.message;
  return error;
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & {
    assert(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    assert(ok());
    return std::get<0>(state_);
  }
  // By value: in `for (auto& x : f().value())` a reference into the dead temporary would dangle.
  T value() && {
    assert(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const Error& error() const& {
    assert(!ok());
    return std::get<1>(state_);
  }
  Error error() && {
    assert(!ok());
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& {
    assert(!ok());
    return *error_;
  }
  Error error() && {
    assert(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace evenkeel::base

// EVENKEEL_TRY(expr): returns the error of a Status or Result from the enclosing function.
#define EVENKEEL_TRY(expr)                                                \
  do {                                                                    \
    auto evenkeel_status = (expr);                                        \
    if (!evenkeel_status.ok()) return std::move(evenkeel_status).error(); \
  } while (false)

// EVENKEEL_ASSIGN(auto x, expr): x = the value, or returns the error.
#define EVENKEEL_ASSIGN(lhs, expr) EVENKEEL_ASSIGN_1(EVENKEEL_CONCAT(evenkeel_result_, __LINE__), lhs, expr)
#define EVENKEEL_CONCAT_1(a, b) a##b
#define EVENKEEL_CONCAT(a, b) EVENKEEL_CONCAT_1(a, b)
#define EVENKEEL_ASSIGN_1(tmp, lhs, expr)       \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  lhs = std::move(tmp).value()
