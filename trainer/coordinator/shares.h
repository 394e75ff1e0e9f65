// How one step's samples are split over the ranks. Called by the ledger. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace evenkeel::trainer {

// Sizes by rank; their sum is `samples`, they differ by at most one granule, and an empty share is normal. A
// granule is what must stay together: a sample, or a group that shares batch statistics; only the last
// granule of the step may be short, and it goes to the last rank that has any. The e = granules mod ranks
// extra ones go to the ranks (step * e + j) mod ranks, j < e: over many steps every rank gets as many.
// REQUIRES: samples >= 0, ranks >= 1, step >= 0 (0-based), granule >= 1.
std::vector<std::int64_t> balanced_shares(std::int64_t samples, int ranks, std::int64_t step,
                                          std::int64_t granule = 1);

// Shares as cut points that start at `begin`: ranks + 1 entries, rank r takes [cuts[r], cuts[r+1]).
std::vector<std::int64_t> cuts_of(std::int64_t begin, const std::vector<std::int64_t>& shares);

}  // namespace evenkeel::trainer
