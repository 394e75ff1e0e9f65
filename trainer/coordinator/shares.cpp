#include "trainer/coordinator/shares.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <queue>
#include <tuple>

namespace evenkeel::trainer {
namespace {

using Costs = std::vector<std::optional<double>>;

std::int64_t granules_of(std::int64_t samples, std::int64_t granule) {
  return samples / granule + (samples % granule != 0 ? 1 : 0);
}

// A cost of 0 would take everything: such a rank counts as just faster than the fastest that was measured.
std::vector<double> usable_costs(const Costs& seconds_per_sample) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& cost : seconds_per_sample) {
    if (cost && *cost > 0) least = std::min(least, *cost);
  }
  std::vector<double> costs;
  for (const auto& cost : seconds_per_sample) {
    assert(!cost || *cost >= 0);
    costs.push_back(cost && *cost > 0 ? *cost
                                      : (least < std::numeric_limits<double>::infinity() ? least : 1));
  }
  return costs;
}

// One granule after the other. Shares and caps are in granules here.
class Dealer {
 public:
  Dealer(const Costs& seconds_per_sample, const ShareLimits& limits)
      : costs_(usable_costs(seconds_per_sample)), shares_(seconds_per_sample.size(), 0) {
    for (std::size_t r = 0; r < shares_.size(); ++r) {
      if (!seconds_per_sample[r]) {
        caps_.push_back(0);
        continue;
      }
      ranks_.push_back(r);
      const bool capped = r < limits.caps.size() && limits.caps[r];
      caps_.push_back(capped ? std::max<std::int64_t>(0, *limits.caps[r]) / limits.granule
                             : std::numeric_limits<std::int64_t>::max());
    }
  }

  // What every rank gets in any case: its floor, and what it could do while the whole step takes as long as
  // it would with shares of any fraction. The greedy walk would come past both.
  std::int64_t begin(std::int64_t granules, std::int64_t floor) {
    double speed = 0;
    for (const std::size_t r : ranks_) speed += 1 / costs_[r];
    const std::int64_t least = std::min(floor, granules / static_cast<std::int64_t>(ranks_.size()));
    const double level = static_cast<double>(granules) / speed * (1 - 1e-9);
    std::int64_t left = granules;
    for (const std::size_t r : ranks_) {
      shares_[r] = std::min(least, caps_[r]);
      left -= shares_[r];
    }
    for (const std::size_t r : ranks_) {
      // Floors take from the others: what is left decides.
      const auto whole = static_cast<std::int64_t>(level / costs_[r]);
      const std::int64_t more =
          least > 0 ? 0 : std::clamp<std::int64_t>(std::min(whole, caps_[r]) - shares_[r], 0, left);
      shares_[r] += more;
      left -= more;
    }
    return left;
  }

  // True: some cap had to be exceeded.
  bool deal(std::int64_t left) {
    std::priority_queue<Next, std::vector<Next>, std::greater<>> heap;
    for (const std::size_t r : ranks_) heap.push(next(r));
    bool exceeded = false;
    for (; left > 0; --left) {
      const std::size_t r = std::get<2>(heap.top());
      exceeded = exceeded || std::get<0>(heap.top()) > 0;
      heap.pop();
      ++shares_[r];
      heap.push(next(r));
    }
    return exceeded;
  }

  const std::vector<std::int64_t>& shares() const { return shares_; }

 private:
  // Granules beyond the cap, finish time, rank: after one more granule.
  using Next = std::tuple<std::int64_t, double, std::size_t>;
  Next next(std::size_t r) const {
    const std::int64_t after = shares_[r] + 1;
    return {std::max<std::int64_t>(0, after - caps_[r]), static_cast<double>(after) * costs_[r], r};
  }

  std::vector<double> costs_;
  std::vector<std::int64_t> shares_, caps_;
  std::vector<std::size_t> ranks_;  // that take part
};

}  // namespace

std::vector<std::int64_t> balanced_shares(std::int64_t samples, int ranks, std::int64_t step,
                                          std::int64_t granule) {
  assert(samples >= 0 && ranks >= 1 && step >= 0 && granule >= 1);
  const std::int64_t granules = granules_of(samples, granule);
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

MinMaxShares min_max_shares(std::int64_t samples, const Costs& seconds_per_sample,
                            const ShareLimits& limits) {
  assert(samples >= 0 && limits.granule >= 1);
  assert(
      std::any_of(seconds_per_sample.begin(), seconds_per_sample.end(), [](const auto& c) { return !!c; }));
  const std::int64_t granules = granules_of(samples, limits.granule);
  Dealer dealer(seconds_per_sample, limits);
  MinMaxShares result;
  result.caps_exceeded = dealer.deal(dealer.begin(granules, granules_of(limits.floor, limits.granule)));
  std::int64_t left = samples;
  for (const std::int64_t share : dealer.shares()) {
    result.shares.push_back(std::min(share * limits.granule, left));
    left -= result.shares.back();
  }
  return result;
}

std::vector<std::int64_t> cuts_of(std::int64_t begin, const std::vector<std::int64_t>& shares) {
  std::vector<std::int64_t> cuts{begin};
  cuts.reserve(shares.size() + 1);
  for (const std::int64_t share : shares) cuts.push_back(cuts.back() + share);
  return cuts;
}

}  // namespace evenkeel::trainer
