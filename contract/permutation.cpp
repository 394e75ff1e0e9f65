#include "contract/permutation.h"

#include <cassert>

#include "base/hash.h"

namespace evenkeel::contract {
namespace {

// The smallest half width whose square covers every value, at least one bit.
int half_bits_for(std::uint64_t size) {
  int bits = 1;
  while (bits < 32 && (std::uint64_t{1} << (2 * bits)) < size) ++bits;
  return bits;
}

}  // namespace

std::uint64_t epoch_key(std::uint64_t seed, std::uint64_t epoch) {
  return base::mix64(base::mix64(seed) + epoch);
}

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size), half_bits_(half_bits_for(size)) {
  assert(size >= 1);
  for (std::uint64_t& round_key : keys_) round_key = key = base::mix64(key);
}

std::uint64_t Permutation::permute_once(std::uint64_t value) const {
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

std::uint64_t Permutation::at(std::uint64_t position) const {
  assert(position < size_);
  // Cycle walking: follow the permutation of the larger set until it comes back inside. It must, because it
  // is a cycle that began inside; fewer than four steps on average.
  std::uint64_t value = permute_once(position);
  while (value >= size_) value = permute_once(value);
  return value;
}

}  // namespace evenkeel::contract
