#include "operator/render/pod_options.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "contract/job/paths.h"
#include "contract/labels.h"
#include "operator/plan/environment.h"

namespace evenkeel::oper {
namespace {

using Names = std::vector<std::string_view>;

struct VolumeSource {
  std::string_view name;
  Names members;
};
const std::vector<VolumeSource> kVolumeSources = {
    {"persistentVolumeClaim", {"claimName", "readOnly"}},
    {"configMap", {"name", "items", "defaultMode", "optional"}},
    {"secret", {"secretName", "items", "defaultMode", "optional"}},
    {"emptyDir", {"medium", "sizeLimit"}},
    {"ephemeral", {"volumeClaimTemplate"}},
    {"csi", {"driver", "readOnly", "fsType", "volumeAttributes", "nodePublishSecretRef"}}};
const Names kClaimMembers = {"metadata", "spec"};
// Nothing that takes hold of a volume by its name or reaches into another namespace.
const Names kClaimSpecMembers = {"accessModes", "storageClassName", "volumeMode", "resources",
                                 "dataSource"};
const Names kEnvFromMembers = {"prefix", "configMapRef", "secretRef"};
const Names kPullSecretMembers = {"name"};
const Names kValueSources = {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"};
const Names kMountMembers = {"name", "mountPath", "readOnly", "subPath"};
// Annotations by which older API servers loosened a container's profile.
const Names kUnsafeAnnotations = {"container.apparmor.security.beta.kubernetes.io/",
                                  "container.seccomp.security.alpha.kubernetes.io/",
                                  "seccomp.security.alpha.kubernetes.io/"};

bool one_of(std::string_view name, const Names& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool starts_with_any(std::string_view name, const Names& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool has_only(const Json& object, const Names& names) {
  if (!object.is_object()) return false;
  for (const auto& member : object.items()) {
    if (!one_of(member.key(), names)) return false;
  }
  return true;
}

bool are_ids(const Json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& id) {
           return id.is_number_integer() && id.get<std::int64_t>() >= 0;
         });
}

// Collects what is allowed and the paths of what is not.
class Filter {
 public:
  void text(const Json& options, const char* key) {
    take(options, key, [&](const Json& value) {
      if (value.is_string()) result_.options[key] = value;
      return value.is_string();
    });
  }

  void open_object(const Json& options, const char* key) {
    take(options, key, [&](const Json& value) {
      if (value.is_object()) result_.options[key] = value;
      return value.is_object();
    });
  }

  void open_list(const Json& options, const char* key) {
    list(options, key, [](const Json& item) { return item.is_object(); });
  }

  void text_map(const Json& options, const char* key, bool (*allowed)(const std::string& name)) {
    take(options, key, [&](const Json& value) {
      if (!value.is_object()) return false;
      Json kept = Json::object();
      for (const auto& [name, text] : value.items()) {
        if (text.is_string() && allowed(name)) {
          kept[name] = text;
        } else {
          drop(std::string(key) + "." + name);
        }
      }
      result_.options[key] = std::move(kept);
      return true;
    });
  }

  template <class Allowed>
  void list(const Json& options, const char* key, Allowed allowed) {
    take(options, key, [&](const Json& value) {
      if (!value.is_array()) return false;
      Json kept = Json::array();
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (allowed(value[i])) {
          kept.push_back(value[i]);
        } else {
          drop(std::string(key) + "[" + std::to_string(i) + "]");
        }
      }
      result_.options[key] = std::move(kept);
      return true;
    });
  }

  void security_context(const Json& options) {
    take(options, "securityContext", [&](const Json& value) {
      if (!value.is_object()) return false;
      Json kept = Json::object();
      for (const auto& [name, id] : value.items()) {
        const bool user = name == "runAsUser" && id.is_number_integer() && id.get<std::int64_t>() > 0;
        const bool group = (name == "runAsGroup" || name == "fsGroup") && id.is_number_integer() &&
                           id.get<std::int64_t>() >= 0;
        if (user || group || (name == "supplementalGroups" && are_ids(id))) {
          kept[name] = id;
        } else {
          drop("securityContext." + name);
        }
      }
      result_.options["securityContext"] = std::move(kept);
      return true;
    });
  }

  AllowedOptions finish(const Json& options) {
    if (options.is_object()) {
      for (const auto& member : options.items()) {
        if (!seen_.contains(member.key())) drop(member.key());
      }
    }
    return std::move(result_);
  }

 private:
  template <class Keep>
  void take(const Json& options, const char* key, Keep keep) {
    seen_.insert(key);
    if (!options.is_object() || !options.contains(key)) return;
    if (!keep(options[key])) drop(key);
  }
  void drop(std::string path) { result_.dropped.push_back(std::move(path)); }

  AllowedOptions result_;
  std::set<std::string> seen_;
};

bool is_own_key(const std::string& name) {
  return name.starts_with(contract::kLabelPrefix);
}

bool allowed_annotation(const std::string& name) {
  return !is_own_key(name) && !starts_with_any(name, kUnsafeAnnotations);
}

bool allowed_env(const Json& variable) {
  const std::string name = base::string_at(variable, "name");
  if (name.empty() || is_reserved_variable(name)) return false;
  if (!variable.contains("valueFrom")) return true;
  return !variable.contains("value") && has_only(variable["valueFrom"], kValueSources);
}

bool allowed_env_from(const Json& source) {
  const std::string prefix = base::string_at(source, "prefix");
  return has_only(source, kEnvFromMembers) && !prefix.starts_with("EVENKEEL_") && !prefix.starts_with("PET_");
}

bool allowed_pull_secret(const Json& secret) {
  return has_only(secret, kPullSecretMembers);
}

bool allowed_volume(const Json& volume) {
  const std::string name = base::string_at(volume, "name");
  if (name.empty() || name.starts_with(kOwnVolumePrefix)) return false;
  Json source = volume;
  source.erase("name");
  return is_allowed_volume_source(source);
}

bool allowed_mount(const Json& mount) {
  if (!has_only(mount, kMountMembers)) return false;
  const std::string path = base::string_at(mount, "mountPath");
  return contract::is_plain_path(path) && !contract::is_own_path(path) &&
         contract::is_inside_volume(base::string_at(mount, "subPath")) &&
         !base::string_at(mount, "name").starts_with(kOwnVolumePrefix);
}

void merge_by(const char* member, Json& into, const Json& from) {
  for (const Json& item : from) {
    const std::string name = base::string_at(item, member);
    auto same = std::find_if(into.begin(), into.end(),
                             [&](const Json& other) { return base::string_at(other, member) == name; });
    if (same != into.end()) {
      *same = item;
    } else {
      into.push_back(item);
    }
  }
}

void merge_member(const std::string& key, Json& into, const Json& value) {
  if (into.is_object() && value.is_object() && key != "affinity") {
    for (const auto& [name, inner] : value.items()) into[name] = inner;
  } else if (into.is_array() && value.is_array() && (key == "env" || key == "volumes")) {
    merge_by("name", into, value);
  } else if (into.is_array() && value.is_array() && key == "volumeMounts") {
    merge_by("mountPath", into, value);
  } else if (into.is_array() && value.is_array() && (key == "tolerations" || key == "imagePullSecrets")) {
    for (const Json& item : value) {
      if (std::find(into.begin(), into.end(), item) == into.end()) into.push_back(item);
    }
  } else {
    into = value;
  }
}

}  // namespace

bool is_allowed_volume_source(const Json& source) {
  if (!source.is_object() || source.size() != 1) return false;
  const std::string kind = source.begin().key();
  const auto known = std::ranges::find(kVolumeSources, std::string_view(kind), &VolumeSource::name);
  if (known == kVolumeSources.end() || !has_only(source.begin().value(), known->members)) return false;
  if (kind != "ephemeral") return true;
  const Json& claim = base::at_path(source, {"ephemeral", "volumeClaimTemplate"});
  return has_only(claim, kClaimMembers) && has_only(base::child(claim, "spec"), kClaimSpecMembers);
}

Json merge_pod_options(const Json& under, const Json& over) {
  Json merged = under.is_object() ? under : Json::object();
  if (!over.is_object()) return merged;
  for (const auto& [key, value] : over.items()) {
    if (merged.contains(key)) {
      merge_member(key, merged[key], value);
    } else {
      merged[key] = value;
    }
  }
  return merged;
}

AllowedOptions allowed_pod_options(const Json& options) {
  Filter filter;
  filter.text_map(options, "labels", [](const std::string& name) { return !is_own_key(name); });
  filter.text_map(options, "annotations", allowed_annotation);
  filter.text_map(options, "nodeSelector", [](const std::string&) { return true; });
  filter.list(options, "env", allowed_env);
  filter.list(options, "envFrom", allowed_env_from);
  filter.open_object(options, "affinity");
  filter.open_list(options, "tolerations");
  filter.open_list(options, "topologySpreadConstraints");
  filter.list(options, "imagePullSecrets", allowed_pull_secret);
  filter.text(options, "priorityClassName");
  filter.text(options, "runtimeClassName");
  filter.text(options, "serviceAccountName");
  filter.list(options, "volumes", allowed_volume);
  filter.list(options, "volumeMounts", allowed_mount);
  filter.security_context(options);
  return filter.finish(options);
}

}  // namespace evenkeel::oper
