// How one step's samples are split over the ranks. Called by the ledger. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace evenkeel::trainer {

// Sizes by rank; their sum is `samples`, they differ by at most one granule, and an empty share is normal. A
// granule is what must stay together: a sample, or a group that shares batch statistics; only the last
// granule of the step may be short, and it goes to the last rank that has any. The e = granules mod ranks
// extra ones go to the ranks (step * e + j) mod ranks, j < e: over many steps every rank gets as many.
// REQUIRES: samples >= 0, ranks >= 1, step >= 0 (0-based), granule >= 1.
std::vector<std::int64_t> balanced_shares(std::int64_t samples, int ranks, std::int64_t step,
                                          std::int64_t granule = 1);

// What min_max_shares() keeps to, by rank. A list may be shorter than the ranks: the others have no limit.
struct ShareLimits {
  std::int64_t granule = 1;                       // samples that stay together
  std::int64_t floor = 0;                         // least samples of a rank that takes part
  std::vector<std::optional<std::int64_t>> caps;  // most samples of a rank; absent: no limit
};

struct MinMaxShares {
  std::vector<std::int64_t> shares;  // by rank; their sum is `samples`
  bool caps_exceeded = false;        // the caps do not hold that many: they are exceeded evenly
};

// Shares whose largest own work, share times seconds per sample, is as small as whole granules, caps and
// floor allow: the next granule goes to the rank that is cheapest after it, ties to the lower rank. A rank
// without a cost is away and gets nothing. Only the last granule of the step may be short; it goes to the
// last rank that has any. A floor that does not fit for all is lowered to what does. O(N log N); with a floor
// O(samples / granule * log N). REQUIRES: samples >= 0, at least one cost, granule >= 1, costs >= 0 and
// finite.
MinMaxShares min_max_shares(std::int64_t samples,
                            const std::vector<std::optional<double>>& seconds_per_sample,
                            const ShareLimits& limits = {});

// Shares as cut points that start at `begin`: ranks + 1 entries, rank r takes [cuts[r], cuts[r+1]).
std::vector<std::int64_t> cuts_of(std::int64_t begin, const std::vector<std::int64_t>& shares);

}  // namespace evenkeel::trainer
