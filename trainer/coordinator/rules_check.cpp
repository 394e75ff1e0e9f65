// Correctness. Every one of these means that the result is wrong, however fast it comes.
#include <algorithm>
#include <cmath>

#include "trainer/coordinator/rules.h"
#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

using Checked = std::optional<Fired>;

Checked d03_duplicate_data(const EpochFacts& e) {
  if (e.unique_ids && e.ids_seen && *e.ids_seen > 0 &&
      static_cast<double>(*e.unique_ids) / static_cast<double>(*e.ids_seen) < 0.98) {
    return Fired{"D03", "DuplicateData",
                 std::to_string(*e.ids_seen - *e.unique_ids) + " of " + std::to_string(*e.ids_seen) +
                     " records of the epoch were read more than once: ranks do not share the data"};
  }
  if (!e.every_record_once.value_or(true)) {
    return Fired{"D03", "DuplicateData",
                 "the records of the epoch are not all records once: some were read twice, and others never"};
  }
  if (e.equal_batches_in_a_row.value_or(0) >= 3) {
    return Fired{"D03", "DuplicateData",
                 "two ranks read the same records in " + std::to_string(*e.equal_batches_in_a_row) +
                     " steps in a row"};
  }
  return std::nullopt;
}

Checked d04_missing_data(const EpochFacts& e) {
  if (!e.data_samples || !e.ids_seen) return std::nullopt;
  const std::int64_t expected = *e.data_samples - e.skipped_samples.value_or(0);
  if (*e.ids_seen >= expected) return std::nullopt;
  return Fired{
      "D04", "MissingData",
      "the epoch read " + std::to_string(*e.ids_seen) + " of " + std::to_string(expected) + " records"};
}

Checked d14_uneven_steps(const CheckFacts& c) {
  if (c.planned_steps.size() < 2) return std::nullopt;
  const auto [low, high] = std::minmax_element(c.planned_steps.begin(), c.planned_steps.end());
  if (*low == *high) return std::nullopt;
  return Fired{"D14", "UnevenSteps",
               "rank " + std::to_string(low - c.planned_steps.begin()) + " plans " + std::to_string(*low) +
                   " steps, rank " + std::to_string(high - c.planned_steps.begin()) + " plans " +
                   std::to_string(*high)};
}

Checked d15_parameter_drift(const CheckFacts& c) {
  if (!c.parameter_difference || !c.parameters_before_step_one) return std::nullopt;
  const double allowed = *c.parameters_before_step_one ? 0 : 1e-6;
  if (!(*c.parameter_difference > allowed)) return std::nullopt;
  return Fired{"D15", "ParameterDrift",
               *c.parameters_before_step_one
                   ? "the ranks' parameters differ before the first step"
                   : "the ranks' parameters have drifted apart by more than 1e-6 of their size"};
}

// The loss of one batch must not depend on the number of ranks.
Checked d16_loss_scaled(const CheckFacts& c, std::size_t ranks) {
  if (!c.loss_ratio || ranks < 2) return std::nullopt;
  const double n = static_cast<double>(ranks);
  const bool times = std::abs(*c.loss_ratio / n - 1) <= 0.01,
             divided = std::abs(*c.loss_ratio * n - 1) <= 0.01;
  if (!times && !divided) return std::nullopt;
  return Fired{"D16", "LossScaledByReplicas",
               "the loss of " + std::to_string(ranks) + " ranks is " + two_digits(*c.loss_ratio) +
                   " times the loss of one on the same batch: it is " +
                   (times ? "summed where it should be averaged" : "divided twice")};
}

Checked d19_empty_batch(const CheckFacts& c) {
  if (!c.first_nonfinite_step_had_empty_or_partial_rank.value_or(false)) return std::nullopt;
  return Fired{"D19", "EmptyBatchNaN",
               "the first non-finite step is one in which a rank had no or few samples: a mean over nothing"};
}

Checked d21_reduce_overflow(const CheckFacts& c) {
  if (!c.gradients_finite_before_reduction.value_or(false) ||
      c.gradients_finite_after_reduction.value_or(true))
    return std::nullopt;
  return Fired{"D21", "ReduceOverflow",
               "gradients are finite before the reduction and not after it: divide before the sum"};
}

Checked d29_same_order(const EpochFacts& e) {
  if (!e.order_hash || !e.last_order_hash || *e.order_hash != *e.last_order_hash) return std::nullopt;
  return Fired{"D29", "SameOrder", "this epoch has the order of the last one: shuffling does nothing"};
}

}  // namespace

std::optional<Fired> first_broken_check(const EpochFacts& epoch, const CheckFacts& checks) {
  const std::size_t ranks = checks.planned_steps.size();
  if (checks.failed) return Fired{"", checks.failed->name, checks.failed->sentence};
  for (const Checked& fired : {d03_duplicate_data(epoch), d04_missing_data(epoch), d14_uneven_steps(checks),
                               d15_parameter_drift(checks), d16_loss_scaled(checks, ranks),
                               d19_empty_batch(checks), d21_reduce_overflow(checks), d29_same_order(epoch)}) {
    if (fired) return fired;
  }
  return std::nullopt;
}

}  // namespace evenkeel::trainer
