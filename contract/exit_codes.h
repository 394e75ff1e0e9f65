// Exit codes of the trainer: a contract with the restart rules of the operator. A failed run never exits 0.
#pragma once

#include "base/result.h"

namespace evenkeel::contract {

enum class ExitCode : int {
  kDone = 0,
  kBadConfiguration = 64,
  kBadData = 65,
  kDeviceMissing = 69,
  kInternal = 70,
  kIo = 74,
  kTryAgain = 75,   // peer lost, coordinator lost, fenced off
  kNumerical = 76,  // non-finite, failed pre-flight
  kMismatch = 78,   // plan or configuration differs from the job's
  kStopped = 143,   // asked to stop, and checkpointed
};

// For errors that reach main.
constexpr ExitCode exit_code_of(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::kInvalidInput:
    case base::ErrorCode::kUnsupported:
      return ExitCode::kBadConfiguration;
    case base::ErrorCode::kCorruptData:
    case base::ErrorCode::kNotFound:
      return ExitCode::kBadData;
    case base::ErrorCode::kIo:
    case base::ErrorCode::kPermissionDenied:
      return ExitCode::kIo;
    case base::ErrorCode::kUnavailable:
    case base::ErrorCode::kDeadlineExceeded:
    case base::ErrorCode::kAborted:
    case base::ErrorCode::kConflict:
    case base::ErrorCode::kAlreadyExists:
      return ExitCode::kTryAgain;
    case base::ErrorCode::kMismatch:
      return ExitCode::kMismatch;
    case base::ErrorCode::kNumerical:
      return ExitCode::kNumerical;
    case base::ErrorCode::kInternal:
      return ExitCode::kInternal;
  }
  return ExitCode::kInternal;
}

}  // namespace evenkeel::contract
