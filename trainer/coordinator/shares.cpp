#include "trainer/coordinator/shares.h"

#include <cassert>

namespace evenkeel::trainer {

std::vector<std::int64_t> balanced_shares(std::int64_t samples, int ranks, std::int64_t step) {
  assert(samples >= 0 && ranks >= 1 && step >= 0);
  std::vector<std::int64_t> shares(static_cast<std::size_t>(ranks), samples / ranks);
  const std::int64_t extra = samples % ranks;
  const std::int64_t first = (step % ranks) * extra % ranks;  // reduced first: step * extra may not fit
  for (std::int64_t j = 0; j < extra; ++j) ++shares[static_cast<std::size_t>((first + j) % ranks)];
  return shares;
}

std::vector<std::int64_t> cuts_of(std::int64_t begin, const std::vector<std::int64_t>& shares) {
  std::vector<std::int64_t> cuts{begin};
  cuts.reserve(shares.size() + 1);
  for (const std::int64_t share : shares) cuts.push_back(cuts.back() + share);
  return cuts;
}

}  // namespace evenkeel::trainer
