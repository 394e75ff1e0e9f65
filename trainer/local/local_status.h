// The job as an object with a status, of the shape that the operator writes, so that one reader serves both.
// Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "contract/job/spec.h"
#include "contract/report.h"

namespace evenkeel::trainer {

struct LocalOutcome {
  std::string phase;  // Running | Succeeded | Failed | Suspended
  int restarts = 0;
  std::string start_time, completion_time;  // RFC 3339
};

base::Json job_object(const contract::TrainingJob& job, const contract::JobReport& report,
                      const LocalOutcome& outcome);

}  // namespace evenkeel::trainer
