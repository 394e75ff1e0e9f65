// What the diagnosis knows of a job beside the times of its steps: configuration, environment, counters.
// Every fact may be unknown, and an unknown fact never makes a rule fire. Filled in by Coordination. Values
// only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace evenkeel::trainer {

enum class BatchRule {
  kUnknown,
  kGlobalKept,   // Strong, or `global` given: b = G / N, the more ranks the smaller
  kPerRankKept,  // Weak: G = b * N
};

struct RankFacts {
  std::optional<double> cpu_limit;        // cores; absent: unknown or none
  std::optional<int> threads;             // that compute
  std::optional<double> throttled_share;  // of the quota's periods, 0..1
  std::string device_model;               // empty: unknown
};

// Ranks of one machine that have more threads, or may use more CPU, than it has cores.
struct CrowdedNode {
  std::string node;
  double wanted = 0;  // cores that the ranks' threads and limits ask for
  int cores = 0;
};

struct JobFacts {
  BatchRule batch_rule = BatchRule::kUnknown;
  std::int64_t global_batch = 0;  // 0: unknown
  // spec.tune.maxGlobalBatch; 0: no larger batch is allowed; absent: unknown.
  std::optional<std::int64_t> max_global_batch;
  std::string rate_rule;                 // Linear | Sqrt | None: for the sentence
  std::optional<bool> local_batch_norm;  // statistics over a rank's own samples
  bool shares_by_speed = false;          // the balancer's, so that unequal ones are no fault
  bool balance_allowed = true;           // balance.mode is Rebalance
  std::optional<CrowdedNode> crowded;  // the worst; absent: none, or not known
  // Communication.
  std::optional<double> gradient_bytes;             // of one all-reduce, as they travel
  std::optional<double> bus_bytes_per_second;       // of an all-reduce of that size
  std::optional<double> best_bus_bytes_per_second;  // the same with the best bucket that was measured
  std::optional<double> best_bucket_bytes;          // its size
  std::optional<double> hop_seconds;                // latency of one hop of the ring
  std::optional<bool> wire_is_32_bit;
  // Sparse gradients: what gathering them moves, and what a dense reduction would.
  std::optional<double> sparse_bytes, dense_bytes;
  // Data.
  std::optional<int> data_threads;
  std::optional<double> synthetic_speedup;       // samples/s with data made up, over real data
  std::optional<double> decoded_bytes_per_rank;  // of the whole data set that a rank would keep in memory
  std::optional<double> free_memory_bytes;
  // Kernels of a device.
  std::optional<double> mean_kernel_seconds, launch_share;
  // Wall time, checkpoints and evaluations included.
  std::optional<double> checkpoint_share;
};

// One epoch's records, by counting them where they are read.
struct EpochFacts {
  std::optional<std::int64_t> data_samples, skipped_samples, ids_seen, unique_ids;
  std::optional<int> equal_batches_in_a_row;  // steps in which two ranks read the same records
  std::optional<std::uint64_t> order_hash, last_order_hash;
  std::optional<bool> every_record_once;  // false: some were read twice and others never; how many is not known
};

// A check that a rank made and that ended the job, by its name.
struct FailedCheck {
  std::string name, sentence;
};

struct CheckFacts {
  std::optional<FailedCheck> failed;
  std::vector<std::int64_t> planned_steps;         // by rank
  std::optional<double> parameter_difference;      // between ranks, relative; 0: equal to the bit
  std::optional<bool> parameters_before_step_one;  // when that was looked at
  std::optional<double> loss_ratio;                // N ranks over one rank, same batch
  std::optional<bool> first_nonfinite_step_had_empty_or_partial_rank;
  std::optional<bool> gradients_finite_before_reduction, gradients_finite_after_reduction;
  // Learning rate: by what factors updates per epoch fell and the rate rose; loss in warm-up over its median.
  std::optional<double> updates_fell_by, rate_rose_by, warmup_loss_ratio;
  // fp16.
  std::optional<std::int64_t> steps, skipped_steps, scale_halvings;
  std::optional<double> loss_scale;
  // Pods.
  std::optional<double> shared_memory_bytes;
  std::optional<int> ranks_per_pod;
  std::optional<int> running_pods, pending_pods;
  std::optional<double> pending_seconds;
  std::string pending_reason;
};

}  // namespace evenkeel::trainer
