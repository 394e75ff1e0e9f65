// Was every sample read once? The proof beside the ledger: it knows nothing of plans, only the hashes of the
// sample ids that the ranks made where they read the records, summed by the same reduction that summed the
// gradients. Over an epoch they must add up to those of all ids, in whatever order and by whomever they were
// read; a record that was skipped counts as one that was read. Where every rank sees everything an epoch is
// several passes, and each id must come as often. Owned by Coordination. Pure; not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace evenkeel::trainer {

class SampleOracle {
 public:
  // REQUIRES: samples >= 1, of the training split.
  explicit SampleOracle(std::int64_t samples) : samples_(samples) {}

  // Steps before this position were not seen (a checkpoint, a predecessor): an epoch in its middle cannot be
  // judged, the next one can.
  void begin_at(std::int64_t cursor);
  // A committed step. `ids_hash` absent: nobody who knew is left; then the epoch cannot be judged.
  void add(std::int64_t samples, std::optional<std::uint64_t> ids_hash);
  // After the last step of an epoch of so many passes: what is wrong with it, or nothing. The next epoch begins.
  std::optional<std::string> close(std::int64_t epoch, std::int64_t passes = 1);

  std::int64_t epochs_proved() const { return proved_; }
  std::int64_t epochs_unknown() const { return unknown_; }

 private:
  std::uint64_t expected();

  std::int64_t samples_;
  std::optional<std::uint64_t> expected_;
  std::uint64_t hash_ = 0;
  std::int64_t seen_ = 0;
  bool known_ = true;
  std::int64_t proved_ = 0, unknown_ = 0;
};

}  // namespace evenkeel::trainer
