#!/usr/bin/env bash
# Trainer processes on this machine: one manifest, many endings. Bad input gets its message and its exit code.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tests/lib.sh
. tools/dev/lib.sh
trainer=$BUILD_DIR/bin/evenkeel-trainer
evaluator=$BUILD_DIR/bin/naive_evaluator
fashion=/usr/share/datasets/fashion-mnist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# manifest FILE WORKERS TRAINING [DATA [MODEL [MORE]]]
manifest() {
  cat > "$1" <<YAML
apiVersion: training.evenkeel.dev/v1alpha1
kind: TrainingJob
metadata: {name: t}
spec:
  workers: {replicas: $2}
  model: ${5:-{preset: mlp\}}
  dataset: {format: idx, path: ${4:-$fashion}}
  training: {$3}
  checkpoint: {path: /unused, everySteps: 50}
  restart: {failureDetectionSeconds: 2, maxRestarts: 2}
${6:-}
YAML
}
# run NAME [OPTIONS...]: exit code in $status, output in $output
run() {
  local name=$1; shift
  output=$(timeout 120 "$trainer" local -f "$work/$name.yaml" --checkpoint-dir "$work/$name.ckpt" --report "$work/$name.json" "$@" 2>&1)
  status=$?
}
report() { jq -r "$2" "$work/$1.json"; }
weights() { ls -d "$work/$1.ckpt"/step-* | grep -v '\.tmp$' | tail -1; }
# O-set: D samples, image i has byte i = 255; and B-set: n images of one zero byte. Written with printf alone.
u32() { printf '%08x' "$1" | sed 's/../\\x&/g'; }
o_set() { # DIR D CLASSES
  mkdir -p "$1"
  local i j
  { printf "$(u32 2051)$(u32 "$2")$(u32 1)$(u32 "$2")"
    for ((i = 0; i < $2; i++)); do for ((j = 0; j < $2; j++)); do [ $i = $j ] && printf '\xff' || printf '\0'; done; done; } > "$1/train-images-idx3-ubyte"
  { printf "$(u32 2049)$(u32 "$2")"; for ((i = 0; i < $2; i++)); do printf "\\x$(printf %02x $((i % $3)))"; done; } > "$1/train-labels-idx1-ubyte"
  cp "$1/train-images-idx3-ubyte" "$1/t10k-images-idx3-ubyte"; cp "$1/train-labels-idx1-ubyte" "$1/t10k-labels-idx1-ubyte"
}

# 1. The main path, two ranks; an independent evaluator agrees.
manifest "$work/good.yaml" 2 'epochs: 1, batchSize: {perReplica: 128}, optimizer: {type: sgd, learningRate: 0.02}'
run good
equal "one epoch on two ranks exits 0" 0 "$status"
[ "$status" = 0 ] || tail -20 <<< "$output"
equal "all samples once" 60000 "$(report good '[.job.status.replicas[].consumed] | add')"
equal "an independent evaluator counts the same right answers" "correct $(report good '.job.status.progress.accuracy * 10000 | round') of 10000" \
  "$("$evaluator" "$(weights good)/weights.safetensors" $fashion/t10k-{images-idx3,labels-idx1}-ubyte.gz)"
check "accuracy is plausible" jq -e '.job.status.progress.accuracy > 0.75' "$work/good.json"

# 2. Asked to stop: checkpoint, 143; then it goes on from there.
manifest "$work/stop.yaml" 2 'steps: 4000, batchSize: {perReplica: 16}, optimizer: {type: sgd, learningRate: 0.01}'
timeout 120 "$trainer" local -f "$work/stop.yaml" --checkpoint-dir "$work/stop.ckpt" > "$work/stop.log" 2>&1 &
pid=$!
child=
for _ in $(seq 100); do ls -d "$work/stop.ckpt"/step-*0 > /dev/null 2>&1 && break; sleep 0.1; done
pkill -TERM -P $pid -f 'evenkeel-trainer local' 2> /dev/null || kill -TERM $pid
wait $pid; equal "SIGTERM: exit 143" 143 $?
step=$(basename "$(weights stop)" | sed 's/step-0*//')
check "SIGTERM left a checkpoint" test "${step:-0}" -gt 0
touch "$work/stop.log.end"
run stop --steps $((step + 20))
equal "and it goes on to the end" 0 "$status"
# A run from the beginning would have written the checkpoint of step 50 anew.
check "from where it stood" test ! "$work/stop.ckpt/step-000000050/manifest.json" -nt "$work/stop.log.end"
equal "to the end: all steps" $((step + 20)) "$(report stop .job.status.progress.step)"

# 3. A worker is killed: whole-job restart, every sample once all the same.
o_set "$work/oset" 40 4
manifest "$work/kill.yaml" 3 'steps: 3000, batchSize: {global: 6}, optimizer: {type: sgd, learningRate: 0.001, momentum: 0}, learningRate: {scaling: None}' "$work/oset" '{layers: [{type: flatten}, {type: dense, units: 4, bias: false}]}'
timeout 120 "$trainer" local -f "$work/kill.yaml" --checkpoint-dir "$work/kill.ckpt" --report "$work/kill.json" > "$work/kill.log" 2>&1 &
pid=$!
for _ in $(seq 200); do ls -d "$work/kill.ckpt"/step-*0 > /dev/null 2>&1 && break; sleep 0.05; done
victim=$(pgrep -P "$(pgrep -P $pid)" -f 'evenkeel-trainer worker' | head -1)
check "a worker to kill" kill -9 "$victim"
wait $pid; equal "killed worker: the job still exits 0" 0 $?
equal "after one restart" 1 "$(report kill .job.status.restarts.total)"
equal "with all its steps" 3000 "$(report kill .job.status.progress.step)"
# 40 samples in batches of 6: 7 steps an epoch; 3000 steps = 428 epochs and 4 steps of 6.
equal "with all its samples" $((428 * 40 + 24)) "$(report kill '[.job.status.replicas[].consumed] | add')"

# 3b. Two workers of two ranks: a killed rank starts again below its launcher; a killed launcher takes both with it.
layers='{layers: [{type: flatten}, {type: dense, units: 4, bias: false}]}'
pods() { # NAME WORKERS RANKS-OF-EACH
  manifest "$work/$1.yaml" "$2" 'steps: 1500, batchSize: {global: 64}, reproducible: true, optimizer: {type: sgd, learningRate: 0.001, momentum: 0}, learningRate: {scaling: None}' "$work/oset" "$layers"
  sed -i "s/replicas: $2/replicas: $2, devicesPerReplica: $3/" "$work/$1.yaml"
}
pods four 4 1; run four; equal "four workers of one rank: exit 0" 0 "$status"
pods rank 2 2; pods launcher 2 2
# disturb NAME WHOM: kills once when there is a checkpoint, and waits for the end; its status in $status
disturb() {
  timeout 120 "$trainer" local -f "$work/$1.yaml" --checkpoint-dir "$work/$1.ckpt" --report "$work/$1.json" --inject step=0.003 > "$work/$1.log" 2>&1 &
  local pid=$! launcher
  for _ in $(seq 400); do ls -d "$work/$1.ckpt"/step-*0 > /dev/null 2>&1 && break; sleep 0.05; done
  launcher=$(pgrep -P "$(pgrep -P $pid)" -f 'evenkeel-trainer launch' | tail -1)
  case $2 in
    rank) check "a rank to kill" kill -9 "$(pgrep -P "$launcher" -f 'evenkeel-trainer worker' | tail -1)" ;;
    launcher) check "a launcher to kill" kill -9 "$launcher" ;;
  esac
  wait $pid; status=$?
}
for whom in rank launcher; do
  disturb $whom $whom
  equal "killed $whom: the job exits 0" 0 "$status"
  [ "$status" = 0 ] || tail -20 "$work/$whom.log"
  equal "killed $whom: every sample of every epoch" $((1500 * 40)) "$(report $whom '[.job.status.replicas[].consumed] | add')"
  check "killed $whom: the weights of four workers" cmp "$(weights four)/weights.safetensors" "$(weights $whom)/weights.safetensors"
done
equal "a rank that starts again in place is no restart" 0 "$(report rank .job.status.restarts.total)"
equal "a launcher is" 1 "$(report launcher .job.status.restarts.total)"

# 4. Uneven splits and empty ranks: as one rank.
for ranks in 1 2 3 4; do
  manifest "$work/o$ranks.yaml" "$ranks" 'epochs: 2, batchSize: {global: 3}, optimizer: {type: sgd, learningRate: 0.001, momentum: 0}, learningRate: {scaling: None}' "$work/oset" '{layers: [{type: flatten}, {type: dense, units: 4, bias: false}]}'
  run "o$ranks"
  equal "$ranks ranks, batch of 3: exit 0" 0 "$status"
  equal "$ranks ranks: every sample twice" 80 "$(report "o$ranks" '[.job.status.replicas[].consumed] | add')"
done

# 5. Ranks of one machine share memory; over TCP they come to the same weights, to the bit.
for memory in on off; do
  manifest "$work/memory-$memory.yaml" 3 'steps: 30, batchSize: {global: 6}, optimizer: {type: sgd, learningRate: 0.001}, learningRate: {scaling: None}' "$work/oset" '{layers: [{type: flatten}, {type: dense, units: 4, bias: false}]}'
  EVENKEEL_SHARED_MEMORY=$memory run "memory-$memory"
  equal "shared memory $memory: exit 0" 0 "$status"
  sha256sum < "$(weights "memory-$memory")/weights.safetensors" > "$work/memory-$memory.sum"
done
equal "the same weights over shared memory and over TCP" "$(cat "$work/memory-off.sum")" "$(cat "$work/memory-on.sum")"
EVENKEEL_SHARED_MEMORY=maybe run memory-on
contains "a switch that is neither on nor off is refused by name" EVENKEEL_SHARED_MEMORY "$output"

# 6. Bad input.
bad() { # TEXT EXPECTED-STATUS NEEDLE
  equal "$1: exit code" "$2" "$status"
  contains "$1: message" "$3" "$output"
}
plain='epochs: 1, batchSize: {global: 4}'
manifest "$work/missing.yaml" 1 "$plain" /nowhere; run missing; bad "missing data set" 65 "/nowhere"
mkdir -p "$work/cut" && cp $fashion/*.gz "$work/cut/" && gunzip "$work"/cut/t10k* "$work"/cut/train* && truncate -s 1000000 "$work/cut/train-images-idx3-ubyte"
manifest "$work/cutjob.yaml" 1 "$plain" "$work/cut"; run cutjob; bad "truncated images" 65 "train-images-idx3-ubyte"
contains "truncated images: says how much is missing" "1000000" "$output"
cp -r "$work/oset" "$work/label"; printf '\x09' | dd of="$work/label/train-labels-idx1-ubyte" bs=1 seek=11 conv=notrunc status=none
manifest "$work/labeljob.yaml" 1 "$plain" "$work/label" '{layers: [{type: flatten}, {type: dense, units: 4}]}'; run labeljob
bad "label out of range" 65 "record 3"; contains "label out of range: offset" "11" "$output"
manifest "$work/typo.yaml" 1 "epoch: 1, batchSize: {global: 4}"; run typo; bad "typo" 64 "epoch"
manifest "$work/enum.yaml" 1 "$plain, precision: fp7"; run enum; bad "unknown enum" 64 "fp7"
manifest "$work/later.yaml" 1 "$plain, precision: bf16"; run later; bad "not built yet" 64 "precision"
printf 'a: [1, 2\n' > "$work/yaml.yaml"; run yaml; bad "broken YAML" 64 "line"
run nofile; bad "no such manifest" 64 "nofile.yaml"
manifest "$work/shape.yaml" 1 "$plain" "$work/oset" '{layers: [{type: flatten}, {type: dense, units: 3}]}'; run shape; bad "fewer outputs than classes" 65 "classes"
manifest "$work/nan.yaml" 2 'steps: 10, batchSize: {global: 64}, optimizer: {type: sgd, learningRate: 1.0e+18}, learningRate: {scaling: None}' "$fashion" '{layers: [{type: flatten}, {type: dense, units: 64}, {type: dense, units: 10}]}' ; run nan; bad "numbers run away" 76 "step"

# 6. Ranks that own files, one of them killed: every sample once; and the same weights where the attempt begins anew with the same ranks.
"$BUILD_DIR/bin/evenkeel-data" tfrecord --out "$work/records" --train 300 --eval 20 --size 16x16 --files 7 --classes 4 > /dev/null
# records NAME RANKS POLICY RESTART [DATASET] [TRAINING]
records() {
  cat > "$work/$1.yaml" <<YAML
apiVersion: training.evenkeel.dev/v1alpha1
kind: TrainingJob
metadata: {name: t}
spec:
  workers: {replicas: $2}
  model: {layers: [{type: flatten}, {type: dense, units: 4}]}
  dataset: {format: tfrecord, path: ${5:-$work/records}, image: {size: [16, 16]}, sharding: {policy: "$3"}}
  training: {${6:-epochs: 40, batchSize: {global: 12\}}, optimizer: {type: sgd, learningRate: 0.01}}
  checkpoint: {path: /unused, everySteps: 50}
  restart: {failureDetectionSeconds: 2, $4}
YAML
}
kill_one() { # NAME: starts it, kills a worker after the first checkpoint; exit code in $status
  timeout 120 "$trainer" local -f "$work/$1.yaml" --checkpoint-dir "$work/$1.ckpt" --report "$work/$1.json" > "$work/$1.log" 2>&1 &
  local pid=$!
  for _ in $(seq 400); do ls -d "$work/$1.ckpt"/step-*0 > /dev/null 2>&1 && break; sleep 0.02; done
  check "$1: a worker to kill" kill -9 "$(pgrep -P "$(pgrep -P $pid)" -f 'evenkeel-trainer worker' | head -1)"
  wait $pid; status=$?
}
records files 3 File 'maxRestarts: 2, scope: Job'; run files
equal "whole files: exit 0" 0 "$status"
equal "whole files: every sample once an epoch" 12000 "$(report files '[.job.status.replicas[].consumed] | add')"
contains "whole files: explained" "Sharding File: as asked for; 7 files for 3 ranks" "$("$trainer" explain "$work/files.json")"
records files-attempt 3 File 'maxRestarts: 2, scope: Job'; kill_one files-attempt
equal "whole files, a killed worker, a new attempt: exit 0" 0 "$status"
equal "whole files, a new attempt: every sample once" 12000 "$(report files-attempt '[.job.status.replicas[].consumed] | add')"
check "whole files, a new attempt: the weights of an undisturbed run" cmp "$(weights files)/weights.safetensors" "$(weights files-attempt)/weights.safetensors"
records files-elastic 3 File 'maxRestarts: 2'; kill_one files-elastic
equal "whole files, the others go on: exit 0, and the oracle agrees" 0 "$status"
equal "whole files, the others go on: every sample once" 12000 "$(report files-elastic '[.job.status.replicas[].consumed] | add')"
records few 8 File 'maxRestarts: 0'; run few
bad "fewer files than ranks" 64 "7 files and the job 8 ranks"
cp -r "$work/records" "$work/packed"; gzip "$work"/packed/*train*
records packed 8 Auto 'maxRestarts: 0' "$work/packed" 'epochs: 2, batchSize: {global: 12}'; run packed
equal "compressed files, fewer than ranks: exit 0" 0 "$status"
contains "compressed files: explained" "Sharding File: files are compressed" "$("$trainer" explain "$work/packed.json")"
equal "compressed files: every sample once an epoch" 600 "$(report packed '[.job.status.replicas[].consumed] | add')"
records off 2 Off 'maxRestarts: 0' "$work/records" 'epochs: 1, batchSize: {global: 12}'; run off
equal "every rank sees everything: exit 0" 0 "$status"
equal "every rank sees everything: so it takes twice the samples" "300 300" "$(report off '[.job.status.replicas[].consumed] | join(" ")')"
equal "every rank sees everything: the verdict" DuplicateData "$(report off .job.status.diagnosis.verdict)"

# 7. Mistakes on purpose: each is found, and named.
records mutant 2 Record 'maxRestarts: 0' "$work/records" 'epochs: 2, batchSize: {global: 12}'
run mutant --inject repeat-record@1
check "a reader that repeats a record does not end well" test "$status" -ne 0
contains "a repeated record: the oracle says so" "the sample oracle: epoch 0" "$output"
run mutant --inject drop-gradient@1
equal "a rank whose gradients are lost: exit 76" 76 "$status"
contains "lost gradients: the pre-flight says so" "GradientDiffers" "$output"

# 8. A record that cannot be read: tried, skipped for good, and committed as such.
cp -r "$work/records" "$work/poison"; first=$(ls "$work"/poison/*train*00000* | head -1); printf '\xff' | dd of="$first" bs=1 seek=100 conv=notrunc status=none
records poison 3 File 'maxRestarts: 0' "$work/poison" 'epochs: 3, batchSize: {global: 12}'; run poison
bad "a damaged record" 65 "$(basename "$first"): record 0"
sed -i 's/sharding:/onBadRecord: {action: Skip, maxSkipped: 1}, sharding:/' "$work/poison.yaml"; run poison
equal "a damaged record that may be skipped: exit 0" 0 "$status"
equal "a skipped record is committed: every sample once" 900 "$(report poison '[.job.status.replicas[].consumed] | add')"
equal "a skipped record is in the checkpoint" "[0]" "$(jq -c .poison "$(weights poison)/manifest.json")"
finish_tests
