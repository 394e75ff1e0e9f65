// What a job will compute, as text: steps and shares, the compiled plan of the largest share with its arenas,
// buckets and FLOP, traffic of a step. For `evenkeel-trainer plan`; nothing but the data set is allocated for
// it.
#pragma once

#include <cstdint>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "contract/job/spec.h"

namespace evenkeel::trainer {

struct DescribeOptions {
  std::uint64_t memory_limit_bytes = 0;  // of one rank; 0 = unknown
  std::string memory_limit_source;
  bool passes = false;  // print the graph after each pass of the compiler
};

base::Result<std::string> describe_job(base::Files& files, const contract::TrainingJobSpec& spec,
                                       const DescribeOptions& options);

}  // namespace evenkeel::trainer
