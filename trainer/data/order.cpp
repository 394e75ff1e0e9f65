#include "trainer/data/order.h"

#include <cassert>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

// The smallest half width whose square covers every sample, at least one bit.
int half_bits_for(std::uint64_t samples) {
  int bits = 1;
  while (bits < 32 && (std::uint64_t{1} << (2 * bits)) < samples) ++bits;
  return bits;
}

}  // namespace

EpochOrder::EpochOrder(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed, std::uint64_t epoch)
    : samples_(samples), shuffle_(shuffle), half_bits_(half_bits_for(samples)) {
  assert(samples >= 1);
  // Mixed one after the other: seed 1 epoch 2 and seed 2 epoch 1 must not meet.
  std::uint64_t key = base::mix64(base::mix64(seed) + epoch);
  for (std::uint64_t& round_key : keys_) round_key = key = base::mix64(key);
}

std::uint64_t EpochOrder::permute_once(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t mixed = left ^ (base::mix64(right ^ key) & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

std::uint64_t EpochOrder::id_at(std::uint64_t position) const {
  assert(position < samples_);
  if (shuffle_ == Shuffle::kOff) return position;
  // Cycle walking: follow the permutation of the larger set until it comes back inside. It must, because it
  // is a cycle that began inside; fewer than four steps on average.
  std::uint64_t value = permute_once(position);
  while (value >= samples_) value = permute_once(value);
  return value;
}

}  // namespace evenkeel::trainer
