// A seeded bijection of [0, size) that needs no memory: what the orders of samples and of files are made of, for
// every rank and the coordinator alike. A Feistel network with cycle walking. Pure; a value.
#pragma once

#include <array>
#include <cstdint>

namespace evenkeel::contract {

class Permutation {
 public:
  // REQUIRES: size >= 1.
  Permutation(std::uint64_t size, std::uint64_t key);

  // REQUIRES: position < size().
  std::uint64_t at(std::uint64_t position) const;
  std::uint64_t size() const { return size_; }

 private:
  std::uint64_t permute_once(std::uint64_t value) const;

  static constexpr int kRounds = 6;  // 4 give a pseudo-random permutation (Luby, Rackoff); 2 to spare
  std::uint64_t size_;
  int half_bits_ = 1;  // the network permutes [0, 4^half_bits), at most four times as many as size
  std::array<std::uint64_t, kRounds> keys_{};
};

// What an epoch's order is drawn from. Mixed one after the other: seed 1 epoch 2 and seed 2 epoch 1 must not meet.
std::uint64_t epoch_key(std::uint64_t seed, std::uint64_t epoch);

}  // namespace evenkeel::contract
