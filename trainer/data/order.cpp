#include "trainer/data/order.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

// For the n-th part of an order: a file, or a pass.
std::uint64_t part_key(std::uint64_t key, std::uint64_t n) {
  return base::mix64(key ^ base::mix64(n));
}

}  // namespace

EpochOrder::EpochOrder(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed, std::uint64_t epoch)
    : samples_(samples), shuffle_(shuffle), key_(contract::epoch_key(seed, epoch)), all_(samples, key_) {}

EpochOrder EpochOrder::of_files(const std::vector<std::int64_t>& file_samples, Shuffle shuffle,
                                std::uint64_t seed, std::uint64_t epoch) {
  const std::int64_t samples = std::accumulate(file_samples.begin(), file_samples.end(), std::int64_t{0});
  EpochOrder order(static_cast<std::uint64_t>(samples), shuffle, seed, epoch);
  order.layout_ = contract::file_layout(file_samples, shuffle == Shuffle::kOn, seed, epoch);
  std::uint64_t first = 0;
  for (const std::int64_t size : file_samples) {
    order.first_.push_back(first);
    first += static_cast<std::uint64_t>(size);
  }
  return order;
}

EpochOrder EpochOrder::of_passes(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed,
                                 std::uint64_t epoch) {
  EpochOrder order(samples, shuffle, seed, epoch);
  order.passes_ = true;
  return order;
}

std::uint64_t EpochOrder::id_at(std::uint64_t position) const {
  assert(passes_ || position < samples_);
  if (!first_.empty()) return id_in_file(position);
  const std::uint64_t pass = passes_ ? position / samples_ : 0, at = passes_ ? position % samples_ : position;
  if (shuffle_ == Shuffle::kOff) return at;
  return pass == 0 ? all_.at(at) : contract::Permutation(samples_, part_key(key_, pass)).at(at);
}

std::uint64_t EpochOrder::id_in_file(std::uint64_t position) const {
  const auto& starts = layout_.starts;
  const auto after = std::upper_bound(starts.begin(), starts.end(), static_cast<std::int64_t>(position));
  const auto place = static_cast<std::size_t>(after - starts.begin()) - 1;
  const std::size_t file = layout_.files[place];
  const std::uint64_t inside = position - static_cast<std::uint64_t>(starts[place]);
  if (shuffle_ == Shuffle::kOff) return first_[file] + inside;
  const auto size = static_cast<std::uint64_t>(starts[place + 1] - starts[place]);
  return first_[file] + contract::Permutation(size, part_key(key_, file + 1)).at(inside);
}

}  // namespace evenkeel::trainer
