// The pages of several ranks as one: each family once, with the samples of all. Called by the launcher's /metrics.
// Pure.
#pragma once

#include <string>
#include <vector>

namespace evenkeel::trainer {

struct RankPage {
  int rank = 0;
  std::string text;  // exposition format 0.0.4
};

// Families sorted by name. Samples stay as they are, but that those of process_* get the label `rank`: each rank is a
// process, and these families do not say whose. Where two pages differ in a family's type, the first one stays.
std::string merge_pages(const std::vector<RankPage>& pages);

}  // namespace evenkeel::trainer
