// The order of one epoch: a seeded bijection from positions [0, D) to sample ids [0, D) that needs no memory
// and knows no ranks, so every rank, and every rank count, sees the same order. Pure; values, free of
// threads.
#pragma once

#include <array>
#include <cstdint>

namespace evenkeel::trainer {

enum class Shuffle { kOff, kOn };

class EpochOrder {
 public:
  // REQUIRES: samples >= 1. kOff: position = id.
  EpochOrder(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed, std::uint64_t epoch);

  // The id at a position. REQUIRES: position < samples().
  std::uint64_t id_at(std::uint64_t position) const;
  std::uint64_t samples() const { return samples_; }

 private:
  std::uint64_t permute_once(std::uint64_t value) const;

  static constexpr int kRounds = 6;  // 4 give a pseudo-random permutation (Luby, Rackoff); 2 to spare
  std::uint64_t samples_;
  Shuffle shuffle_;
  int half_bits_ = 1;  // the network permutes [0, 4^half_bits), at most four times as many as samples
  std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace evenkeel::trainer
