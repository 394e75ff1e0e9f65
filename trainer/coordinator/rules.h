// The rules of the diagnosis, one function each, named by their number. A rule looks at one case and fires
// with a verdict and a sentence with the number, or does not. Families and their order are in diagnosis.cpp.
// Pure.
//
// rules_check.cpp   correctness: wins over everything
// rules_note.cpp    configuration and environment: words beside the verdict
// rules_rank.cpp    one rank, or some
// rules_scale.cpp   all ranks alike
// rules_quota.cpp   CPU limits: one rank, or all
// rules_cores.cpp   more ranks than cores
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/report.h"
#include "trainer/coordinator/rules_facts.h"
#include "trainer/coordinator/signals.h"
#include "trainer/coordinator/waterfall.h"

namespace evenkeel::trainer {

// Starting values, to be moved only together with the confusion matrix (diagnosis_matrix_test.cpp).
struct StragglerRule {
  double relative_below = 0.75;        // spec.balance.stragglerThreshold
  double imbalance_above = 0.05;       // max / mean - 1 of own work
  double loss_at_least = 0.10;         // of the step's time; less is not worth a name
  double worst_share_at_least = 0.5;   // M_W
  double worst_share_few_ranks = 0.8;  // the same for up to 3 ranks, where one is a large part of all
  // Own work is added up over blocks of this length before the what-if, so that a rank that is throttled now
  // and then counts by what it loses and not by how often: twice the period of the CPU quota.
  double block_seconds = 0.2;
};

struct Fired {
  std::string rule;     // "D10"
  std::string verdict;  // "Straggler"
  std::string sentence;
  std::vector<std::size_t> ranks = {};  // that are to blame, worst first; empty: nobody in particular
};

// One window of one job.
struct Case {
  const JobFacts& job;
  const std::vector<RankFacts>& ranks;  // by rank; may be shorter
  const Signals& signals;
  const Waterfall& waterfall;
  const contract::Losses& losses;
  const StragglerRule& limits;
};
using Rule = std::optional<Fired> (*)(const Case&);

// Correctness: D03 D04 D14 D15 D16 D19 D21 D29, the first that fires. No window is needed.
std::optional<Fired> first_broken_check(const EpochFacts& epoch, const CheckFacts& checks);
// D17 D18 D20 D24 D25 D26: all that fire. `samples_per_rank`: of the present step, if known.
std::vector<Fired> notes(const JobFacts& job, const CheckFacts& checks,
                         std::optional<double> samples_per_rank);

// One rank.
std::optional<Fired> d05_imbalanced_shares(const Case& c);
std::optional<Fired> d10_straggler(const Case& c);
std::optional<Fired> d11_variable_work(const Case& c);
std::optional<Fired> d12_heterogeneous_devices(const Case& c);
// What looks like a slow network and is waiting for ranks that their CPU limits stop.
std::optional<Fired> d10_stopped_rank(const Case& c);
std::optional<Fired> d07_stopped_ranks(const Case& c);
// More than half of the ranks are ready to run for a part of each step and have no core. What looks like a slow
// network, like work that varies, like a fixed cost.
std::optional<Fired> d07_no_core_in_reductions(const Case& c);
std::optional<Fired> d07_no_core_in_turns(const Case& c);
std::optional<Fired> d07_no_core(const Case& c);
// Scaling.
std::optional<Fired> d01_batch_not_scaled(const Case& c);
std::optional<Fired> d02_too_little_work(const Case& c);
std::optional<Fired> d06_input_bound(const Case& c);
std::optional<Fired> d07_cpu_starved(const Case& c);
std::optional<Fired> d08_slow_transport(const Case& c);
std::optional<Fired> d09_communication_by_design(const Case& c);
std::optional<Fired> d30_checkpoint_stall(const Case& c);


// For sentences: "rank 2", "ranks 1, 3"; and ", stopped by its CPU limit of ...", or nothing.
std::string names_of(const std::vector<std::size_t>& ranks);
std::string stopped_by_quota(const Case& c, const std::vector<std::size_t>& ranks);

}  // namespace evenkeel::trainer
