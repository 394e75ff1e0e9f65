#include "trainer/coordinator/shares.h"

#include <algorithm>
#include <cassert>

namespace evenkeel::trainer {

std::vector<std::int64_t> balanced_shares(std::int64_t samples, int ranks, std::int64_t step,
                                          std::int64_t granule) {
  assert(samples >= 0 && ranks >= 1 && step >= 0 && granule >= 1);
  const std::int64_t granules = samples / granule + (samples % granule != 0 ? 1 : 0);
  std::vector<std::int64_t> shares(static_cast<std::size_t>(ranks), granules / ranks);
  const std::int64_t extra = granules % ranks;
  const std::int64_t first = (step % ranks) * extra % ranks;  // reduced first: step * extra may not fit
  for (std::int64_t j = 0; j < extra; ++j) ++shares[static_cast<std::size_t>((first + j) % ranks)];
  std::int64_t left = samples;
  for (std::int64_t& share : shares) {
    share = std::min(share * granule, left);
    left -= share;
  }
  return shares;
}

std::vector<std::int64_t> cuts_of(std::int64_t begin, const std::vector<std::int64_t>& shares) {
  std::vector<std::int64_t> cuts{begin};
  cuts.reserve(shares.size() + 1);
  for (const std::int64_t share : shares) cuts.push_back(cuts.back() + share);
  return cuts;
}

}  // namespace evenkeel::trainer
