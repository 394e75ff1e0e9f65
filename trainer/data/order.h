// The order of one epoch: a seeded bijection from positions to sample ids that needs no memory and knows no
// ranks, so every rank, and every rank count, sees the same order. Three kinds: over all samples; file by file,
// for ranks that own files; and pass after pass, for ranks that each see everything. Pure; values, free of
// threads.
#pragma once

#include <cstdint>
#include <vector>

#include "contract/file_layout.h"
#include "contract/permutation.h"

namespace evenkeel::trainer {

enum class Shuffle { kOff, kOn };

// Positions [begin, end) of an order.
struct PositionRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t samples() const { return end - begin; }
  bool operator==(const PositionRange&) const = default;
};
using PositionRanges = std::vector<PositionRange>;

class EpochOrder {
 public:
  // A bijection of [0, samples). REQUIRES: samples >= 1. kOff: position = id.
  EpochOrder(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed, std::uint64_t epoch);

  // The files in the order of contract::file_layout, the samples of each permuted among themselves. Ids count
  // through the files as they are. REQUIRES: at least one sample.
  static EpochOrder of_files(const std::vector<std::int64_t>& file_samples, Shuffle shuffle, std::uint64_t seed,
                             std::uint64_t epoch);

  // Passes over all samples one after the other without end, each in an order of its own; the first one as above.
  static EpochOrder of_passes(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed, std::uint64_t epoch);

  // The id at a position. REQUIRES: position < samples(), but for of_passes().
  std::uint64_t id_at(std::uint64_t position) const;
  std::uint64_t samples() const { return samples_; }
  bool endless() const { return passes_; }

 private:
  std::uint64_t id_in_file(std::uint64_t position) const;

  std::uint64_t samples_;
  Shuffle shuffle_;
  std::uint64_t key_;
  contract::Permutation all_;
  bool passes_ = false;
  contract::FileLayout layout_;             // of_files()
  std::vector<std::uint64_t> first_;        // of_files(): by file, the id of its first sample
};

}  // namespace evenkeel::trainer
