#!/usr/bin/env bash
# Even keel in figures: balance, faults, diagnosis, each measured on real processes of this machine. Called by ./dev bench evenkeel.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. tools/dev/lib.sh
. bench/evenkeel/lib.sh
. bench/evenkeel/balance.sh
. bench/evenkeel/faults.sh
. bench/evenkeel/matrix.sh
. bench/evenkeel/sums.sh
. bench/evenkeel/cost.sh
. bench/evenkeel/accuracy.sh

usage() {
  cat <<'TEXT'
usage: ./dev bench evenkeel [--quick] [--report FILE] [--seed TEXT] [--only BAR] [--check]

--quick        a short version of each bar, about 5 minutes on a quiet machine of two cores; whole: about two hours
--seed TEXT    what ranks, steps and strengths are drawn from (default: the commit)
--only BAR     1 2 3 4 5 (with 6 7 8) 9 10 11 12 12b 13 TR-26 (with TR-27) false-deaths mutants time-to-accuracy; by commas
--check        a missed floor is a failure: ends with "N passed, N failed"

Times matter: on a machine that does other work, give it a better priority (nice -n -15).
EVENKEEL_TRAINER: the program to measure, instead of building it.
TEXT
}

QUICK='' SEED='' report='' only='' check=no
while [ $# -gt 0 ]; do
  case $1 in
    --quick) QUICK=yes ;;
    --report) report=$(readlink -f "${2:?--report needs a file}"); shift ;;
    --seed) SEED=${2:?--seed needs a text}; shift ;;
    --only) only=${2:?--only needs a bar}; shift ;;
    --check) check=yes ;;
    --help | -h) usage; exit 0 ;;
    *) say "bench: unknown option '$1'"; usage >&2; exit 64 ;;
  esac
  shift
done
commit=$(git rev-parse HEAD 2> /dev/null || echo unknown)
SEED=${SEED:-$commit}
[ -n "${EVENKEEL_TRAINER:-}" ] || { ensure_packages; build_targets evenkeel-trainer bare_steps > /dev/null; }
TRAINER=$(readlink -f "${EVENKEEL_TRAINER:-$BUILD_DIR/bin/evenkeel-trainer}")

WORK=$(mktemp -d /tmp/evenkeel-bench.XXXX)
JOB=
trap 'end_job; [ -n "${KEEP:-}" ] || rm -rf "$WORK"' EXIT
trap 'exit 130' INT TERM
: > "$WORK/bars"
: > "$WORK/times"
blank_set "$WORK/blank" 65536

# measure FUNCTION BAR...: when one of the bars is wanted. A bar that breaks is not measured, and the others are.
measure() {
  local function=$1 id start; shift
  for id in "$@"; do
    [ -z "$only" ] || [[ ",$only," = *",$id,"* ]] || continue
    start=$(now_ms)
    "$function" || { say "  $id: broke off"; end_job; }
    printf '{"%s": %s}\n' "$function" "$(calc "($(now_ms) - $start) / 1000")" >> "$WORK/times"
    return 0
  done
}
# summary: every bar with its figure, the confusion matrix as a table, the seed.
summary() {
  { echo; echo "seed $SEED${QUICK:+, the short version}"
    jq -rs '(["", "BAR", "FIGURE", "UNIT", "FLOOR", "STRETCH", "RUNS", "WHAT"], (.[] | [
        (if .pass == null then "?" elif .pass then "yes" else "NO" end), .id, (.value // "-" | if type == "number" and . != floor and . > 0.01 then . * 10000 | round / 10000 else . end), .unit, .floor, .stretch, .runs,
        .what + (if .value == null then ": not measured, \(.why)" elif .p50 then "; p50 \(.p50)" else "" end)]))
      | map(tostring | if . == "" then " " else . end) | @tsv' "$WORK/bars" | column -t -s "$(printf '\t')"
    # Row: what was injected; column: what was said.
    jq -r 'select(.matrix) | .matrix as $m | ($m | [.[] | keys[]] | unique) as $said
      | (["INJECTED"] + $said), ($m | keys[] as $k | [$k] + [$said[] as $v | $m[$k][$v] // 0]) | map(tostring) | @tsv' "$WORK/bars" | { read -r head || exit 0; echo; { echo "$head"; cat; } | column -t; }
    jq -r 'select(.matrix) | "not produced here: \(.notProduced | join(", "))"' "$WORK/bars"; } >&2
}
say "bench evenkeel: seed $SEED"
measure bar_1 1
measure bar_2 2
measure bar_3 3
[ -n "$QUICK" ] && [ -z "$only" ] || measure bar_4 4 # half a percent of a step cannot be told from the machine's moods in a minute
measure bar_kills 5 6 7 8
measure bar_9 9
measure bar_10 10 10-hash
measure bar_11 11
measure bar_12 12
measure bar_12b 12b
measure bar_13 13
measure bar_zombie TR-26 TR-27
measure bar_false_deaths false-deaths
measure bar_mutants mutants
[ -n "$QUICK" ] && [ -z "$only" ] || measure bar_time_to_accuracy time-to-accuracy
[ -n "$only" ] || {
  absent() { bar "$1" "$2" "" null "$3" "$4" 0 "$(jq -n --arg why "$5" '{why: $why}')"; }
  [ -z "$QUICK" ] || absent 4 "cost when nothing is wrong" "<= 0.01" "<= 0.005" "half a percent needs many turns: not in the short version"
  absent 14 "reducers against the ring" ">= 1.3" ">= 1.4" "reducers are not built"
  absent 15 "useless reducers refused" ">= 1" "" "reducers are not built"
  absent 16 "a crash loop stops at its limit" "" "" "part of the operator: tests/e2e"
  absent 17 "the operator is killed" "" "" "part of the operator: tests/e2e"
  absent 18 "2 to 4 to 3 in the middle of an epoch" "<= 5" "<= 2" "needs kubectl scale: tests/e2e"
  [ -z "$QUICK" ] || absent time-to-accuracy "Fashion-MNIST to a fixed accuracy, tune Apply against Off" ">= 1.5" "" "takes minutes: not in the short version"
}
for id in ${only//,/ }; do
  jq -es --arg id "$id" 'any(.[]; .id == $id)' "$WORK/bars" > /dev/null || bar "$id" "" "" null "" "" 0 '{"why": "the measurement broke off"}'
done

[ -z "$report" ] || jq -n --arg commit "$commit" --arg date "$(date -u +%FT%TZ)" --arg seed "$SEED" --arg cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" \
  --argjson cores "$(nproc)" --argjson memory "$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) * 1024))" \
  --arg version "$("$TRAINER" version | head -1)" --argjson quick "$([ -n "$QUICK" ] && echo true || echo false)" \
  --slurpfile bars "$WORK/bars" --slurpfile times "$WORK/times" '
  {suite: "evenkeel", commit: $commit, date: $date, seed: $seed, quick: $quick, machine: {cpu: $cpu, cores: $cores, memoryBytes: $memory, ceilings: {}},
   versions: {evenkeel: $version}, timings: ($times | add), bars: $bars}' > "$report"
summary
if [ "$check" = yes ]; then
  jq -rs '"\(map(select(.pass == true)) | length) passed, \(map(select(.pass == false or (.pass == null and .runs == 0 and (.why | test("broke off|no run|does not see"))))) | length) failed, \(map(select(.pass == null and .runs == 0 and (.why | test("CPU limits")))) | length) skipped"' "$WORK/bars"
  jq -es 'all(.[]; .pass != false and (.pass != null or .runs != 0 or (.why | test("broke off|no run|does not see") | not)))' "$WORK/bars" > /dev/null
fi
