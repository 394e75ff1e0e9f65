// Names that both sides write on Kubernetes objects and read back. Data only.
#pragma once

namespace evenkeel::contract {

inline constexpr char kGroup[] = "training.evenkeel.dev";
inline constexpr char kVersion[] = "v1alpha1";
inline constexpr char kApiVersion[] = "training.evenkeel.dev/v1alpha1";
inline constexpr char kKind[] = "TrainingJob";
inline constexpr char kPlural[] = "trainingjobs";
inline constexpr char kDefaultManagedBy[] = "training.evenkeel.dev/operator";
inline constexpr char kFieldManager[] = "evenkeel-operator";

inline constexpr char kLabelPrefix[] = "training.evenkeel.dev/";
inline constexpr char kLabelJobName[] = "training.evenkeel.dev/job-name";
inline constexpr char kLabelJobUid[] = "training.evenkeel.dev/job-uid";
inline constexpr char kLabelAttempt[] = "training.evenkeel.dev/attempt";
inline constexpr char kLabelRole[] = "training.evenkeel.dev/role";
inline constexpr char kLabelRank[] = "training.evenkeel.dev/rank";
inline constexpr char kLabelIncarnation[] = "training.evenkeel.dev/incarnation";
// "true" on the pods that peers should resolve; taken off before a replacement is made.
inline constexpr char kLabelCurrent[] = "training.evenkeel.dev/current";

// On the coordinator's pod: the number of workers that are wanted now. Nobody reads it; a changed annotation
// makes the kubelet look at the pod at once, and so bring the mounted number up to date.
inline constexpr char kAnnotationWanted[] = "training.evenkeel.dev/wanted";

// Inside a pod.
inline constexpr char kContainerName[] = "trainer";
inline constexpr char kMetricsPortName[] = "metrics";
inline constexpr char kConfigMountPath[] = "/etc/evenkeel/config";
inline constexpr char kConfigFile[] = "trainer.json";
inline constexpr char kWantedMountPath[] = "/etc/evenkeel/wanted";
inline constexpr char kWantedFile[] = "replicas";
inline constexpr char kKeyMountPath[] = "/etc/evenkeel/key";
inline constexpr char kKeyFile[] = "key";
inline constexpr int kUserId = 65532;

// Ports of the trainer's own, beside spec.metrics.port.
inline constexpr int kControlPort = 9401;  // coordinator: rendezvous, step plans
inline constexpr int kDataPort = 9402;     // worker: collectives

}  // namespace evenkeel::contract
