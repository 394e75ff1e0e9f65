// What is different for each rank of a pod. Used by the launcher. Pure.
#pragma once

#include <map>
#include <string>

#include "trainer/config/settings.h"

namespace evenkeel::trainer {

struct RankPlace {
  int first_rank = 0;  // of the pod
  int local_rank = 0;
  int restarts = 0;
  std::string directory;  // of the launcher, for what its ranks leave to it
  int rank() const { return first_rank + local_rank; }
};

// Where the rank writes why it ended, and the port of its pages.
std::string termination_file(const RankPlace& place);
std::string metrics_file(const RankPlace& place);

// Written over the environment of the pod; all else is the same for its ranks.
std::map<std::string, std::string> rank_environment(const RankPlace& place, const Environment& pod);

}  // namespace evenkeel::trainer
