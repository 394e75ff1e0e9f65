// Where the job stands, as every rank counts it from the plans, and how it gets into a checkpoint and back:
// one rank restores and broadcasts, so that all begin with the same bits; one rank writes. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "contract/messages.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/collectives/collective.h"
#include "trainer/loop/replica.h"

namespace evenkeel::trainer {

struct JobPosition {
  std::int64_t step = 0;               // committed
  std::int64_t epoch = 0;              // of the next sample
  std::int64_t cursor = 0;             // samples of that epoch that are committed; < train samples
  std::vector<std::int64_t> consumed;  // per rank, since the job began
  std::vector<contract::Piece> owned = {};      // where ranks own parts of the order: what is left of the epoch
  std::vector<std::int64_t> poison = {};        // records that are skipped for good, ascending
  std::int64_t samples() const;
};

// Samples of the epoch that `plan` belongs to, the next one from `position`: the data set, or what the ranks own.
std::int64_t epoch_samples(const JobPosition& position, const contract::StepPlan& plan, std::int64_t train_samples);

// After the step of `plan` is committed.
void advance(JobPosition& position, const contract::StepPlan& plan, std::int64_t train_samples);

// What a rank says of its newest checkpoint when it joins.
contract::CheckpointPosition to_message(const CheckpointSearch& search);

// What it holds in memory.
contract::CheckpointPosition to_message(const JobPosition& position, double rate_batch);

struct Restored {
  JobPosition position;
  OptimizerRestored optimizer = OptimizerRestored::kYes;
};

// Every rank calls this after the ring stands; membership.source says whose state all begin with. `held`: where
// this rank stands in memory. kIo where the rank that must restore does not have that step or cannot read it.
base::Result<Restored> restore_state(base::Files& files, const contract::Membership& membership,
                                     const CheckpointSearch& own, const JobPosition& held, Replica& replica,
                                     Collective& collective);

struct CheckpointIdentity {
  std::string job_uid;
  std::uint32_t attempt = 0;
};

contract::CheckpointManifest make_manifest(const CheckpointIdentity& identity, const JobPosition& position,
                                           const Replica& replica);

}  // namespace evenkeel::trainer
