#include "base/result.h"

namespace evenkeel::base {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidInput:
      return "InvalidInput";
    case ErrorCode::kCorruptData:
      return "CorruptData";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kAlreadyExists:
      return "AlreadyExists";
    case ErrorCode::kPermissionDenied:
      return "PermissionDenied";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kDeadlineExceeded:
      return "DeadlineExceeded";
    case ErrorCode::kAborted:
      return "Aborted";
    case ErrorCode::kConflict:
      return "Conflict";
    case ErrorCode::kMismatch:
      return "Mismatch";
    case ErrorCode::kNumerical:
      return "Numerical";
    case ErrorCode::kIo:
      return "Io";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Internal";
}

}  // namespace evenkeel::base
