// Where the files of a split lie in the order of an epoch that keeps each file together (sharding File): a
// function of seed, epoch and file sizes alone. The coordinator deals files by it, readers find samples by it.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace evenkeel::contract {

struct FileLayout {
  std::vector<std::size_t> files;     // by place in the order: which file
  std::vector<std::int64_t> starts;   // by place: its first position; one more entry: the end of all
};

// Without `shuffle` the files lie as they are.
FileLayout file_layout(const std::vector<std::int64_t>& file_samples, bool shuffle, std::uint64_t seed,
                       std::uint64_t epoch);

}  // namespace evenkeel::contract
