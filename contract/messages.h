// What worker and coordinator say to each other: the JSON payloads of control frames (wire.h), as values with
// to_json and checked decoders. One place for both sides. Pure.
//
// Course: Hello -> Challenge -> Join -> Membership -> Ready -> (StepPlan -> Commit)* with Evaluated and
// Checkpointed where the plan asks -> Finish. When a rank dies or another one comes: Regroup -> Paused ->
// Membership, and on as before. Abort ends it at any point; the worker's process then exits 75 (or with its
// own failure's code).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "contract/wire.h"

namespace evenkeel::contract {

using base::Json;

struct Hello {
  int protocol = 1;
  std::string job_uid;
  std::uint32_t attempt = 0;
  int rank = 0;
  std::int64_t incarnation = 0;  // the highest wins
  std::string pod_uid;
  std::string nonce_hex;  // 32 random bytes
};

struct Challenge {
  std::string nonce_hex;
  std::string proof_hex;  // handshake_proof(key, "coordinator", hello, hello.nonce)
};

// HMAC-SHA256 over side, job UID, attempt, role, rank, incarnation and the other side's nonce. Hex.
std::string handshake_proof(const std::string& key, const std::string& side, const Hello& hello,
                            const std::string& nonce_hex);

// Positions [begin, end) of an epoch's order that belong to one rank.
struct Piece {
  int rank = 0;
  std::int64_t begin = 0, end = 0;
  std::int64_t samples() const { return end - begin; }
  bool operator==(const Piece&) const = default;
};

// Newest checkpoint that verifies, as a worker found it; step 0: none.
struct CheckpointPosition {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t cursor = 0;  // samples of `epoch` that are committed
  std::string manifest_hash;
  std::vector<std::int64_t> consumed;  // per rank, since the job began
  std::vector<std::string> skipped;    // folders that did not verify, and why
  std::vector<Piece> owned = {};            // sharding File: what of `epoch` is not committed yet, and whose it is
  std::vector<std::int64_t> poison = {};    // ids of records that could not be read and are skipped from now on
  double rate_batch = 0;                    // that the learning rate of `step` was for (StepPlan); 0: not known
};

struct Join {
  std::string proof_hex;
  std::string plan_hash;  // model, buckets, configuration; not the local batch
  std::vector<std::pair<std::string, std::string>>
      plan_parts;            // layer or section -> hash: names the difference
  std::string byte_order;    // "little"
  std::string data_address;  // host:port of the collective's listener
  std::string pod;
  std::string node;
  std::int64_t train_samples = 0;
  std::int64_t eval_samples = 0;
  CheckpointPosition checkpoint;
  // The position of the last commit of this process, where it comes back to a new coordinator with its state
  // still in memory.
  std::optional<CheckpointPosition> held;
  int threads = 1;
  double cpu_limit = 0;  // cores; 0 = none
  int cores = 0;         // of the machine that this process may use; 0 = unknown
  std::string device_model = {};       // "AMD EPYC 7763 64-Core Processor"; empty: unknown
  int data_threads = 0;           // that read and decode; 0: unknown
  double free_memory_bytes = 0;   // that this process may still take; 0: unknown
  double decoded_bytes = 0;       // of the training split, decoded, as a cache in memory would keep it; 0: unknown
  std::vector<std::int64_t> file_samples = {};  // sharding File: samples of each file of the training split
  std::string version;
};

// Where the state comes from that all ranks of a group begin with.
enum class StateSource {
  kInitial,     // initial weights of the group's first rank
  kCheckpoint,  // restore_rank loads its checkpoint and broadcasts
  kMemory,      // restore_rank broadcasts what it holds
  kInPlace,     // every rank of the group holds it already
};

// A group of ranks for one fence: who they are, in the order of the ring, and what they begin with.
struct Membership {
  Fence fence;
  int rank = 0;
  std::vector<int> ranks;          // ascending; may be fewer than the job has
  std::vector<std::string> peers;  // host:port, as `ranks`
  StateSource source = StateSource::kInitial;
  int restore_rank = -1;          // of kCheckpoint and kMemory
  std::int64_t restore_step = 0;  // committed steps of the state
  std::int64_t target_steps = 0;
  int writer = 0;  // the rank that writes the checkpoints
  bool preflight = false;  // look at machines, network and numbers before Ready
  // What is left of step restore_step, because whoever had to do it is gone: done before the first plan.
  bool evaluate_first = false;
  bool checkpoint_first = false;
  int position() const;             // of `rank` in `ranks`
  int position_of(int other) const;  // -1: not in the group
};

// The group changes. All plans of earlier fences are void; the answer is Paused, then comes a Membership.
struct Regroup {
  Fence fence;  // of the next group
  std::string reason;
};

// What the ranks found out together before the first step; the same on all of them.
struct Preflight {
  double bus_bytes_per_second = 0;  // 2 (n - 1) / n * bytes of a bucket / seconds of its all-reduce
  double hop_seconds = 0;           // from one rank to the next
  // All ranks at once, each on its share, without any reduction: means over the ranks.
  double share_compute_seconds = 0, share_input_seconds = 0;
  // The rank of median speed alone on `samples`, a step of the same job with one rank; 0: not measured.
  double samples = 0, compute_seconds = 0, input_seconds = 0, step_seconds = 0;
  // All ranks at once, a step on their shares without any reduction: with data read as in training, and with
  // the same samples again and again.
  double real_step_seconds = 0, synthetic_step_seconds = 0;
  double best_bus_bytes_per_second = 0;  // over the sizes of buckets that were tried
  double best_bucket_bytes = 0;
  double seconds = 0;  // that all of this took
};

struct Ready {
  Fence fence;
  std::string parameter_hash;  // of weights and optimizer state: must be equal on all ranks
  double restore_seconds = 0;
  std::optional<Preflight> preflight = {};
};

// Step `step` (1-based: the number of committed steps after it). Rank r takes the positions [cuts[r],
// cuts[r+1]) of the epoch's order; cuts has ranks + 1 entries and never decreases; an empty share is normal.
// Where ranks own parts of the order (sharding File) rank r takes the first cuts[r+1] - cuts[r] positions of its
// `pieces`; the first plan of an epoch or a group goes on with all that each owns. cuts[0]: committed so far.
struct StepPlan {
  Fence fence;
  std::int64_t step = 0;
  std::int64_t epoch = 0;  // 0-based
  std::vector<std::int64_t> cuts;
  bool evaluate_after = false;
  bool checkpoint_after = false;
  bool stop_after = false;
  std::int64_t global_batch = 0;  // G in force; the last step of an epoch holds what is left
  double rate_batch = 0;  // G that the learning rate is scaled for: moves slowly to a new G after a resize
  std::vector<Piece> pieces = {};
  std::int64_t planned() const { return cuts.empty() ? 0 : cuts.back() - cuts.front(); }
};

// Phases of observability.md 2; seconds in one step. The sum is the step's wall time; `other` is what is
// left.
struct PhaseSeconds {
  double input_wait = 0, h2d_copy = 0, forward = 0, backward = 0, collective_wait = 0, optimizer = 0,
         checkpoint = 0, eval = 0, other = 0;
  double busy() const { return input_wait + h2d_copy + forward + backward + optimizer; }
  double total() const { return busy() + collective_wait + checkpoint + eval + other; }
};
inline constexpr const char* kPhaseNames[] = {
    "input_wait", "h2d_copy",   "forward", "backward", "collective_wait",
    "optimizer",  "checkpoint", "eval",    "other"};
double phase(const PhaseSeconds& phases, int index);  // in the order of kPhaseNames
double& phase(PhaseSeconds& phases, int index);

struct Commit {
  Fence fence;
  std::int64_t step = 0;
  std::int64_t samples = 0;        // own share
  std::int64_t reduced_count = 0;  // over all ranks, as the reduction returned it: must equal the plan
  std::uint64_t ids_hash = 0;      // sum of mix64(sample id) of what this rank read
  std::uint64_t reduced_ids_hash = 0;  // the same over all ranks, as the reduction returned it
  double loss_sum = 0;             // reduced
  double correct = 0;              // reduced
  double learning_rate = 0;
  double gradient_norm = 0;
  PhaseSeconds phases;
  double step_seconds = 0;
  std::uint64_t collectives = 0;
  std::uint64_t collective_bytes = 0;  // sent by this rank
  double work = 0;  // what the share is worth beside its number of samples: bytes of its records; 0: not counted
  std::vector<std::int64_t> skipped_ids = {};  // of its share: could not be read and were skipped
  // Gradient noise scale (McCandlish et al., 2018): squared norms of the mean gradient over this rank's own
  // samples and of the reduced one; 0: not measured in this step.
  double own_gradient_square = 0, reduced_gradient_square = 0;
  // Seconds for which the loop's thread was ready to run and had no core, from the data to the optimizer; and those
  // of them in reductions. Both are in `phases`, the latter in `backward`.
  double no_core_seconds = 0, no_core_reducing_seconds = 0;
};

// Where a rank stands that left its group. The commit of its last step goes along: the first one may have
// been sent into a fence that had just become void.
struct Paused {
  Fence fence;  // of the Regroup that this answers
  std::int64_t step = 0;
  std::optional<Commit> last;
  std::int64_t evaluated = 0;     // newest step whose evaluation this rank has done
  std::int64_t checkpointed = 0;  // newest step that this rank has written or is writing
};

struct Broken {
  Fence fence;
  std::string reason;
};

struct Heartbeat {
  std::int64_t step = 0;
  std::string phase;
  // Of the cgroup with the tightest CPU quota, counted since the process began; 0 periods: no quota, or unknown.
  std::int64_t quota_periods = 0, throttled_periods = 0;
};

struct Evaluated {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double loss_sum = 0;       // reduced
  std::int64_t correct = 0;  // reduced
  std::int64_t samples = 0;  // reduced
  double seconds = 0;
};

struct Checkpointed {
  std::int64_t step = 0;
  std::string directory;  // empty on ranks that do not write
  std::int64_t bytes = 0;
  double seconds = 0;
  std::string error;  // empty: written
};

struct StopRequest {
  std::string reason;  // "SIGTERM"
};

struct Failure {
  int exit_code = 70;
  std::string reason;  // for people
  std::int64_t step = 0;
};

struct Abort {
  std::string reason;
  int culprit = -1;  // rank, or -1
};

struct Finish {
  bool completed = false;  // false: stopped on request
  std::string reason;
};

struct Refused {
  int exit_code = 75;
  std::string reason;
};

// Each message has a Json to_json(const M&) and a decoder decode_<name>(const Json&) with kCorruptData on
// errors.
#define EVENKEEL_MESSAGE(Type, name) \
  Json to_json(const Type& message); \
  base::Result<Type> decode_##name(const Json& json);
EVENKEEL_MESSAGE(Hello, hello)
EVENKEEL_MESSAGE(Challenge, challenge)
EVENKEEL_MESSAGE(CheckpointPosition, checkpoint_position)
EVENKEEL_MESSAGE(Join, join)
EVENKEEL_MESSAGE(Membership, membership)
EVENKEEL_MESSAGE(Regroup, regroup)
EVENKEEL_MESSAGE(Ready, ready)
EVENKEEL_MESSAGE(StepPlan, step_plan)
EVENKEEL_MESSAGE(PhaseSeconds, phase_seconds)
EVENKEEL_MESSAGE(Commit, commit)
EVENKEEL_MESSAGE(Paused, paused)
EVENKEEL_MESSAGE(Broken, broken)
EVENKEEL_MESSAGE(Heartbeat, heartbeat)
EVENKEEL_MESSAGE(Evaluated, evaluated)
EVENKEEL_MESSAGE(Checkpointed, checkpointed)
EVENKEEL_MESSAGE(StopRequest, stop_request)
EVENKEEL_MESSAGE(Failure, failure)
EVENKEEL_MESSAGE(Abort, abort)
EVENKEEL_MESSAGE(Finish, finish)
EVENKEEL_MESSAGE(Refused, refused)
#undef EVENKEEL_MESSAGE

}  // namespace evenkeel::contract
