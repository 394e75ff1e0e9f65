#include "operator/render/pod.h"

#include <algorithm>

#include "contract/commands.h"
#include "contract/job/paths.h"
#include "contract/labels.h"
#include "operator/plan/environment.h"
#include "operator/render/metadata.h"
#include "operator/render/pod_options.h"
#include "operator/render/resources.h"

namespace evenkeel::oper {
namespace {

using contract::Role;

constexpr int kGraceSeconds = 60;     // long enough for a checkpoint
constexpr int kNodeLostSeconds = 30;  // a lost node costs this long, not Kubernetes' five minutes
constexpr int kKeyMode = 0440;        // owner root, group = fsGroup: the trainer reads it, nobody else
constexpr char kSharedMemorySize[] =
    "1Gi";  // Kubernetes' default of 64 MiB is too little for ranks that share a pod
constexpr char kConfigVolume[] = "evenkeel-config";
constexpr char kWantedVolume[] = "evenkeel-wanted";
constexpr char kKeyVolume[] = "evenkeel-key";
constexpr char kSharedMemoryVolume[] = "evenkeel-shm";
constexpr char kDatasetVolume[] = "evenkeel-dataset";
constexpr char kCheckpointVolume[] = "evenkeel-checkpoints";

bool is_for(const contract::WorkerOverride& over, int rank) {
  return std::find(over.replicas.begin(), over.replicas.end(), rank) != over.replicas.end();
}

Json options_of(const contract::TrainingJob& job, const PodPlan& pod, const PodDefaults& defaults) {
  const bool worker = pod.role == Role::kWorker;
  const contract::PodShape& shape = worker ? job.spec.workers.shape : job.spec.coordinator;
  Json options = merge_pod_options(defaults.pod_options, shape.pod_options);
  for (const contract::WorkerOverride& over : job.spec.workers.overrides) {
    if (worker && is_for(over, pod.rank)) options = merge_pod_options(options, over.shape.pod_options);
  }
  return allowed_pod_options(options).options;
}

bool has_wanted_file(const JobPlan& plan, const PodPlan& pod) {
  return pod.role == Role::kCoordinator && !plan.wanted_map.empty();
}

Json metadata_of(const contract::TrainingJob& job, const JobPlan& plan, const PodPlan& pod,
                 const Json& options) {
  Json metadata = child_metadata(job.meta, pod.name, plan.attempt);
  Json labels = base::child(options, "labels");
  for (const auto& [name, value] : metadata["labels"].items()) labels[name] = value;
  labels[contract::kLabelRole] = contract::role_name(pod.role);
  labels[contract::kLabelRank] = std::to_string(pod.rank);
  labels[contract::kLabelIncarnation] = std::to_string(pod.incarnation);
  labels[contract::kLabelCurrent] = "true";
  metadata["labels"] = std::move(labels);
  if (const Json& own = base::child(options, "annotations"); !own.empty()) metadata["annotations"] = own;
  if (has_wanted_file(plan, pod))
    metadata["annotations"][contract::kAnnotationWanted] = std::to_string(plan.workers);
  return metadata;
}

Json env_of(const JobPlan& plan, const PodPlan& pod, const Json& options) {
  Json env = Json::array();
  // A name twice is legal in a pod but means the last: keep that one only.
  const Json merged =
      merge_pod_options({{"env", Json::array()}}, {{"env", options.value("env", Json::array())}});
  for (const Json& variable : merged["env"]) env.push_back(variable);
  for (const EnvironmentVariable& own : environment_of(plan, pod)) {
    Json variable = {{"name", own.name}};
    if (own.field_path.empty()) {
      variable["value"] = own.value;
    } else {
      variable["valueFrom"]["fieldRef"] = {{"apiVersion", "v1"}, {"fieldPath", own.field_path}};
    }
    env.push_back(std::move(variable));
  }
  return env;
}

// Volumes and the places where the container sees them grow together.
struct Storage {
  Json volumes = Json::array();
  Json mounts = Json::array();

  void add(const char* name, Json source, const std::string& path, bool read_only) {
    source["name"] = name;
    volumes.push_back(std::move(source));
    mounts.push_back({{"name", name}, {"mountPath", path}});
    if (read_only) mounts.back()["readOnly"] = true;
  }
  bool has_volume(const std::string& name) const {
    return std::any_of(volumes.begin(), volumes.end(),
                       [&](const Json& v) { return base::string_at(v, "name") == name; });
  }
  bool has_mount(const std::string& path) const {
    return std::any_of(mounts.begin(), mounts.end(),
                       [&](const Json& m) { return base::string_at(m, "mountPath") == path; });
  }
};

bool may_mount(const Json& source, std::string path) {
  if (path.ends_with('/')) path.pop_back();
  return is_allowed_volume_source(source) && contract::is_plain_path(path) && !contract::is_own_path(path);
}

void add_own(Storage& storage, const contract::TrainingJob& job, const JobPlan& plan, const PodPlan& pod) {
  storage.add(kConfigVolume, {{"configMap", {{"name", plan.config_map}}}}, contract::kConfigMountPath, true);
  storage.add(kKeyVolume, {{"secret", {{"secretName", plan.secret}, {"defaultMode", kKeyMode}}}},
              contract::kKeyMountPath, true);
  if (has_wanted_file(plan, pod))
    storage.add(kWantedVolume, {{"configMap", {{"name", plan.wanted_map}}}}, contract::kWantedMountPath,
                true);
  if (pod.role != Role::kWorker) return;  // the coordinator moves no samples and no weights
  storage.add(kSharedMemoryVolume, {{"emptyDir", {{"medium", "Memory"}, {"sizeLimit", kSharedMemorySize}}}},
              "/dev/shm", false);
  if (may_mount(job.spec.dataset.volume, job.spec.dataset.path)) {
    storage.add(kDatasetVolume, job.spec.dataset.volume, job.spec.dataset.path, true);
  }
  if (may_mount(job.spec.checkpoint.volume, job.spec.checkpoint.path)) {
    storage.add(kCheckpointVolume, job.spec.checkpoint.volume, job.spec.checkpoint.path, false);
  }
}

Storage storage_of(const contract::TrainingJob& job, const JobPlan& plan, const PodPlan& pod,
                   const Json& options) {
  Storage storage;
  add_own(storage, job, plan, pod);
  for (const Json& volume : options.value("volumes", Json::array())) {
    if (!storage.has_volume(base::string_at(volume, "name"))) storage.volumes.push_back(volume);
  }
  for (const Json& mount : options.value("volumeMounts", Json::array())) {
    const bool known = storage.has_volume(base::string_at(mount, "name"));
    if (known && !storage.has_mount(base::string_at(mount, "mountPath"))) storage.mounts.push_back(mount);
  }
  return storage;
}

Json tolerations_of(const Json& options) {
  Json tolerations = options.value("tolerations", Json::array());
  for (const char* taint : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const bool said = std::any_of(tolerations.begin(), tolerations.end(),
                                  [&](const Json& t) { return base::string_at(t, "key") == taint; });
    if (said) continue;
    tolerations.push_back({{"key", taint},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", kNodeLostSeconds}});
  }
  return tolerations;
}

Json pod_security(const Json& options) {
  Json context = {{"runAsNonRoot", true},
                  {"runAsUser", contract::kUserId},
                  {"runAsGroup", contract::kUserId},
                  {"fsGroup", contract::kUserId},
                  {"fsGroupChangePolicy", "OnRootMismatch"}};
  for (const auto& [name, value] : base::child(options, "securityContext").items()) context[name] = value;
  context["seccompProfile"] = {{"type", "RuntimeDefault"}};
  return context;
}

Json ports_of(const contract::TrainingJob& job, const PodPlan& pod) {
  Json ports = Json::array({{{"name", contract::kMetricsPortName},
                             {"containerPort", job.spec.metrics_port},
                             {"protocol", "TCP"}}});
  const bool worker = pod.role == Role::kWorker;
  ports.push_back({{"name", worker ? "data" : "control"},
                   {"containerPort", worker ? contract::kDataPort : contract::kControlPort},
                   {"protocol", "TCP"}});
  return ports;
}

Json resources_of(const contract::TrainingJob& job, const PodPlan& pod) {
  if (pod.role == Role::kWorker) return worker_resources(job.spec.workers, pod.rank);
  return merge_resources(job.spec.coordinator.resources, Json::object());
}

// The image's entry point is the trainer.
const char* command_of(const JobPlan& plan, const PodPlan& pod) {
  return pod.role == Role::kWorker && plan.ranks_per_pod > 1 ? contract::kLaunchCommand : contract::role_name(pod.role);
}

Json container_of(const contract::TrainingJob& job, const JobPlan& plan, const PodPlan& pod,
                  const PodDefaults& defaults, const Json& options, const Storage& storage) {
  Json container = {{"name", contract::kContainerName}};
  container["image"] = job.spec.workers.image.empty() ? defaults.image : job.spec.workers.image;
  // The chart's policy is for the chart's image; what a job names is pulled as Kubernetes does it.
  const std::string pull = base::string_at(defaults.pod_options, "imagePullPolicy");
  if (job.spec.workers.image.empty() && !pull.empty()) container["imagePullPolicy"] = pull;
  container["args"] = Json::array({command_of(plan, pod)});
  container["ports"] = ports_of(job, pod);
  if (const Json& sources = base::child(options, "envFrom"); !sources.empty()) container["envFrom"] = sources;
  container["env"] = env_of(plan, pod, options);
  const Json resources = resources_of(job, pod);
  if (!resources.empty()) container["resources"] = resources;
  container["volumeMounts"] = storage.mounts;
  container["securityContext"] = {{"allowPrivilegeEscalation", false},
                                  {"runAsNonRoot", true},
                                  {"capabilities", {{"drop", Json::array({"ALL"})}}},
                                  {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  return container;
}

void add_scheduling(Json& spec, const contract::TrainingJob& job, const Json& options) {
  for (const char* member : {"nodeSelector", "affinity", "topologySpreadConstraints", "runtimeClassName",
                             "imagePullSecrets", "serviceAccountName", "priorityClassName"}) {
    if (options.contains(member) && !options[member].empty()) spec[member] = options[member];
  }
  if (!spec.contains("priorityClassName") && !job.spec.priority_class_name.empty()) {
    spec["priorityClassName"] = job.spec.priority_class_name;
  }
  spec["tolerations"] = tolerations_of(options);
}

}  // namespace

Json render_pod(const contract::TrainingJob& job, const JobPlan& plan, const PodPlan& pod,
                const PodDefaults& defaults) {
  const Json options = options_of(job, pod, defaults);
  const Storage storage = storage_of(job, plan, pod, options);
  Json object = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  object["metadata"] = metadata_of(job, plan, pod, options);
  Json& spec = object["spec"];
  spec["hostname"] = pod.host_name;
  spec["subdomain"] = plan.service;
  spec["restartPolicy"] =
      "Never";  // a rank that starts again is a new incarnation, and that is the operator's decision
  spec["terminationGracePeriodSeconds"] = kGraceSeconds;
  spec["automountServiceAccountToken"] = false;
  spec["enableServiceLinks"] = false;
  spec["securityContext"] = pod_security(options);
  add_scheduling(spec, job, options);
  spec["containers"] = Json::array({container_of(job, plan, pod, defaults, options, storage)});
  spec["volumes"] = storage.volumes;
  return object;
}

}  // namespace evenkeel::oper
