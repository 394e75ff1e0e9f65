#include "trainer/data/stand_in.h"

#include <algorithm>

namespace evenkeel::trainer {
namespace {

// The next usable sample from `from` on in [begin, end), going round; -1: none.
std::int64_t next_usable(const HostBatch& batch, std::int64_t from, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = 0; i < end - begin; ++i) {
    const std::int64_t at = begin + (from - begin + i) % (end - begin);
    if (batch.labels[static_cast<std::size_t>(at)] != kSkippedLabel) return at;
  }
  return -1;
}

}  // namespace

void stand_in_for_skipped(HostBatch& batch, std::int64_t group) {
  const std::int64_t samples = batch.samples();
  if (std::find(batch.labels.begin(), batch.labels.end(), kSkippedLabel) == batch.labels.end()) return;
  const auto features = static_cast<std::ptrdiff_t>(batch.features.size() / static_cast<std::size_t>(samples));
  if (group <= 0) group = samples;
  for (std::int64_t n = 0; n < samples; ++n) {
    if (batch.labels[static_cast<std::size_t>(n)] != kSkippedLabel) continue;
    const std::int64_t begin = n / group * group, end = std::min(samples, begin + group);
    std::int64_t source = next_usable(batch, n, begin, end);
    if (source < 0) source = next_usable(batch, n, 0, samples);
    if (source < 0) return;
    std::copy_n(batch.features.begin() + source * features, features, batch.features.begin() + n * features);
  }
}

}  // namespace evenkeel::trainer
