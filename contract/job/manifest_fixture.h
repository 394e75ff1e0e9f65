// Manifests that tests start from. Tests only.
#pragma once

#include "base/json.h"

namespace evenkeel::contract {

using base::Json;

// The least that a job must say.
inline Json short_manifest() {
  auto parsed = base::parse_json(R"({
    "apiVersion": "training.evenkeel.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "demo"},
    "spec": {
      "workers": {"replicas": 4},
      "model": {"preset": "mlp"},
      "dataset": {"format": "idx", "path": "/data"},
      "training": {"epochs": 1, "batchSize": {"global": 256}}
    }})");
  return parsed.value();
}

// Something in every corner.
inline Json full_manifest() {
  auto parsed = base::parse_json(R"({
    "apiVersion": "training.evenkeel.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "demo", "namespace": "a"},
    "spec": {
      "workers": {
        "replicas": 4, "image": "registry.local/trainer:1",
        "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "250m"}},
        "overrides": [{"replicas": [3], "resources": {"limits": {"cpu": "250m"}}, "podOptions": {"nodeSelector": {"disk": "ssd"}}}],
        "podOptions": {
          "labels": {"team": "a"}, "annotations": {"note": "x"}, "env": [{"name": "LEVEL", "value": "1"}],
          "envFrom": [{"prefix": "P_", "configMapRef": {"name": "c"}}], "nodeSelector": {"disk": "ssd"},
          "affinity": {"nodeAffinity": {}}, "tolerations": [{"key": "k", "operator": "Exists"}],
          "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}], "priorityClassName": "high", "runtimeClassName": "kata",
          "imagePullSecrets": [{"name": "pull"}], "serviceAccountName": "trainer",
          "volumes": [{"name": "scratch", "emptyDir": {}}], "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
          "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000, "supplementalGroups": [5]}
        }
      },
      "coordinator": {"resources": {"limits": {"cpu": "100m"}}, "podOptions": {"labels": {"team": "a"}}},
      "reducers": {"replicas": 0}, "parameterServers": {},
      "model": {"layers": [{"type": "flatten"}, {"type": "dense", "units": 64}, {"type": "relu"}, {"type": "dense", "name": "out", "units": 10}]},
      "dataset": {
        "format": "idx", "path": "/data", "volume": {"persistentVolumeClaim": {"claimName": "data", "readOnly": true}},
        "split": {"train": "train", "eval": "test"}, "image": {"mean": [0.5], "std": [0.5]}, "shuffle": {"seed": 7},
        "onBadRecord": {"action": "Skip", "maxSkipped": 3}
      },
      "training": {
        "steps": 10, "batchSize": {"perReplica": 8}, "optimizer": {"learningRate": 0.01}, "learningRate": {"scaling": "None"},
        "evaluateEvery": 0
      },
      "restart": {"rules": [{"onExitCodes": [70], "action": "FailJob"}, {"onDisruption": true, "action": "Restart"}]},
      "deadlines": {"startSeconds": 600}, "cleanup": {"podPolicy": "None", "ttlSecondsAfterFinished": 100},
      "scheduling": {"priorityClassName": "low"},
      "checkpoint": {"path": "/checkpoints", "volume": {"persistentVolumeClaim": {"claimName": "ckpt"}}, "everySteps": 5},
      "metrics": {"port": 9500, "linger": 5}
    }})");
  return parsed.value();
}

}  // namespace evenkeel::contract
