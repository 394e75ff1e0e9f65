#include "trainer/coordinator/run_facts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/hash.h"
#include "trainer/coordinator/imbalance.h"

namespace evenkeel::trainer {
namespace {

constexpr std::size_t kEarlySteps = 100, kStepsBeforeAJump = 5;

// Did two ranks read the same records?
bool equal_batches(const std::vector<std::optional<contract::Commit>>& by_rank) {
  std::set<std::uint64_t> seen;
  for (const auto& commit : by_rank) {
    if (!commit || commit->samples == 0 || commit->ids_hash == 0) continue;
    if (!seen.insert(commit->ids_hash).second) return true;
  }
  return false;
}

}  // namespace

void RunFacts::begin_at(std::int64_t cursor) {
  seen_ = cursor;
  steps_ = 0;
  order_ = 0;
  order_known_ = cursor == 0;
}

void RunFacts::add(const contract::StepPlan& plan, const contract::Commit* known) {
  seen_ += plan.planned();
  ++steps_;
  order_known_ = order_known_ && known != nullptr;
  if (known == nullptr) return;
  order_ = base::mix64(order_ ^ known->reduced_ids_hash);
  if (early_losses_.size() >= kEarlySteps || known->reduced_count <= 0) return;
  const double loss = known->loss_sum / static_cast<double>(known->reduced_count);
  if (!std::isfinite(loss)) return;
  if (early_losses_.size() >= kStepsBeforeAJump) {
    const double usual = lower_median(early_losses_);
    if (usual > 0) early_loss_ratio_ = std::max(early_loss_ratio_.value_or(0), loss / usual);
  }
  early_losses_.push_back(loss);
}

void RunFacts::add_ranks(const std::vector<std::optional<contract::Commit>>& by_rank) {
  // Three in a row are no accident: it stays said.
  constexpr int kEnough = 3;
  const int before = facts_.equal_batches_in_a_row.value_or(0);
  if (before < kEnough) facts_.equal_batches_in_a_row = equal_batches(by_rank) ? before + 1 : 0;
}

void RunFacts::end_epoch(std::int64_t data_samples, std::optional<bool> once) {
  facts_.data_samples = data_samples;
  facts_.ids_seen = seen_;
  facts_.every_record_once = seen_ == data_samples ? once : std::nullopt;  // else they are missing
  facts_.last_order_hash = facts_.order_hash;
  facts_.order_hash.reset();
  // One step holds all records, in whatever order.
  if (shuffled_ && order_known_ && steps_ > 1) facts_.order_hash = order_;
  begin_at(0);
}

}  // namespace evenkeel::trainer
