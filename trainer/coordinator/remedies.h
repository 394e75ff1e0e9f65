// What would make the job faster, each with the gain that is to be expected: priced from the waterfall of the
// present steps. What cannot be priced is not offered. Called for each report. Pure.
#pragma once

#include <optional>
#include <vector>

#include "contract/report.h"
#include "trainer/coordinator/balancer.h"
#include "trainer/coordinator/cost_fit.h"
#include "trainer/coordinator/diagnosis.h"

namespace evenkeel::trainer {

enum class RemedyKind { kLargerBatch, kDataThreads, kCache, kShares, kFewerRanks, kShortWire, kBucket };

struct PricedRemedy {
  RemedyKind kind = RemedyKind::kLargerBatch;
  contract::Remedy remedy;
  // kLargerBatch: samples of a step; kDataThreads: threads of a rank; kFewerRanks: ranks.
  std::int64_t amount = 0;
};

struct RemedyInput {
  const Findings& findings;  // with a waterfall, else there are none
  const JobFacts& job;
  const std::vector<RankFacts>& ranks;
  ShareLimits limits;
  std::optional<NoiseScale> noise;
};

// Best first, by time to the same loss where that is known, else by samples/s. Those below 2 percent of samples/s
// are left out.
std::vector<PricedRemedy> price_remedies(const RemedyInput& input);

// For the report: what was done and measured (the balancer's) together with what could be done. A proposal of
// new shares is the balancer's own affair where it has one.
std::vector<contract::Remedy> all_remedies(const std::vector<PricedRemedy>& priced,
                                           const std::vector<contract::Remedy>& done);

// What a remedy gains in the end: as measured, else as predicted; where the batch changes, in time to the same loss.
double gain_in_the_end(const contract::Remedy& remedy);

// Samples/s over now, for steps of k times the samples: the fixed cost and the network are paid once a step.
double gain_of_batch(const Waterfall& waterfall, double factor);

}  // namespace evenkeel::trainer
