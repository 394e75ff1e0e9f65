#include "operator/kube/api_types.h"

#include "contract/labels.h"

namespace evenkeel::oper {

const Resource& trainingjobs() {
  static const Resource resource{std::string("/apis/") + contract::kApiVersion, contract::kPlural,
                                 contract::kKind};
  return resource;
}
const Resource& pods() {
  static const Resource resource{"/api/v1", "pods", "Pod"};
  return resource;
}
const Resource& services() {
  static const Resource resource{"/api/v1", "services", "Service"};
  return resource;
}
const Resource& config_maps() {
  static const Resource resource{"/api/v1", "configmaps", "ConfigMap"};
  return resource;
}
const Resource& secrets() {
  static const Resource resource{"/api/v1", "secrets", "Secret"};
  return resource;
}
const Resource& events() {
  static const Resource resource{"/apis/events.k8s.io/v1", "events", "Event"};
  return resource;
}

const Resource* resource_of_kind(const std::string& kind) {
  for (const Resource* resource : {&pods(), &services(), &config_maps(), &secrets(), &trainingjobs()})
    if (resource->kind == kind) return resource;
  return nullptr;
}

const char* api_code_name(ApiCode code) {
  switch (code) {
    case ApiCode::kOk:
      return "ok";
    case ApiCode::kNotFound:
      return "not found";
    case ApiCode::kAlreadyExists:
      return "already exists";
    case ApiCode::kConflict:
      return "conflict";
    case ApiCode::kGone:
      return "gone";
    case ApiCode::kTooManyRequests:
      return "too many requests";
    case ApiCode::kTooLarge:
      return "too large";
    case ApiCode::kRejected:
      return "rejected";
    case ApiCode::kUnauthorized:
      return "unauthorized";
    case ApiCode::kNamespaceTerminating:
      return "namespace terminating";
    case ApiCode::kUnknownOutcome:
      return "unknown outcome";
    case ApiCode::kUnavailable:
      return "unavailable";
  }
  return "?";
}

}  // namespace evenkeel::oper
