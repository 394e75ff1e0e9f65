// What the committed steps of a job show beside their times: which records were read, in what order, by whom, and
// how the loss went in the beginning. Fed and asked by Coordination. Pure; not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "contract/messages.h"
#include "trainer/coordinator/rules_facts.h"

namespace evenkeel::trainer {

class RunFacts {
 public:
  // `shuffled`: every epoch is to have an order of its own.
  RunFacts() = default;
  explicit RunFacts(bool shuffled) : shuffled_(shuffled) {}

  // Steps before this position of the epoch were not seen.
  void begin_at(std::int64_t cursor);
  // A committed step; `known` null: nobody is left who could tell more than that it was done.
  void add(const contract::StepPlan& plan, const contract::Commit* known);
  // The same step, as each rank told it.
  void add_ranks(const std::vector<std::optional<contract::Commit>>& by_rank);
  // After the last step of an epoch. `once`: whether every record was read once, as far as that is known.
  void end_epoch(std::int64_t data_samples, std::optional<bool> once);

  const EpochFacts& epoch() const { return facts_; }
  // The largest loss of the first steps over the median of those before it. Absent: too few steps.
  std::optional<double> early_loss_ratio() const { return early_loss_ratio_; }

 private:
  bool shuffled_ = false;
  std::int64_t seen_ = 0, steps_ = 0;
  bool order_known_ = true;
  std::uint64_t order_ = 0;
  std::vector<double> early_losses_;
  std::optional<double> early_loss_ratio_;
  EpochFacts facts_;
};

}  // namespace evenkeel::trainer
