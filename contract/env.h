// Environment variables of a trainer process: written by operator/render and trainer/local, read by
// trainer/config. A user's own env may not set any of these, nor any name that starts with EVENKEEL_ or PET_.
// Data only.
#pragma once

namespace evenkeel::contract {

inline constexpr char kEnvConfig[] = "EVENKEEL_CONFIG";     // path of trainer.json
inline constexpr char kEnvKeyFile[] = "EVENKEEL_KEY_FILE";  // path of the job's key (raw bytes)
inline constexpr char kEnvRole[] = "EVENKEEL_ROLE";         // worker | coordinator
inline constexpr char kEnvRank[] = "EVENKEEL_RANK";         // worker: 0..ranks-1; coordinator: 0
inline constexpr char kEnvIncarnation[] = "EVENKEEL_INCARNATION";  // of the pod
// Written by the launcher of a pod for each of its ranks, beside RANK and LOCAL_RANK: how often this rank was
// started again in its pod; and the file into which it writes the port of its own pages, which are then on the
// loopback interface and not on the pod's port.
inline constexpr char kEnvRestarts[] = "EVENKEEL_RESTARTS";
inline constexpr char kEnvMetricsFile[] = "EVENKEEL_METRICS_FILE";
// Coordinator of a scalable job: path of a file with the number of worker pods that are wanted now, in digits.
// It changes while the job runs; without the variable the size is fixed.
inline constexpr char kEnvWantedFile[] = "EVENKEEL_WANTED_FILE";
inline constexpr char kEnvPodName[] = "EVENKEEL_POD_NAME";    // downward API
inline constexpr char kEnvPodUid[] = "EVENKEEL_POD_UID";      // downward API
inline constexpr char kEnvPodIp[] = "EVENKEEL_POD_IP";        // downward API: the only address that is bound
inline constexpr char kEnvNodeName[] = "EVENKEEL_NODE_NAME";  // downward API
inline constexpr char kEnvTerminationLog[] =
    "EVENKEEL_TERMINATION_LOG";  // path; default /dev/termination-log
// trainer/local only: the processes of one machine share an address, so each gets its own ports.
inline constexpr char kEnvMetricsPort[] = "EVENKEEL_METRICS_PORT";
inline constexpr char kEnvDataPort[] = "EVENKEEL_DATA_PORT";
// trainer/local only: file of this process's part of a trace, and samples that are computed at once. For a
// launcher the file's name holds kRankInName, which stands for the rank.
inline constexpr char kRankInName[] = "{rank}";
inline constexpr char kEnvTrace[] = "EVENKEEL_TRACE";
inline constexpr char kEnvMicroBatch[] = "EVENKEEL_MICRO_BATCH";
// "off": neighbours on one machine talk over TCP too; unset or "on": through memory that they share, where they can.
// For comparisons; trainer/local hands it on to its workers.
inline constexpr char kEnvSharedMemory[] = "EVENKEEL_SHARED_MEMORY";
inline constexpr char kEnvInject[] = "EVENKEEL_INJECT";  // slowness on purpose: trainer/loop/injection.h

// For users' own programs (torchrun, TensorFlow).
inline constexpr char kEnvPlainRank[] = "RANK";
inline constexpr char kEnvWorldSize[] = "WORLD_SIZE";
inline constexpr char kEnvNodeRank[] = "NODE_RANK";
inline constexpr char kEnvLocalRank[] = "LOCAL_RANK";
inline constexpr char kEnvMasterAddr[] = "MASTER_ADDR";
inline constexpr char kEnvMasterPort[] = "MASTER_PORT";
inline constexpr char kEnvTfConfig[] = "TF_CONFIG";
inline constexpr char kEnvPetPrefix[] = "PET_";

}  // namespace evenkeel::contract
