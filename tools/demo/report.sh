# Times, the report file (one shape for demo and bench), and the verdict of the demo. Sourced by tools/dev/demo.

# timed NAME COMMAND...: runs it; its seconds go into the report.
timed() {
  local name=$1 start ms; shift
  start=$(now_ms)
  "$@" || return $?
  ms=$(($(now_ms) - start))
  printf '%s %s\n' "$name" "$ms" >> "$TIMINGS"
  say "$(printf '  %-22s %6d.%01d s' "$name" $((ms / 1000)) $((ms % 1000 / 100)))"
}

timings_json() { awk '{ printf "{\"%s\": %.3f}\n", $1, $2 / 1000 }' "$TIMINGS" | jq -s add; }

machine_json() {
  jq -n --arg cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" --argjson cores "$(nproc)" \
    --argjson memory "$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) * 1024))" \
    '{cpu: $cpu, cores: $cores, memoryBytes: $memory, ceilings: {}}'
}

versions_json() {
  jq -n --arg evenkeel "$("$BUILD_DIR/bin/evenkeel-trainer" version 2> /dev/null | head -1)" \
    --arg compiler "$(c++ --version | head -1)" --arg prometheus "$(prometheus --version 2>&1 | head -1)" \
    --argjson more "$(cat "$WORK/versions.json" 2> /dev/null || echo '{}')" \
    '{evenkeel: $evenkeel, compiler: $compiler, prometheus: $prometheus} + $more'
}

# The files that the modes leave in $WORK: job.json, prometheus.json, cgroups.json; see write_report.
write_report() { # FILE
  jq -n --arg commit "$(git rev-parse HEAD 2> /dev/null || echo unknown)" --arg date "$(date -u +%FT%TZ)" \
    --arg mode "$mode" --argjson seed "$seed" --argjson slow "$SLOW" \
    --argjson machine "$(machine_json)" --argjson versions "$(versions_json)" --argjson timings "$(timings_json)" \
    --slurpfile job "$WORK/job.json" --slurpfile prometheus "$WORK/prometheus.json" --slurpfile cgroups "$WORK/cgroups.json" \
    --arg sentence "$(sentence)" \
    '{suite: "demo", commit: $commit, date: $date, machine: $machine, versions: $versions, timings: $timings, mode: $mode,
      seed: $seed, slowRankDrawn: $slow, bars: [], job: $job[0], prometheus: $prometheus[0], cgroups: $cgroups[0], sentence: $sentence}' > "$1"
}

# The job as pictures, shares before and after included: one page that needs no network.
write_page() { # PAGE
  [ -f "$WORK/explain.json" ] || return 0
  if "$BUILD_DIR/bin/evenkeel-trainer" explain "$WORK/explain.json" --html "$1" > "$WORK/explain.txt" 2>&1; then
    say "page: $1 (speed, waterfall, each rank and its share over time: look before and after the shares moved)"
  else
    say "demo: no page: $(tail -1 "$WORK/explain.txt")"
  fi
}

# One sentence from the job's own status, beside what the kernel says of that rank's CPU.
sentence() {
  jq -rn --slurpfile job "$WORK/job.json" --slurpfile cgroups "$WORK/cgroups.json" '
    ($job[0].status) as $s | ($s.balance.slowestRank // -1) as $rank
    | ($s.replicas // [] | map(select(.rank == $rank)) | .[0]) as $r
    | ($cgroups[0] | map(select(.rank == $rank)) | .[0]) as $g
    | "\($s.diagnosis.verdict // "none"): \($s.diagnosis.message // "no diagnosis"); rank \($rank) has relative performance \($r.relativePerformance // "?")"
      + ([$s.diagnosis.remedies // [] | .[] | select(.state == "Applied" and .measuredGain)] | .[0]
         | if . then "; applied: \(.action), predicted gain \(.predictedGain * 100 | round)%, measured \(.measuredGain * 100 | round)%" else "" end)
      + (if $g then ", its CPU limit is \($g.cpuLimit // "?") cores and the kernel throttled it in \($g.throttledPeriods // "?") of \($g.periods // "?") periods" else "" end)'
}

# The demo is only right if its numbers agree; each line is one claim. The verdict is not one of them: it names the
# largest loss, and on two cores the ring of a throttled rank may cost more than waiting for its computation.
judge() { # REPORT
  local failed=0
  claim() { # TEXT JQ-CONDITION
    if [ "$(jq -r "$2" "$report_file" 2> /dev/null)" = true ]; then say "  yes  $1"; else say "  NO   $1"; failed=1; fi
  }
  local report_file=$1
  say ""
  claim "the job succeeded" '.job.status.phase == "Succeeded"'
  claim "test accuracy >= 0.86 ($(jq -r '.job.status.progress.accuracy' "$1"))" '.job.status.progress.accuracy >= 0.86'
  claim "the slow rank was found (drawn $SLOW, named $(jq -r '.job.status.balance.slowestRank' "$1"))" \
    '.slowRankDrawn as $slow | .job.status as $s | $s.balance.slowestRank == $slow
     and ($s.replicas[] | select(.rank == $slow).relativePerformance < 0.85)'
  claim "samples: status says $(jq -r '[.job.status.replicas[].consumed] | add' "$1"), epochs x 60,000 = $(jq -r '.job.spec.training.epochs * 60000' "$1")" \
    '([.job.status.replicas[].consumed] | add) == .job.spec.training.epochs * 60000'
  claim "samples: Prometheus says $(jq -r '[.prometheus.samples_total.data.result[].value[1] | tonumber] | add' "$1")" \
    '([.prometheus.samples_total.data.result[].value[1] | tonumber] | add) == .job.spec.training.epochs * 60000'
  say ""
  say "$(jq -r .sentence "$1")"
  [ -z "$report" ] || say "report: $report"
  return $failed
}
