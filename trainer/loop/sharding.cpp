#include "trainer/loop/sharding.h"

#include <algorithm>

namespace evenkeel::trainer {
namespace {

constexpr std::size_t kMostFiles = 16384;  // a plan that tells who owns them still is a small message

}  // namespace

base::Result<Sharding> choose_sharding(const contract::DatasetSpec& dataset, const Split& train) {
  using contract::ShardingPolicy;
  const std::string sequential = train.sequential_because();
  const bool whole_files = dataset.sharding == ShardingPolicy::kFile ||
                           (dataset.sharding == ShardingPolicy::kAuto && !sequential.empty());
  std::vector<std::int64_t> files = whole_files ? train.file_samples() : std::vector<std::int64_t>();
  if (!files.empty() && files.size() <= kMostFiles) return Sharding{ShardingPolicy::kFile, std::move(files)};
  if (!sequential.empty()) {
    return base::Error{base::ErrorCode::kUnsupported,
                       "dataset.sharding.policy: " + sequential + ", so a record can only be reached through those "
                       "before it: use policy Auto or File with at most " + std::to_string(kMostFiles) +
                           " files, or decompress them"};
  }
  const bool off = dataset.sharding == ShardingPolicy::kOff;
  return Sharding{off ? ShardingPolicy::kOff : ShardingPolicy::kRecord, {}};
}

PositionRanges share_of(const contract::StepPlan& plan, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (plan.pieces.empty()) return {{plan.cuts[at], plan.cuts[at + 1]}};
  PositionRanges ranges;
  std::int64_t wanted = plan.cuts[at + 1] - plan.cuts[at];
  for (const contract::Piece& piece : plan.pieces) {
    if (piece.rank != rank || wanted <= 0) continue;
    const std::int64_t count = std::min(wanted, piece.samples());  // what follows it only owns
    ranges.push_back({piece.begin, piece.begin + count});
    wanted -= count;
  }
  return ranges;
}

}  // namespace evenkeel::trainer
