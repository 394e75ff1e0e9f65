#include "tests/support/invariants/judge.h"

namespace evenkeel::invariants {

Violations judge(const Trace& trace) {
  Violations all;
  for (const auto judge_one :
       {one_pod_for_each_rank, children_have_their_controller, restarts_are_written_first, terminal_is_sticky,
        deletes_name_an_owned_object, attempts_never_run_together, no_write_without_the_lease,
        observed_generation_is_behind, at_rest_nothing_is_written, the_end_is_the_fault_free_one,
        counts_are_as_without_faults, nothing_secret_and_no_panic})
    for (Violation& violation : judge_one(trace)) all.push_back(std::move(violation));
  return all;
}

std::string to_line(const Violation& violation) {
  return violation.invariant + ": " + violation.what + " [" + violation.object + ", " + violation.where + "]";
}

}  // namespace evenkeel::invariants
