#include "operator/render/pod_options.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "contract/labels.h"
#include "operator/plan/environment.h"

namespace evenkeel::oper {
namespace {

using Names = std::vector<std::string_view>;

const Names kVolumeSources = {"persistentVolumeClaim", "configMap", "secret", "emptyDir", "ephemeral", "csi"};
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
        if (user || group || (name == "supplementalGroups" && id.is_array())) {
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
  for (const auto& member : base::child(variable, "valueFrom").items()) {
    if (!one_of(member.key(), kValueSources)) return false;
  }
  return true;
}

bool allowed_volume(const Json& volume) {
  const std::string name = base::string_at(volume, "name");
  if (name.empty() || name.starts_with(kOwnVolumePrefix)) return false;
  Json source = volume;
  source.erase("name");
  return is_allowed_volume_source(source);
}

bool allowed_mount(const Json& mount) {
  if (!mount.is_object() || base::string_at(mount, "mountPath").empty()) return false;
  for (const auto& member : mount.items()) {
    if (!one_of(member.key(), kMountMembers)) return false;
  }
  return !base::string_at(mount, "name").starts_with(kOwnVolumePrefix);
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
  return source.is_object() && source.size() == 1 && one_of(source.begin().key(), kVolumeSources) &&
         source.begin().value().is_object();
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
  filter.open_list(options, "envFrom");
  filter.open_object(options, "affinity");
  filter.open_list(options, "tolerations");
  filter.open_list(options, "topologySpreadConstraints");
  filter.open_list(options, "imagePullSecrets");
  filter.text(options, "priorityClassName");
  filter.text(options, "runtimeClassName");
  filter.text(options, "serviceAccountName");
  filter.list(options, "volumes", allowed_volume);
  filter.list(options, "volumeMounts", allowed_mount);
  filter.security_context(options);
  return filter.finish(options);
}

}  // namespace evenkeel::oper
