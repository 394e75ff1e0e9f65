// How the samples of a job come to its ranks, decided by every rank from spec.dataset.sharding.policy and what the
// data set can do: the same answer everywhere, since all read the same files. Also what a rank reads of a plan. Pure.
#pragma once

#include <string>
#include <vector>

#include "contract/job/spec.h"
#include "contract/messages.h"
#include "trainer/data/order.h"
#include "trainer/data/split.h"

namespace evenkeel::trainer {

struct Sharding {
  contract::ShardingPolicy policy = contract::ShardingPolicy::kRecord;  // never kAuto
  std::vector<std::int64_t> file_samples;                               // of kFile
};

// Auto takes Record, unless records can only be reached through those before them; then nothing but File is allowed.
// File is Record where every record is a file of its own, or where there are more files than a message holds.
base::Result<Sharding> choose_sharding(const contract::DatasetSpec& dataset, const Split& train);

// The positions that `rank` takes in a step.
PositionRanges share_of(const contract::StepPlan& plan, int rank);

}  // namespace evenkeel::trainer
