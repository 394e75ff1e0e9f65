# One cause of slowness, made on purpose in a job of four processes; what the job itself says of it. Sourced by tools/dev/demo.
# Computation is sleep in proportion to samples, so that four ranks fit on two cores and the cause is known to the millisecond.
. bench/evenkeel/lib.sh

scenarios_help() {
  cat <<'TEXT'
Scenarios:
  straggler         one rank computes at half the speed; found, then re-balanced
  batch-not-scaled  the batch was kept at 32 for four ranks; found, then a larger one is tried and measured
  input-bound       every rank waits for its data
  slow-network      every reduction takes 50 ms longer
  rotating          another rank is late in each step: nobody is the straggler
  uneven-shards     ranks own whole files, and one file is nine times the others: nobody waits for whoever got it
  kill-a-worker     kill -9, twice; the others go on, and no sample is lost or doubled
  lose-a-node       on a real cluster: a node ends as in a power cut; its pods are replaced elsewhere, the others go on
  scale-up          on a real cluster: kubectl scale from two workers to four while the job runs
TEXT
}

# shown NAME: the three lines that matter of a run.
shown() {
  say "    verdict    $(of "$1" .explain.diagnosis.verdict)"
  say "    sentence   $(of "$1" .explain.diagnosis.message)"
  of "$1" '.explain.diagnosis.remedies[]? | "    remedy     \(.action): predicted \(.predictedGain * 100 | round) %"
    + (if .measuredGain then ", measured \(.measuredGain * 100 | round) %" else "" end) + " (\(.state))"' >&2
}
page() { # NAME
  "$TRAINER" explain "$WORK/$1.json" --html "$PAGE" > "$WORK/$1.explain" || die "explain failed: $(tail -1 "$WORK/$1.explain")"
  sed 's/^/    /' "$WORK/$1.explain" >&2
  say "page: $PAGE"
  [ -z "$report" ] || jq --arg scenario "$scenario" --arg commit "$(git rev-parse HEAD 2> /dev/null)" --argjson seed "$seed" '. + {suite: "demo", scenario: $scenario, commit: $commit, seed: $seed, bars: []}' "$WORK/$1.json" > "$report"
}
# scenario_job NAME INJECT BATCH LINE...
scenario_job() {
  local name=$1 inject=$2 batch=$3; shift 3
  manifest "$name" 4 "$WORK/blank" "$SMALL" "steps: ${STEPS:-70}, batchSize: {$batch}, learningRate: {scaling: None}" "$@"
  run "$name" --inject "$inject"
  [ "$STATUS" = 0 ] || die "the job ended with $STATUS"
}

demo_scenario() { # NAME
  local name=$1 inject batch='perReplica: 32' verdict healthy=compute=0.002
  TRAINER=$(readlink -f "${EVENKEEL_TRAINER:-$BUILD_DIR/bin/evenkeel-trainer}") PAGE=${TMPDIR:-/tmp}/evenkeel-$name.html
  trap 'end_job; rm -rf "$WORK"' EXIT
  blank_set "$WORK/blank" 65536
  case $name in
    straggler) inject=compute=0.002@$SLOW verdict=Straggler ;;
    batch-not-scaled) inject=step=0.04 batch='global: 32' verdict=BatchNotScaled ;;
    input-bound) inject=input=0.0012 verdict=InputBound ;;
    slow-network) inject=network=0.05 verdict=CommunicationBound ;;
    rotating) inject=compute=0.0032@rotate verdict=VariableWork ;;
    kill-a-worker) kill_a_worker; return ;;
    uneven-shards) uneven_shards; return ;;
    *) say "demo: there is no scenario '$name'"; scenarios_help >&2; exit 64 ;;
  esac
  say "injected: $inject (beside $healthy for each sample of every rank); the diagnosis is not told"
  scenario_job found "$healthy,$inject" "$batch" 'balance: {mode: Observe}'
  shown found
  local measured=found
  case $name in
    straggler)
      say "the same from step 40 on, and the job may move shares:"
      STEPS=110 scenario_job mended "$healthy,from=40,$inject" "$batch" 'balance: {mode: Rebalance}'
      measured=mended ;;
    batch-not-scaled)
      say "the same, and the job may take up to 256 samples a step:"
      STEPS=200 scenario_job mended "$healthy,$inject" "$batch" 'tune: {mode: Apply, maxGlobalBatch: 256}'
      measured=mended ;;
  esac
  [ $measured = found ] || shown mended
  page $measured
  [ "$(of found .explain.diagnosis.verdict)" = $verdict ] || { say "NO   the verdict is not $verdict"; return 1; }
  say "yes  the verdict is the cause that was injected"
  [ $measured = found ] || jq -e 'any(.explain.diagnosis.remedies[]; .measuredGain != null)' "$WORK/mended.json" > /dev/null ||
    { say "NO   no remedy was taken and measured"; return 1; }
}

# Where each rank worked through its own files alone, three of four would have ended their epoch after a twelfth of the
# data. Here shares are equal, and whoever has nothing left takes half of what the owner of the large file still has: the
# cause cannot become a verdict, which is what is shown.
uneven_shards() {
  local data=$WORK/files large
  "${EVENKEEL_DATA:-$BUILD_DIR/bin/evenkeel-data}" tfrecord --out "$data" --files 4 --train 400 --eval 8 --classes 2 --size 8x8 > /dev/null || die "no data set was made"
  large=$(find "$data" -name 'train*' | sort | head -1)
  for _ in 1 2 3 4 5 6 7 8; do cat "$large"; done > "$WORK/more" && cp "$large" "$WORK/one" && cat "$WORK/one" "$WORK/more" > "$large"
  say "made: files of 900, 100, 100 and 100 samples, owned whole (dataset.sharding.policy: File)"
  manifest files 4 "$data" "$SMALL" "steps: 80, batchSize: {perReplica: 30}, learningRate: {scaling: None}" 'balance: {mode: Observe}'
  sed -i 's/format: idx,/format: tfrecord, image: {size: [8, 8]}, sharding: {policy: File},/' "$WORK/files.yaml"
  run files --inject compute=0.002
  [ "$STATUS" = 0 ] || { tail -3 "$WORK/files.log" >&2; die "the job ended with $STATUS"; }
  shown files
  say "    sharding   $(of files .explain.sharding)"
  say "    consumed   $(of files '[.job.status.replicas[].consumed] | map(tostring) | join(", ")') samples by rank"
  page files
  jq -e '[.job.status.replicas[].consumed] as $c | ($c | add) == 9600 and ($c | max) - ($c | min) <= 30 and (.explain.diagnosis.losses.imbalance // 0) < 0.1' "$WORK/files.json" > /dev/null ||
    { say "NO   somebody had more to do, or waited for it"; return 1; }
  say "yes  every rank took as many samples as the others, each once an epoch, and nobody waited"
}

kill_a_worker() {
  local rank=$SLOW i steps=400
  manifest killed 4 "$WORK/blank" "$SMALL" "steps: $steps, batchSize: {perReplica: 32}, learningRate: {scaling: None}" 'preflight: {mode: Off}'
  start killed --inject compute=0.0005
  PORT=$(coordinator_port) || die "the job did not start: $(tail -2 "$WORK/killed.log")"
  for i in 1 2; do
    until_step $((i * 100)) || die "the job ended before step $((i * 100))"
    say "injected: kill -9 of rank $rank (process $(pid_of "$rank")) at step $(look .progress.step)"
    kill -9 "$(pid_of "$rank")"
    rank=$(((rank + 1) % 4))
  done
  finish killed
  sed 's/^/    /' "$WORK/killed.log" >&2
  page killed
  jq -e --argjson steps $steps '.exitCode == 0 and .job.status.attempt == 1 and .job.status.progress.step == $steps and ([.job.status.replicas[].consumed] | add) == .explain.progress.samples
    and .job.status.restarts.total == 2' "$WORK/killed.json" > /dev/null || { say "NO   the job did not end as if nothing had happened"; return 1; }
  say "yes  complete in its first attempt, two restarts, $(of killed .explain.progress.samples) samples, every epoch proved"
}
