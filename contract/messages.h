// What worker and coordinator say to each other: the JSON payloads of control frames (wire.h), as values with
// to_json and checked decoders. One place for both sides. Pure.
//
// Course: Hello -> Challenge -> Join -> Membership -> Ready -> (StepPlan -> Commit)* with Evaluated and
// Checkpointed where the plan asks -> Finish. Abort ends it at any point; the worker's process then exits 75
// (or with its own failure's code).
#pragma once

#include <cstdint>
#include <map>
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

// Newest checkpoint that verifies, as a worker found it; step 0: none.
struct CheckpointPosition {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t cursor = 0;  // samples of `epoch` that are committed
  std::string manifest_hash;
  std::vector<std::int64_t> consumed;  // per rank, since the job began
  std::vector<std::string> skipped;    // folders that did not verify, and why
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
  int threads = 1;
  double cpu_limit = 0;  // cores; 0 = none
  std::string version;
};

struct Membership {
  Fence fence;
  int rank = 0;
  std::vector<std::string> peers;  // host:port by rank; its size is the number of ranks
  int restore_rank = -1;  // loads its checkpoint and broadcasts; -1: rank 0 broadcasts initial weights
  std::int64_t restore_step = 0;
  std::int64_t target_steps = 0;
};

struct Ready {
  Fence fence;
  std::string parameter_hash;  // of weights and optimizer state: must be equal on all ranks
  double restore_seconds = 0;
};

// Step `step` (1-based: the number of committed steps after it). Rank r takes the positions [cuts[r],
// cuts[r+1]) of the epoch's order; cuts has ranks + 1 entries and never decreases; an empty share is normal.
struct StepPlan {
  Fence fence;
  std::int64_t step = 0;
  std::int64_t epoch = 0;  // 0-based
  std::vector<std::int64_t> cuts;
  bool evaluate_after = false;
  bool checkpoint_after = false;
  bool stop_after = false;
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
  double loss_sum = 0;             // reduced
  double correct = 0;              // reduced
  double learning_rate = 0;
  double gradient_norm = 0;
  PhaseSeconds phases;
  double step_seconds = 0;
  std::uint64_t collectives = 0;
  std::uint64_t collective_bytes = 0;  // sent by this rank
};

struct Heartbeat {
  std::int64_t step = 0;
  std::string phase;
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
EVENKEEL_MESSAGE(Ready, ready)
EVENKEEL_MESSAGE(StepPlan, step_plan)
EVENKEEL_MESSAGE(PhaseSeconds, phase_seconds)
EVENKEEL_MESSAGE(Commit, commit)
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
