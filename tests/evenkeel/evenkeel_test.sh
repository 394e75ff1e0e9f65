#!/usr/bin/env bash
# The bars of even keel on real processes: samples exactly once whoever dies, one hash for any split, deaths survived in
# time, shares that follow speed, verdicts that name what was injected, a waterfall that is true, mutants that are caught.
# A short version of each, five minutes on two cores; EVENKEEL_TEST_ALL=yes: all of them whole, some hours.
#
# What is counted (samples, hashes, steps done again, healthy processes replaced, verdicts, false deaths) must be right each
# time. What is timed must meet the proposed bar, from which a machine of two cores is far: seconds to the next commit
# a fifth of it, steps until the shares fit half of it. Only the injected delays may fail once in four (see bar 12).
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tools/dev/lib.sh
export EVENKEEL_TRAINER=${EVENKEEL_TRAINER:-$BUILD_DIR/bin/evenkeel-trainer}
if [ "${EVENKEEL_TEST_ALL:-no}" = yes ]; then exec bench/evenkeel.sh --check; else exec bench/evenkeel.sh --quick --check; fi
