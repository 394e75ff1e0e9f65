// The course of the learning rate as shares of the base rate, and the warm-up before it. Pure functions; put
// together by learning_rate.h.
#pragma once

#include "contract/job/spec.h"

namespace evenkeel::trainer {

// Where a schedule stands: a share of the part after the warm-up, and epochs since the job began.
struct SchedulePosition {
  double share = 0;  // [0, 1]
  double epochs = 0;
};

// Share of the base rate. constant 1; step gamma for each milestone reached; cosine
// (1-a)/2*(1+cos(pi*share))+a; poly (1-a)*(1-share)^power+a, with a = final_share.
double schedule_share(const contract::ScheduleSpec& schedule, const SchedulePosition& position);

// Linear warm-up towards base_rate * factor; progress = (s+1)/W, at most 1. A factor above 1 starts at the
// rate that the user chose for the small batch; at most 1 starts at nothing.
double warmup_rate(double base_rate, double factor, double progress);

}  // namespace evenkeel::trainer
