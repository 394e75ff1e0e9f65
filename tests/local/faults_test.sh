#!/usr/bin/env bash
# Faults of ranks, disks and clocks, made in real processes: never a hang, a wrong mean or a sample lost. Kills and zombies are
# bars of tests/evenkeel; here are the odd ones.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tests/lib.sh
. tools/dev/lib.sh
. bench/evenkeel/lib.sh
TRAINER=$(readlink -f "${EVENKEEL_TRAINER:-$BUILD_DIR/bin/evenkeel-trainer}")
WORK=$(mktemp -d) JOB=
trap 'end_job; rm -rf "$WORK"' EXIT
row_set "$WORK/rows" 40
row_set "$WORK/two" 2
plain='optimizer: {type: sgd, learningRate: 0.001, momentum: 0}, learningRate: {scaling: None}'
consumed() { of "$1" '[.job.status.replicas[].consumed] | add'; }

# 1. Less of everything than ranks.
manifest few 4 "$WORK/two" "$ROWS" "epochs: 3, batchSize: {global: 4}, $plain"
run few
equal "two samples for four ranks: exit 0" 0 "$STATUS"
equal "two samples for four ranks: each once an epoch" 6 "$(consumed few)"
"$BUILD_DIR/bin/evenkeel-data" tfrecord --out "$WORK/one-file" --files 1 --train 30 --eval 4 --classes 4 --size 8x8 > /dev/null
manifest file 4 "$WORK/one-file" '{layers: [{type: flatten}, {type: dense, units: 4}]}' "epochs: 2, batchSize: {global: 8}, $plain"
sed -i 's/format: idx,/format: tfrecord, image: {size: [8, 8]},/' "$WORK/file.yaml"
run file
equal "one file for four ranks: exit 0" 0 "$STATUS"
equal "one file for four ranks: every sample twice in two epochs" 60 "$(consumed file)"

# 2. A worker that answers heartbeats, but makes no step: the others go on without it, and its process does not outlive the job.
manifest hang 3 "$WORK/rows" "$ROWS" "epochs: 30, batchSize: {global: 6}, $plain" 'preflight: {mode: Off}'
LIMIT=90 run hang --inject compute=0.003,from=20,step=100000@1
equal "a rank that makes no step: the job ends all the same" 0 "$STATUS"
equal "a rank that makes no step: no sample lost or doubled" 1200 "$(consumed hang)"
equal "a rank that makes no step: all steps" 210 "$(of hang .job.status.progress.step)"

# 3. Two rank 0s, the second with all the words of the first: one works, the other leaves with 75. Before it, one of another plan: it is
# refused with 78 by name, while the job goes on.
manifest twins 3 "$WORK/rows" "$ROWS" "epochs: 100, batchSize: {global: 6}, $plain" 'preflight: {mode: Off}'
start twins --inject compute=0.004
if PORT=$(coordinator_port) && until_step 20; then
  first=$(pid_of 0)
  mapfile -d '' environment < "/proc/$first/environ"
  jq '.spec.training.seed = 4711' "$(printf '%s\n' "${environment[@]}" | sed -n 's/^EVENKEEL_CONFIG=//p')" > "$WORK/other.json"
  timeout 60 env -i "${environment[@]}" EVENKEEL_METRICS_PORT=0 "EVENKEEL_CONFIG=$WORK/other.json" "$TRAINER" worker > "$WORK/stranger.log" 2>&1
  stranger=$?
  timeout 60 env -i "${environment[@]}" EVENKEEL_METRICS_PORT=0 "$TRAINER" worker > "$WORK/twin.log" 2>&1
  twin=$?
fi
finish twins
equal "two rank 0s: the job ends well" 0 "$STATUS"
equal "two rank 0s: no sample lost or doubled" 4000 "$(consumed twins)"
equal "two rank 0s: all steps" 700 "$(of twins .job.status.progress.step)"
equal "two rank 0s: the second was called out" 75 "${twin:-none}"
equal "another plan: refused" 78 "${stranger:-none}"
contains "another plan: by name" plan "$(tail -1 "$WORK/stranger.log" 2> /dev/null)"

# 3b. Another program takes the port of a worker that is being replaced (the second time it waits a second), and keeps it.
manifest taken 3 "$WORK/rows" "$ROWS" "epochs: 100, batchSize: {global: 6}, $plain" 'preflight: {mode: Off}'
start taken --inject compute=0.004
thief=
if PORT=$(coordinator_port) && until_step 20; then
  kill -9 "$(pid_of 1)"
  until_step 60
  port=$(tr '\0' '\n' < "/proc/$(pid_of 1)/environ" | sed -n 's/^EVENKEEL_METRICS_PORT=//p')
  kill -9 "$(pid_of 1)"
  openssl s_server -nocert -quiet -accept "127.0.0.1:$port" > "$WORK/thief.log" 2>&1 < /dev/null &
  thief=$!
  sleep 0.3
  kill -0 $thief 2> /dev/null || thief=
fi
finish taken
check "a port that is taken: by another program, all the time" test -n "$thief"
[ -z "$thief" ] || kill $thief
equal "a port that is taken: the job ends well" 0 "$STATUS"
equal "a port that is taken: no sample lost or doubled" 4000 "$(consumed taken)"
equal "a port that is taken: three starts of that rank are enough" 2 "$(of taken .job.status.restarts.total)"

# 4. A disk that is full while a checkpoint is saved: said by name, bounded, and nothing that looks like a checkpoint.
if [ "$(id -u)" = 0 ]; then
  mkdir "$WORK/small"
  manifest full 2 /usr/share/datasets/fashion-mnist '{preset: mlp}' 'steps: 60, batchSize: {global: 64}' 'preflight: {mode: Off}'
  sed -i 's|path: /unused|path: /unused, everySteps: 25|; s/maxRestarts: 100/maxRestarts: 1/' "$WORK/full.yaml"
  unshare --mount bash -c 'mount -t tmpfs -o size=3m none "$1/small" && timeout 90 "$2" local -f "$1/full.yaml" --checkpoint-dir "$1/small/c" --report "$1/full.json" > "$1/full.log" 2>&1
    echo $? > "$1/full.exit"; ls "$1/small/c" > "$1/full.ls"; df --output=used -B1 "$1/small" | tail -1 > "$1/full.used"' _ "$WORK" "$TRAINER"
  equal "a full disk: exit code" 74 "$(cat "$WORK/full.exit")"
  contains "a full disk: by name" 'No space left on device' "$(cat "$WORK/full.log")"
  equal "a full disk: no checkpoint, and no half of one that keeps it full" "" "$(cat "$WORK/full.ls")"
else
  echo "skip  a full disk: needs root"
fi

# 5. The wall clock jumps an hour forth and back, each second, in every process.
"${CC:-cc}" -O1 -shared -fPIC -o "$WORK/jump.so" tests/local/jumping_clock.c
manifest jump 3 "$WORK/rows" "$ROWS" "epochs: 40, batchSize: {global: 6}, $plain"
LD_PRELOAD=$WORK/jump.so LIMIT=60 run jump --inject compute=0.01
equal "a clock that jumps: exit 0" 0 "$STATUS"
equal "a clock that jumps: no sample lost or doubled" 1600 "$(consumed jump)"
equal "a clock that jumps: nobody is taken for dead" 0 "$(of jump .job.status.restarts.total)"
# Ten milliseconds a sample, two samples a rank and step, six a step in all: 300 a second at the most, and far more than 100.
check "a clock that jumps: the pace is that of the steady one" jq -e '.job.status.progress.samplesPerSecond | . > 100 and . < 310' "$WORK/jump.json"
finish_tests
