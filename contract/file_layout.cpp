#include "contract/file_layout.h"

#include "base/hash.h"
#include "contract/permutation.h"

namespace evenkeel::contract {

FileLayout file_layout(const std::vector<std::int64_t>& file_samples, bool shuffle, std::uint64_t seed,
                       std::uint64_t epoch) {
  FileLayout layout;
  layout.starts.push_back(0);
  if (file_samples.empty()) return layout;
  // Another key than that of the samples: files and the samples inside them must not move alike.
  const Permutation order(file_samples.size(), base::mix64(~epoch_key(seed, epoch)));
  for (std::size_t place = 0; place < file_samples.size(); ++place) {
    const std::size_t file = shuffle ? static_cast<std::size_t>(order.at(place)) : place;
    layout.files.push_back(file);
    layout.starts.push_back(layout.starts.back() + file_samples[file]);
  }
  return layout;
}

}  // namespace evenkeel::contract
