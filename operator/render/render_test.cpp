#include <gtest/gtest.h>

#include <set>

#include "contract/job/manifest_fixture.h"
#include "contract/job/validate.h"
#include "contract/labels.h"
#include "operator/render/metadata.h"
#include "operator/render/objects.h"
#include "operator/render/pod.h"
#include "operator/render/pod_options.h"
#include "operator/render/resources.h"

namespace evenkeel::oper {
namespace {

Json json(const char* text) {
  return base::parse_json(text).value();
}

contract::TrainingJob full_job() {
  Json manifest = contract::full_manifest();
  manifest["metadata"]["uid"] = "0123456789abcdef";
  return contract::decode_job(manifest).value();
}

Json pod_of(const contract::TrainingJob& job, const std::string& host_name,
            const PodDefaults& defaults = {}) {
  const JobPlan plan = make_plan(job, 1, 1);
  for (const PodPlan& pod : plan.pods) {
    if (pod.host_name == host_name) return render_pod(job, plan, pod, defaults);
  }
  ADD_FAILURE() << "no pod " << host_name;
  return Json::object();
}

Json volume_named(const Json& pod, const std::string& name) {
  for (const Json& volume : pod["spec"]["volumes"]) {
    if (volume["name"] == name) return volume;
  }
  return nullptr;
}

Json mount_at(const Json& pod, const std::string& path) {
  for (const Json& mount : pod["spec"]["containers"][0]["volumeMounts"]) {
    if (mount["mountPath"] == path) return mount;
  }
  return nullptr;
}

// The rules of PodSecurity "restricted", written down once more.
void expect_restricted(const Json& pod) {
  const Json& spec = pod["spec"];
  for (const char* name :
       {"hostNetwork", "hostPID", "hostIPC", "initContainers", "ephemeralContainers", "nodeName"}) {
    EXPECT_FALSE(spec.contains(name)) << name;
  }
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
  EXPECT_GT(spec["securityContext"]["runAsUser"], 0);
  EXPECT_EQ(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
  EXPECT_FALSE(spec["securityContext"].contains("sysctls"));
  ASSERT_EQ(spec["containers"].size(), 1u);
  const Json& security = spec["containers"][0]["securityContext"];
  EXPECT_EQ(security["allowPrivilegeEscalation"], false);
  EXPECT_EQ(security["capabilities"]["drop"], Json::array({"ALL"}));
  EXPECT_FALSE(security["capabilities"].contains("add"));
  EXPECT_FALSE(security.contains("privileged"));
  for (const Json& port : spec["containers"][0]["ports"]) EXPECT_FALSE(port.contains("hostPort"));
  const std::set<std::string> allowed = {"configMap", "secret", "emptyDir", "persistentVolumeClaim",
                                         "ephemeral", "csi"};
  for (const Json& volume : spec["volumes"]) {
    for (const auto& member : volume.items()) {
      if (member.key() != "name") {
        EXPECT_TRUE(allowed.contains(member.key())) << member.key();
      }
    }
  }
}

TEST(Render, pods_pass_the_restricted_level) {
  const contract::TrainingJob job = full_job();
  for (const char* host : {"demo-worker-0", "demo-worker-3", "demo-coordinator-0"})
    expect_restricted(pod_of(job, host));
}

TEST(Render, pod_defaults_hold) {
  const Json pod = pod_of(full_job(), "demo-worker-0");
  const Json& spec = pod["spec"];
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["hostname"], "demo-worker-0");
  EXPECT_EQ(spec["subdomain"], "demo");
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_EQ(spec["enableServiceLinks"], false);
  EXPECT_EQ(spec["terminationGracePeriodSeconds"], 60);
  EXPECT_EQ(spec["containers"][0]["args"], Json::array({"worker"}));
  EXPECT_EQ(volume_named(pod, "evenkeel-shm")["emptyDir"]["medium"], "Memory");
  EXPECT_EQ(volume_named(pod, "evenkeel-shm")["emptyDir"]["sizeLimit"], "1Gi");
  EXPECT_EQ(mount_at(pod, "/data")["readOnly"], true);
  EXPECT_FALSE(mount_at(pod, "/checkpoints").contains("readOnly"));
  EXPECT_EQ(mount_at(pod, contract::kKeyMountPath)["readOnly"], true);
  EXPECT_EQ(spec["tolerations"].size(), 3u);
  EXPECT_EQ(spec["tolerations"][2]["tolerationSeconds"], 30);
}

TEST(Render, a_pod_of_several_ranks_runs_the_launcher_and_its_limits_are_for_all_of_them) {
  contract::TrainingJob job = full_job();
  job.spec.workers.devices_per_replica = 2;
  const JobPlan plan = make_plan(job, 2, 3);
  for (const PodPlan& pod : plan.pods) {
    const Json container = render_pod(job, plan, pod, {})["spec"]["containers"][0];
    const bool worker = pod.role == contract::Role::kWorker;
    EXPECT_EQ(container["args"], Json::array({worker ? "launch" : "coordinator"})) << pod.name;
    if (worker) {
      EXPECT_EQ(container.value("resources", Json()), pod_of(full_job(), pod.host_name)["spec"]["containers"][0].value("resources", Json()));
    }
  }
}

TEST(Render, every_child_is_owned_and_labelled) {
  const contract::TrainingJob job = full_job();
  const JobPlan plan = make_plan(job, 2, 3);
  for (const Json& object : {render_service(job, plan), render_config_map(job, plan),
                             render_secret(job, plan), render_pod(job, plan, plan.pods[1], {})}) {
    EXPECT_TRUE(is_controlled_by(object, job.meta.uid));
    EXPECT_FALSE(is_controlled_by(object, "another"));
    EXPECT_EQ(object["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
    EXPECT_EQ(object["metadata"]["labels"][contract::kLabelJobUid], job.meta.uid);
    for (const auto& label : object["metadata"]["labels"].items())
      EXPECT_LE(label.value().get<std::string>().size(), 63u);
    EXPECT_FALSE(object["metadata"].contains("finalizers"));
  }
}

TEST(Render, the_service_selects_current_pods_of_this_job_ready_or_not) {
  const contract::TrainingJob job = full_job();
  const Json service = render_service(job, make_plan(job, 1, 1));
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  EXPECT_EQ(service["spec"]["publishNotReadyAddresses"], true);
  EXPECT_EQ(service["spec"]["selector"][contract::kLabelCurrent], "true");
  const Json pod = pod_of(job, "demo-worker-0");
  for (const auto& [name, value] : service["spec"]["selector"].items())
    EXPECT_EQ(pod["metadata"]["labels"][name], value);
}

TEST(Render, the_trainer_reads_the_config_map) {
  const contract::TrainingJob job = full_job();
  const Json config_map = render_config_map(job, make_plan(job, 2, 3));
  EXPECT_EQ(config_map["immutable"], true);
  const auto parsed = base::parse_json(config_map["data"]["trainer.json"].get<std::string>());
  ASSERT_TRUE(parsed.ok());
  const auto config = contract::decode_trainer_config(*parsed);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->attempt, 2u);
}

TEST(Render, the_key_is_left_to_whoever_has_random_bytes) {
  const contract::TrainingJob job = full_job();
  const Json secret = render_secret(job, make_plan(job, 1, 1));
  EXPECT_EQ(secret["data"]["key"], "");
  EXPECT_EQ(secret["immutable"], true);
}

TEST(Render, an_override_is_for_its_replicas_only) {
  const contract::TrainingJob job = full_job();
  EXPECT_EQ(pod_of(job, "demo-worker-3")["spec"]["containers"][0]["resources"]["limits"]["cpu"], "250m");
  EXPECT_EQ(pod_of(job, "demo-worker-2")["spec"]["containers"][0]["resources"]["limits"]["cpu"], "500m");
  EXPECT_EQ(pod_of(job, "demo-worker-3")["spec"]["containers"][0]["resources"]["limits"]["memory"], "1Gi");
}

TEST(Render, a_lower_limit_takes_the_request_along) {
  const Json merged = merge_resources(json(R"({"limits": {"cpu": "1"}, "requests": {"cpu": "800m"}})"),
                                      json(R"({"limits": {"cpu": "500m"}})"));
  EXPECT_EQ(merged["requests"]["cpu"], "500m");
  EXPECT_EQ(merge_resources(Json::object(), Json::object()), Json::object());
}

TEST(Render, cuda_asks_for_its_devices) {
  contract::WorkersSpec workers;
  workers.device = contract::Device::kCuda;
  EXPECT_EQ(worker_resources(workers, 0)["limits"]["nvidia.com/gpu"], 1);
}

TEST(Render, no_env_name_comes_twice_and_ours_win) {
  contract::TrainingJob job = full_job();
  job.spec.workers.shape.pod_options["env"] =
      json(R"([{"name": "MASTER_ADDR", "value": "x"}, {"name": "A", "value": "1"},
      {"name": "EVENKEEL_RANK", "value": "9"}, {"name": "A", "value": "2"}])");
  const Json pod = pod_of(job, "demo-worker-1");
  std::set<std::string> names;
  for (const Json& variable : pod["spec"]["containers"][0]["env"]) {
    EXPECT_TRUE(names.insert(variable["name"]).second) << variable["name"];
    if (variable["name"] == "MASTER_ADDR") {
      EXPECT_EQ(variable["value"], "demo-worker-0.demo.a.svc");
    }
    if (variable["name"] == "A") {
      EXPECT_EQ(variable["value"], "2");
    }
  }
  EXPECT_TRUE(names.contains("A"));
}

// One attack each, as if a loose schema had let it into the store.
TEST(Render, what_is_not_allowed_never_reaches_a_pod) {
  const char* attacks[] = {
      R"({"hostNetwork": true})",
      R"({"hostPID": true})",
      R"({"hostIPC": true})",
      R"({"nodeName": "master"})",
      R"({"containers": [{"name": "x"}]})",
      R"({"initContainers": [{"name": "x"}]})",
      R"({"ephemeralContainers": []})",
      R"({"privileged": true})",
      R"({"capabilities": {"add": ["SYS_ADMIN"]}})",
      R"({"automountServiceAccountToken": true})",
      R"({"restartPolicy": "Always"})",
      R"({"hostname": "x"})",
      R"({"subdomain": "x"})",
      R"({"schedulerName": "x"})",
      R"({"hostAliases": [{"ip": "1.1.1.1"}]})",
      R"({"shareProcessNamespace": true})",
      R"({"dnsPolicy": "Default"})",
      R"({"securityContext": {"privileged": true}})",
      R"({"securityContext": {"runAsUser": 0}})",
      R"({"securityContext": {"runAsNonRoot": false}})",
      R"({"securityContext": {"seccompProfile": {"type": "Unconfined"}}})",
      R"({"securityContext": {"sysctls": [{"name": "x", "value": "y"}]}})",
      R"({"securityContext": {"windowsOptions": {}}})",
      R"({"securityContext": {"seLinuxOptions": {"type": "spc_t"}}})",
      R"({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}})",
      R"({"volumes": [{"name": "h", "hostPath": {"path": "/"}}], "volumeMounts": [{"name": "h", "mountPath": "/h"}]})",
      R"({"volumes": [{"name": "h", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]})",
      R"({"volumes": [{"name": "h", "downwardAPI": {}}]})",
      R"({"volumes": [{"name": "h", "nfs": {"server": "x"}}]})",
      R"({"volumes": [{"name": "h", "emptyDir": {}, "hostPath": {"path": "/"}}]})",
      R"({"volumes": [{"name": "evenkeel-key", "emptyDir": {}}]})",
      R"({"volumes": "x"})",
      R"({"volumes": [7]})",
      R"({"volumeMounts": [{"name": "evenkeel-key", "mountPath": "/key"}]})",
      R"({"volumeMounts": [{"name": "scratch", "mountPath": "/s", "mountPropagation": "Bidirectional"}]})",
      R"({"volumeMounts": [{"name": "scratch", "mountPath": "/etc/evenkeel/config"}]})",
      R"({"volumeMounts": [{"name": "nowhere", "mountPath": "/n"}]})",
      R"({"labels": {"training.evenkeel.dev/rank": "0", "training.evenkeel.dev/job-uid": "x", "training.evenkeel.dev/current": "false"}})",
      R"({"annotations": {"container.apparmor.security.beta.kubernetes.io/trainer": "unconfined"}})",
      R"({"annotations": {"training.evenkeel.dev/x": "y"}})",
      R"({"env": [{"name": "RANK", "value": "7"}, {"name": "TF_CONFIG", "value": "{}"}, {"name": "PET_NNODES", "value": "1"}]})",
      R"({"env": [{"name": "X", "valueFrom": {"fileKeyRef": {"path": "/etc/shadow"}}}]})",
      R"({"env": {"name": "X"}})",
      R"({"tolerations": "all"})",
      R"({"serviceAccountName": {"name": "x"}})",
      R"({"imagePullSecrets": "x"})",
      R"(["hostNetwork"])"};
  const Json clean = pod_of(full_job(), "demo-worker-1");
  for (const char* attack : attacks) {
    contract::TrainingJob job = full_job();
    const Json options = json(attack);
    job.spec.workers.shape.pod_options = merge_pod_options(job.spec.workers.shape.pod_options, options);
    const Json pod = pod_of(job, "demo-worker-1");
    expect_restricted(pod);
    EXPECT_EQ(pod["metadata"]["labels"][contract::kLabelRank], "1") << attack;
    EXPECT_EQ(pod["metadata"]["labels"][contract::kLabelJobUid], job.meta.uid) << attack;
    EXPECT_EQ(pod["metadata"]["labels"][contract::kLabelCurrent], "true") << attack;
    EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], false) << attack;
    EXPECT_EQ(pod["spec"]["restartPolicy"], "Never") << attack;
    EXPECT_EQ(mount_at(pod, contract::kConfigMountPath)["name"], "evenkeel-config") << attack;
    EXPECT_TRUE(mount_at(pod, "/h").is_null()) << attack;
    EXPECT_TRUE(mount_at(pod, "/key").is_null()) << attack;
    EXPECT_TRUE(mount_at(pod, "/n").is_null()) << attack;
    for (const auto& member : pod["spec"].items())
      EXPECT_TRUE(clean["spec"].contains(member.key())) << attack << " brought " << member.key();
  }
}

TEST(Render, what_was_dropped_is_named) {
  const AllowedOptions allowed =
      allowed_pod_options(json(R"({"hostNetwork": true, "env": [{"name": "RANK"}], "labels": {"a": "b"}})"));
  EXPECT_EQ(allowed.dropped, (std::vector<std::string>{"env[0]", "hostNetwork"}));
  EXPECT_EQ(allowed.options["labels"]["a"], "b");
}

TEST(Render, the_charts_pull_policy_is_for_the_charts_image) {
  const PodDefaults defaults{"trainer:9", json(R"({"imagePullPolicy": "Always"})")};
  contract::TrainingJob job = full_job();
  EXPECT_FALSE(pod_of(job, "demo-worker-0", defaults)["spec"]["containers"][0].contains("imagePullPolicy"));
  job.spec.workers.image.clear();
  const Json pod = pod_of(job, "demo-coordinator-0", defaults);
  EXPECT_EQ(pod["spec"]["containers"][0]["image"], "trainer:9");
  EXPECT_EQ(pod["spec"]["containers"][0]["imagePullPolicy"], "Always");
  EXPECT_FALSE(pod["spec"].contains("imagePullPolicy"));
}

TEST(Render, the_charts_defaults_lie_under_the_jobs_options) {
  const PodDefaults defaults{
      "trainer:9",
      json(R"({"imagePullSecrets": [{"name": "chart"}], "tolerations": [{"key": "gpu", "operator": "Exists"}],
      "nodeSelector": {"pool": "train", "disk": "hdd"}})")};
  const Json pod = pod_of(full_job(), "demo-worker-0", defaults);
  EXPECT_EQ(pod["spec"]["imagePullSecrets"].size(), 2u);
  EXPECT_EQ(pod["spec"]["nodeSelector"]["pool"], "train");
  EXPECT_EQ(pod["spec"]["nodeSelector"]["disk"], "ssd");
  EXPECT_EQ(pod["spec"]["containers"][0]["image"], "registry.local/trainer:1");
  EXPECT_EQ(pod_of(full_job(), "demo-coordinator-0", defaults)["spec"]["nodeSelector"]["pool"], "train");
}

}  // namespace
}  // namespace evenkeel::oper
