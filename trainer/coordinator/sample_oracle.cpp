#include "trainer/coordinator/sample_oracle.h"

#include "base/hash.h"

namespace evenkeel::trainer {

void SampleOracle::begin_at(std::int64_t cursor) {
  hash_ = 0;
  seen_ = cursor;
  known_ = cursor == 0;
}

void SampleOracle::add(std::int64_t samples, std::optional<std::uint64_t> ids_hash) {
  seen_ += samples;
  known_ = known_ && ids_hash;
  hash_ += ids_hash.value_or(0);  // modulo 2^64
}

std::optional<std::string> SampleOracle::close(std::int64_t epoch, std::int64_t passes) {
  std::optional<std::string> wrong;
  const std::string which = "epoch " + std::to_string(epoch) + ": ";
  if (seen_ != samples_ * passes) {
    wrong = which + std::to_string(seen_) + " samples were committed, the training split has " +
            std::to_string(samples_) + (passes > 1 ? ", " + std::to_string(passes) + " times" : "");
  } else if (!known_) {
    ++unknown_;
  } else if (hash_ != expected() * static_cast<std::uint64_t>(passes)) {
    wrong = which + "the samples that were read are not all samples " +
            (passes == 1 ? "once: some were read twice, others never"
                         : std::to_string(passes) + " times each: some were read more often, others less");
  } else {
    ++proved_;
  }
  begin_at(0);
  return wrong;
}

std::uint64_t SampleOracle::expected() {
  if (expected_) return *expected_;
  std::uint64_t sum = 0;
  for (std::int64_t id = 0; id < samples_; ++id) sum += base::mix64(static_cast<std::uint64_t>(id));
  expected_ = sum;
  return sum;
}

}  // namespace evenkeel::trainer
