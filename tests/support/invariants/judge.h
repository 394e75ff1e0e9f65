// The judges of the invariants I1-I12: one function each, grouped by file. A judge sees a whole record and names what
// breaks its invariant; it knows nothing of the others. Pure.
#pragma once

#include <string>
#include <vector>

#include "tests/support/invariants/trace.h"

namespace evenkeel::invariants {

using Violations = std::vector<Violation>;

// judge_pods.cpp
Violations one_pod_for_each_rank(const Trace& trace);    // I1
Violations attempts_never_run_together(const Trace& t);  // I6
// judge_ownership.cpp
Violations children_have_their_controller(const Trace& trace);  // I2
Violations deletes_name_an_owned_object(const Trace& trace);    // I5
// judge_status.cpp
Violations restarts_are_written_first(const Trace& trace);     // I3
Violations terminal_is_sticky(const Trace& trace);             // I4
Violations observed_generation_is_behind(const Trace& trace);  // I8
// judge_writes.cpp
Violations no_write_without_the_lease(const Trace& trace);  // I7
Violations at_rest_nothing_is_written(const Trace& trace);  // I9
Violations counts_are_as_without_faults(const Trace& t);    // I11
// judge_outcome.cpp
Violations the_end_is_the_fault_free_one(const Trace& trace);   // I10
Violations nothing_secret_and_no_panic(const Trace& trace);     // I12

// All of them, in order of their numbers.
Violations judge(const Trace& trace);
// "I1: two pods ... [Pod ns/name, events line 3]"
std::string to_line(const Violation& violation);

}  // namespace evenkeel::invariants
