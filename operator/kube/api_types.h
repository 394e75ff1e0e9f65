// Kinds of objects this operator handles and what comes back from the API server. Data only.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"

namespace evenkeel::oper {

using base::Json;

struct Resource {
  std::string root;    // "/api/v1" or "/apis/<group>/<version>"
  std::string plural;  // "pods"
  std::string kind;    // "Pod"
};

const Resource& trainingjobs();
const Resource& pods();
const Resource& services();
const Resource& config_maps();
const Resource& secrets();
const Resource& events();
// Pod | Service | ConfigMap | Secret | TrainingJob; null for anything else.
const Resource* resource_of_kind(const std::string& kind);

// What a caller can do about an answer; each is handled somewhere.
enum class ApiCode {
  kOk,
  kNotFound,
  kAlreadyExists,  // 409 on create
  kConflict,       // 409 otherwise: stale resourceVersion or another UID
  kGone,           // 410: the version or the continue token is too old
  kTooManyRequests,
  kTooLarge,  // 413, or an answer over our cap
  kRejected,  // 400, 403, 422: quota, admission, rights, schema: the server's words are in `message`
  kUnauthorized,
  kNamespaceTerminating,
  kUnknownOutcome,  // a write that may or may not have happened: read back
  kUnavailable,     // a read that failed, or a write that was never sent
};
const char* api_code_name(ApiCode code);

struct ApiReply {
  ApiCode code = ApiCode::kUnavailable;
  int status = 0;
  Json object;          // kOk: the answer
  std::string reason;   // of the Status object: "AlreadyExists", "Expired", ...
  std::string message;  // for people, with the HTTP status
  std::optional<base::Duration> retry_after;
  bool ok() const { return code == ApiCode::kOk; }
};

}  // namespace evenkeel::oper
