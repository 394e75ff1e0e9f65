# Bar 4: what ledger and monitoring cost when nothing is wrong; and the mutants. Sourced by bench/evenkeel.sh.

# Seconds a step of the whole trainer, one rank, from step 50 to 450, by the worker's own log; and by its processor.
whole_step() {
  local pid at=() used=()
  start whole
  PORT=$(coordinator_port) || { finish whole; return 1; }
  pid=$(pid_of 0)
  # Looking costs too: seldom.
  until [ "$(grep -c '"message":"step"' "/proc/$pid/fd/2" 2> /dev/null)" -ge 10 ]; do kill -0 "$JOB" 2> /dev/null || return 1; sleep 0.5; done
  mapfile -t at < <(jq -rR 'fromjson? | select(.message == "step" and (.step == 50 or .step == 450)) | .time | (.[:19] + "Z" | fromdate) + (.[19:23] | tonumber)' "/proc/$pid/fd/2")
  end_job
  calc "(${at[1]} - ${at[0]}) / 400"
}

# The same engine, data and steps with nothing around it, by turns with the whole; the median of the turns.
bar_4() {
  local program=${EVENKEEL_BARE:-$BUILD_DIR/bin/bare_steps} turns=${QUICK:+2} i bare=() whole=() ratios=() fashion=/usr/share/datasets/fashion-mnist
  turns=${turns:-9}
  local what="time of a step of the whole trainer over that of a bare one, less one: 256 samples, one rank; the median of the turns"
  [ -x "$program" ] || { bar 4 "$what" ratio null "<= 0.01" "<= 0.005" 0 '{"why": "the program bare_steps is not built"}'; return; }
  manifest whole 1 $fashion '{preset: mlp}' 'steps: 100000, batchSize: {global: 256}, optimizer: {type: sgd, learningRate: 0.02}, learningRate: {scaling: None}, reproducible: true, evaluateEvery: 1000' \
    'preflight: {mode: Off}'
  sed -i 's|path: /unused|path: /unused, everySteps: 100000|' "$WORK/whole.yaml"
  for ((i = 0; i < turns; i++)); do
    bare+=("$("$program" $fashion 256 50 450 | cut -d' ' -f1)")
    whole+=("$(whole_step)")
    ratios+=("$(calc "${whole[-1]} / ${bare[-1]} - 1")")
  done
  bar 4 "$what" ratio "$(quantile 0.5 "${ratios[@]}")" "<= 0.01" "<= 0.005" "$turns" \
    "{\"bare\": $(list "${bare[@]}"), \"whole\": $(list "${whole[@]}"), \"peer\": {\"name\": \"bare trainer\", \"value\": $(quantile 0.5 "${bare[@]}")}}"
}

# Mistakes made on purpose, by the trainer itself: one record read twice instead of another; the gradient of one rank left out.
# Each must end the job, the second before step 1. (A timer that runs a tenth too fast: a unit test of the waterfall.)
bar_mutants() {
  local what="mutants that were caught: a record repeated, a gradient dropped" caught=0 told='[]' mutant
  "$TRAINER" local --help | grep -q repeat-record || { bar mutants "$what" mutants null ">= 2" "" 0 '{"why": "this trainer cannot be made to err"}'; return; }
  row_set "$WORK/mutant" 40
  for mutant in none repeat-record drop-gradient; do
    manifest "mutant-$mutant" 3 "$WORK/mutant" "$ROWS" 'epochs: 4, batchSize: {global: 6}, optimizer: {type: sgd, learningRate: 0.001, momentum: 0}, learningRate: {scaling: None}'
    sed -i 's/maxRestarts: 100/maxRestarts: 0/' "$WORK/mutant-$mutant.yaml"
    if [ $mutant = none ]; then start "mutant-$mutant"; else start "mutant-$mutant" --inject "$mutant@1"; fi
    STATUS=0; wait "$JOB" || STATUS=$?; JOB=
    told=$(jq -c --arg mutant "$mutant" --argjson status $STATUS --arg steps "$(of "mutant-$mutant" .job.status.progress.step)" --arg said "$(grep -vE '^ *[0-9]+s ' "$WORK/mutant-$mutant.log" | head -c 600)" \
      '. + [{mutant: $mutant, exit: $status, steps: $steps, said: $said}]' <<< "$told")
    [ $mutant != none ] || [ $STATUS = 0 ] || { bar mutants "$what" mutants 0 ">= 2" "" 3 "{\"told\": $told}"; return; }
    # Each by whom it should be caught: the sample oracle, and the pre-flight before the first step.
    case $mutant:$STATUS:$(of "mutant-$mutant" .job.status.progress.step) in
      repeat-record:0:*) ;;
      repeat-record:*) if grep -q 'the sample oracle' "$WORK/mutant-$mutant.log"; then caught=$((caught + 1)); fi ;;
      drop-gradient:76:0) caught=$((caught + 1)) ;;
    esac
  done
  bar mutants "$what" mutants "$caught" ">= 2" "" 3 "{\"told\": $told}"
}
