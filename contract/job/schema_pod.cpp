// What a job may say about its pods: an allow-list. Names that would widen its rights are declared and
// refused, so that the refusal has a path (the API server would otherwise drop them in silence before any
// rule sees them).
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "contract/env.h"
#include "contract/job/field_builder.h"
#include "contract/job/paths.h"
#include "contract/job/quantity.h"
#include "contract/job/schema_parts.h"
#include "contract/labels.h"

namespace evenkeel::contract {
namespace {

constexpr char kObjectName[] = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";
constexpr std::array<const char*, 3> kProfileAnnotations{"container.apparmor.security.beta.kubernetes.io/",
                                                         "container.seccomp.security.alpha.kubernetes.io/",
                                                         "seccomp.security.alpha.kubernetes.io/"};
constexpr char kQuantity[] =
    "^(([0-9]+([.][0-9]*)?)|([.][0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,2}))?$";

// Children of a foreign field have no description.
Field required_name(const char* name) {
  return text(name, "").pattern(kObjectName).required();
}

// A forbidden object is closed and empty: with open contents the API server could not tell that a stored one
// did not change, and would refuse its status.
Field forbidden(FieldType type, const char* name) {
  FieldBuilder builder(type, name, "Never allowed.");
  if (type == FieldType::kArray) builder.members_are(object("", "", {}).foreign()).items(0, 16);
  if (type == FieldType::kString) builder.length(0, 253);
  if (type == FieldType::kInteger) builder.range(0, 65535);
  return builder.forbidden().foreign();
}

Field quantity(const char* name) {
  return FieldBuilder(FieldType::kQuantity, name, "").pattern(kQuantity).length(0, 64);
}

Field quantity_map(const char* name, const std::string& description) {
  return FieldBuilder(FieldType::kMap, name, description).members_are(quantity("")).items(0, 16);
}

bool requests_fit_limits(const Json& self, const Json&) {
  for (const auto& [name, request] : base::child(self, "requests").items()) {
    const Json& limits = base::child(self, "limits");
    const auto limit = limits.find(name);
    if (limit == limits.end()) continue;
    auto asked = parse_quantity(request);
    auto allowed = parse_quantity(*limit);
    if (asked.ok() && allowed.ok() && *asked > *allowed) return false;
  }
  return true;
}

bool reserved_env(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames{kEnvPlainRank, kEnvWorldSize,  kEnvNodeRank,
                                                   kEnvLocalRank, kEnvMasterAddr, kEnvMasterPort,
                                                   kEnvTfConfig};
  for (std::string_view reserved : kNames) {
    if (name == reserved) return true;
  }
  return name.starts_with("EVENKEEL_") || name.starts_with(kEnvPetPrefix);
}

FieldRule env_rule() {
  return {
      .cel =
          "!has(self.name) || !(self.name.startsWith('EVENKEEL_') || self.name.startsWith('PET_') || "
          "self.name in ['RANK', 'WORLD_SIZE', "
          "'NODE_RANK', 'LOCAL_RANK', 'MASTER_ADDR', 'MASTER_PORT', 'TF_CONFIG'])",
      .message = "env {name} is set by the operator for every rank; choose another name",
      .holds = [](const Json& self, const Json&) { return !reserved_env(base::string_at(self, "name")); }};
}

FieldRule one_env_value_rule() {
  return {.cel = "!(has(self.value) && has(self.valueFrom))",
          .message = "env {name} has both value and valueFrom; give one of them",
          .holds = [](const Json& self, const Json&) {
            return !(self.contains("value") && self.contains("valueFrom"));
          }};
}

FieldRule own_keys_rule(const char* field) {
  return {.cel = "self.all(k, !k.startsWith('training.evenkeel.dev/'))",
          .message = std::string(field) +
                     ": keys that start with training.evenkeel.dev/ belong to the operator; take them out",
          .holds = [](const Json& self, const Json&) {
            for (const auto& item : self.items()) {
              if (item.key().starts_with(kLabelPrefix)) return false;
            }
            return true;
          }};
}

// Older API servers take these for a container's profile, whatever its security context says.
FieldRule no_profile_rule() {
  return {.cel =
              "self.all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/') && "
              "!k.startsWith('container.seccomp.security.alpha.kubernetes.io/') && "
              "!k.startsWith('seccomp.security.alpha.kubernetes.io/'))",
          .message =
              "annotations: the profiles of AppArmor and seccomp are fixed (RuntimeDefault); take them out",
          .holds = [](const Json& self, const Json&) {
            for (const auto& item : self.items()) {
              for (const char* prefix : kProfileAnnotations) {
                if (item.key().starts_with(prefix)) return false;
              }
            }
            return true;
          }};
}

FieldRule exactly_one_rule(std::vector<std::string> members, const char* what) {
  std::string asked, named;
  for (std::size_t i = 0; i < members.size(); ++i) {
    asked += (i == 0 ? "has(self." : ", has(self.") + members[i] + ")";
    named += (i == 0 ? "" : i + 1 == members.size() ? " or " : ", ") + members[i];
  }
  return {.cel = "[" + asked + "].filter(x, x).size() == 1",
          .message = std::string(what) + " needs exactly one source: " + named,
          .holds = [members = std::move(members)](const Json& self, const Json&) {
            return std::ranges::count_if(members,
                                         [&](const std::string& name) { return self.contains(name); }) == 1;
          }};
}

Field key_ref(const char* name) {
  return object(name, "", {required_name("name"), text("key", "").required(), boolean("optional", "")});
}

Field env_field() {
  Field value_from =
      object("valueFrom", "",
             {key_ref("configMapKeyRef"), key_ref("secretKeyRef"),
              object("fieldRef", "", {text("apiVersion", ""), text("fieldPath", "").required()}),
              object("resourceFieldRef", "",
                     {text("containerName", ""), text("resource", "").required(), quantity("divisor")})})
          .rule(exactly_one_rule({"configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef"},
                                 "valueFrom"));
  Field item = object("", "",
                      {text("name", "").pattern("^[A-Za-z_][A-Za-z0-9_]*$").length(1, 128).required(),
                       text("value", "").length(0, 32768), value_from})
                   .rule(env_rule())
                   .rule(one_env_value_rule());
  return list("env",
              "Environment variables for the user's own use; RANK, WORLD_SIZE and their like are set by the "
              "operator.",
              item, 100)
      .keyed_by("name")
      .foreign();
}

FieldRule prefix_rule() {
  return {
      .cel = "!has(self.prefix) || !(self.prefix.startsWith('EVENKEEL_') || self.prefix.startsWith('PET_'))",
      .message = "prefix {prefix}: variables of that name are set by the operator; choose another",
      .holds = [](const Json& self, const Json&) {
        const std::string prefix = base::string_at(self, "prefix");
        return !prefix.starts_with("EVENKEEL_") && !prefix.starts_with(kEnvPetPrefix);
      }};
}

Field env_from_field() {
  Field config_map = object("configMapRef", "", {required_name("name"), boolean("optional", "")});
  Field secret = object("secretRef", "", {required_name("name"), boolean("optional", "")});
  Field item = object("", "", {text("prefix", ""), config_map, secret})
                   .rule(exactly_one_rule({"configMapRef", "secretRef"}, "envFrom"))
                   .rule(prefix_rule());
  return list("envFrom", "Environment variables from ConfigMaps and Secrets of the job's namespace.", item,
              32)
      .foreign();
}

Field file_mode(const char* name) {
  return integer(name, "", 0, 0777);
}

Field key_paths() {
  Field item = object(
      "", "", {text("key", "").required(), text("path", "").length(1, 512).required(), file_mode("mode")});
  return list("items", "", item, 64);
}

Field claim_metadata() {
  return object("metadata", "", {string_map("labels", "", 64, 63), string_map("annotations", "", 64, 65536)});
}

// A claim of the job's own namespace. What would take hold of a volume by its name, or reach into another
// namespace, is refused: whoever may make a job need not be one who may make claims.
Field claim_spec() {
  return object(
      "spec", "",
      {list("accessModes", "",
            choice("", "", {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"}), 4),
       text("storageClassName", ""), choice("volumeMode", "", {"Filesystem"}),
       object("resources", "", {quantity_map("limits", ""), quantity_map("requests", "")}),
       object("dataSource", "", {text("apiGroup", ""), text("kind", "").required(), required_name("name")}),
       forbidden(FieldType::kString, "volumeName"), forbidden(FieldType::kObject, "selector"),
       forbidden(FieldType::kObject, "dataSourceRef")});
}

std::vector<Field> volume_sources() {
  return {
      object("persistentVolumeClaim", "", {required_name("claimName"), boolean("readOnly", "")}).foreign(),
      object("configMap", "",
             {required_name("name"), key_paths(), file_mode("defaultMode"), boolean("optional", "")})
          .foreign(),
      object("secret", "",
             {required_name("secretName"), key_paths(), file_mode("defaultMode"), boolean("optional", "")})
          .foreign(),
      object("emptyDir", "", {choice("medium", "", {"", "Memory"}), quantity("sizeLimit")}).foreign(),
      object("ephemeral", "",
             {object("volumeClaimTemplate", "", {claim_metadata(), FieldBuilder(claim_spec()).required()})
                  .required()})
          .foreign(),
      object("csi", "",
             {text("driver", "").required(), boolean("readOnly", ""), text("fsType", ""),
              string_map("volumeAttributes", "", 64, 4096),
              object("nodePublishSecretRef", "", {required_name("name")})})
          .foreign(),
      forbidden(FieldType::kObject, "hostPath"),
      forbidden(FieldType::kObject, "projected"),
      forbidden(FieldType::kObject, "downwardAPI"),
      forbidden(FieldType::kObject, "nfs"),
      forbidden(FieldType::kObject, "iscsi"),
      forbidden(FieldType::kObject, "flexVolume"),
      forbidden(FieldType::kObject, "gitRepo"),
      forbidden(FieldType::kObject, "image")};
}

FieldRule one_source_rule(const char* what) {
  return exactly_one_rule({"persistentVolumeClaim", "configMap", "secret", "emptyDir", "ephemeral", "csi"},
                          what);
}

Field volumes_field() {
  std::vector<Field> members{
      text("name", "").pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$").length(1, 63).required()};
  for (Field& source : volume_sources()) members.push_back(source);
  FieldRule own_name{
      .cel = "!has(self.name) || !self.name.startsWith('evenkeel-')",
      .message = "volume {name}: names that start with evenkeel- belong to the operator; choose another",
      .holds = [](const Json& self, const Json&) {
        return !base::string_at(self, "name").starts_with("evenkeel-");
      }};
  Field item = object("", "", members).rule(one_source_rule("a volume")).rule(own_name);
  return list("volumes",
              "More volumes; each has a name and one source: persistentVolumeClaim, configMap, secret, "
              "emptyDir, ephemeral or csi.",
              item, 32)
      .keyed_by("name")
      .foreign();
}

Field volume_mounts_field() {
  FieldRule own_path{
      .cel =
          "!has(self.mountPath) || !(self.mountPath in ['/etc', '/dev', '/dev/shm', '/dev/termination-log'] || "
          "(self.mountPath + '/').startsWith('/etc/evenkeel/'))",
      .message = "mountPath {mountPath} is mounted by the operator, or lies above what is; choose another",
      .holds = [](const Json& self, const Json&) { return !is_own_path(base::string_at(self, "mountPath")); }};
  FieldRule plain_path{
      .cel =
          "!has(self.mountPath) || !((self.mountPath + '/').contains('//') || (self.mountPath + "
          "'/').contains('/./') || (self.mountPath + '/').contains('/../'))",
      .message =
          "mountPath {mountPath} must be a plain absolute path: no //, /./ or /../, and no / at the end",
      .holds = [](const Json& self, const Json&) {
        return is_plain_path(base::string_at(self, "mountPath"));
      }};
  FieldRule inside{.cel =
                       "!has(self.subPath) || !(self.subPath.startsWith('/') || ('/' + self.subPath + "
                       "'/').contains('/../'))",
                   .message = "subPath {subPath} must stay inside the volume: a relative path without ..",
                   .holds = [](const Json& self, const Json&) {
                     return is_inside_volume(base::string_at(self, "subPath"));
                   }};
  Field item =
      object("", "",
             {text("name", "").length(1, 63).required(),
              text("mountPath", "").length(2, 512).pattern("^/[^:]+$").required(), boolean("readOnly", ""),
              text("subPath", "").length(0, 512), forbidden(FieldType::kString, "mountPropagation")})
          .rule(own_path)
          .rule(plain_path)
          .rule(inside);
  return list("volumeMounts", "Where the volumes appear inside the container.", item, 32)
      .keyed_by("mountPath")
      .foreign();
}

Field tolerations_field() {
  Field item =
      object("", "",
             {text("key", ""), choice("operator", "", {"Exists", "Equal", "Lt", "Gt"}), text("value", ""),
              choice("effect", "", {"NoSchedule", "PreferNoSchedule", "NoExecute"}),
              integer("tolerationSeconds", "", -kMaxInteger, kMaxInteger)});
  return list("tolerations", "Taints that the pods tolerate.", item, 32).foreign();
}

Field spread_field() {
  Field expression = object("", "",
                            {text("key", "").required(),
                             choice("operator", "", {"In", "NotIn", "Exists", "DoesNotExist"}).required(),
                             list("values", "", text("", ""), 64)});
  Field selector =
      object("labelSelector", "",
             {string_map("matchLabels", "", 64, 63), list("matchExpressions", "", expression, 32)});
  Field item = object(
      "", "",
      {integer("maxSkew", "", 1, 4096).required(), text("topologyKey", "").required(),
       choice("whenUnsatisfiable", "", {"DoNotSchedule", "ScheduleAnyway"}).required(), selector,
       integer("minDomains", "", 1, 4096), choice("nodeAffinityPolicy", "", {"Honor", "Ignore"}),
       choice("nodeTaintsPolicy", "", {"Honor", "Ignore"}), list("matchLabelKeys", "", text("", ""), 16)});
  return list("topologySpreadConstraints", "Spreading of the pods, as in a pod.", item, 16).foreign();
}

Field security_context_field() {
  constexpr double kLastId = 2147483647;
  return object("securityContext",
                "User and groups of the pods, all 65532 unless said here; everything else of a security "
                "context is fixed (restricted).",
                {integer("runAsUser", "", 1, kLastId), integer("runAsGroup", "", 0, kLastId),
                 integer("fsGroup", "", 0, kLastId),
                 list("supplementalGroups", "", integer("", "", 0, kLastId), 32),
                 forbidden(FieldType::kBoolean, "privileged"), forbidden(FieldType::kObject, "capabilities"),
                 forbidden(FieldType::kBoolean, "allowPrivilegeEscalation"),
                 forbidden(FieldType::kBoolean, "runAsNonRoot"), forbidden(FieldType::kString, "procMount"),
                 forbidden(FieldType::kObject, "seLinuxOptions"),
                 forbidden(FieldType::kObject, "seccompProfile"),
                 forbidden(FieldType::kObject, "appArmorProfile"), forbidden(FieldType::kArray, "sysctls"),
                 forbidden(FieldType::kObject, "windowsOptions")})
      .foreign();
}

std::vector<Field> forbidden_fields() {
  std::vector<Field> fields;
  for (const char* name : {"hostNetwork", "hostPID", "hostIPC", "hostUsers", "shareProcessNamespace",
                           "automountServiceAccountToken", "privileged", "allowPrivilegeEscalation"}) {
    fields.push_back(forbidden(FieldType::kBoolean, name));
  }
  for (const char* name : {"nodeName", "hostname", "subdomain", "schedulerName", "restartPolicy",
                           "serviceAccount", "dnsPolicy"}) {
    fields.push_back(forbidden(FieldType::kString, name));
  }
  for (const char* name : {"containers", "initContainers", "ephemeralContainers", "hostAliases",
                           "resourceClaims", "ports", "volumeDevices", "ownerReferences"}) {
    fields.push_back(forbidden(FieldType::kArray, name));
  }
  for (const char* name : {"capabilities", "dnsConfig", "lifecycle"}) {
    fields.push_back(forbidden(FieldType::kObject, name));
  }
  fields.push_back(forbidden(FieldType::kInteger, "hostPort"));
  return fields;
}

}  // namespace

Field resources_field(const std::string& owner) {
  FieldRule fit{.cel = "",
                .message = "requests must not exceed limits; lower the request or raise the limit",
                .holds = requests_fit_limits};
  return object(
             "resources",
             "CPU, memory and devices of " + owner + ", as in a container; quantities such as 500m or 2Gi.",
             {quantity_map("limits", "The most that " + owner + " may use."),
              quantity_map("requests",
                           "What the scheduler sets aside for " + owner + "; the limits where absent.")})
      .rule(fit);
}

Field pod_options_field(const std::string& owner) {
  std::vector<Field> fields{
      string_map("labels", "More labels for the pods; keys of training.evenkeel.dev/ are the operator's.", 64,
                 63)
          .rule(own_keys_rule("labels")),
      string_map("annotations",
                 "More annotations for the pods; keys of training.evenkeel.dev/ are the operator's.", 64,
                 65536)
          .rule(own_keys_rule("annotations"))
          .rule(no_profile_rule()),
      env_field(),
      env_from_field(),
      string_map("nodeSelector", "Labels that a node must have.", 64, 63),
      open_object("affinity", "Affinity of the pods, as in a pod."),
      tolerations_field(),
      spread_field(),
      text("priorityClassName", "Priority class of the pods; scheduling.priorityClassName where absent.")
          .pattern(kObjectName),
      text("runtimeClassName", "Runtime class of the pods.").pattern(kObjectName),
      list("imagePullSecrets", "Secrets to pull the image with.", object("", "", {required_name("name")}), 16)
          .foreign(),
      text("serviceAccountName", "Service account of the pods; its token is never mounted.")
          .pattern(kObjectName),
      volumes_field(),
      volume_mounts_field(),
      security_context_field()};
  for (Field& field : forbidden_fields()) fields.push_back(field);
  return object(
      "podOptions",
      "What " + owner + " may ask of Kubernetes beyond the defaults; anything not listed here is refused.",
      fields);
}

Field volume_source_field(const std::string& description) {
  return object("volume", description, volume_sources()).rule(one_source_rule("volume")).foreign();
}

}  // namespace evenkeel::contract
