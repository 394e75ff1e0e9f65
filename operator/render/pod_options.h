// What a job may say about its pods, judged again where the pod is made: anything outside the allow-list is
// left out, whoever let it into the store. Called by pod.cpp. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace evenkeel::oper {

using base::Json;

// The name of a volume of ours starts so; a user's may not.
inline constexpr char kOwnVolumePrefix[] = "evenkeel-";

// `over` laid over `under`, member by member: maps by key, env and volumes by name, mounts by path;
// tolerations and pull secrets are joined; everything else is replaced.
Json merge_pod_options(const Json& under, const Json& over);

// Only what is allowed, each with the type that Kubernetes expects. `dropped` names the rest by path.
struct AllowedOptions {
  Json options = Json::object();
  std::vector<std::string> dropped;
};
AllowedOptions allowed_pod_options(const Json& options);

// True if `source` is one allowed source of a volume: {"persistentVolumeClaim": {...}}.
bool is_allowed_volume_source(const Json& source);

}  // namespace evenkeel::oper
