#!/usr/bin/env bash
# The engine as users run it: every format, models with convolutions, evaluation, checkpoints, traces, bad records.
# EVENKEEL_TEST_ALL=yes adds what takes minutes: accuracy of LeNet and ResNet-20, ten steps of ResNet-50.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tests/lib.sh
. tools/dev/lib.sh
trainer=$BUILD_DIR/bin/evenkeel-trainer
data=$BUILD_DIR/bin/evenkeel-data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# manifest NAME FORMAT FOLDER MODEL TRAINING [DATASET [MORE]]
manifest() {
  cat > "$work/$1.yaml" <<YAML
apiVersion: training.evenkeel.dev/v1alpha1
kind: TrainingJob
metadata: {name: $1}
spec:
  workers: {replicas: 2}
  model: $4
  dataset: {format: $2, path: $3, ${6:-}}
  training: {$5}
  checkpoint: {path: /unused, everySteps: 1000}
  restart: {failureDetectionSeconds: 5}
${7:-}
YAML
}
# run NAME [OPTIONS...]: exit code in $status, output in $output
run() {
  local name=$1; shift
  output=$(timeout 900 "$trainer" local -f "$work/$name.yaml" --checkpoint-dir "$work/$name.ckpt" --report "$work/$name.json" "$@" 2>&1)
  status=$?
  [ "$status" = 0 ] || printf '%s\n' "$output" > "$work/$name.out"
}
report() { jq -r "$2" "$work/$1.json"; }
consumed() { report "$1" '[.job.status.replicas[].consumed] | add'; }

small='{layers: [{type: conv2d, filters: 8, kernelSize: [3], strides: [2], padding: same, bias: false}, {type: batchNorm, activation: relu}, {type: conv2d, filters: 16, kernelSize: [3], strides: [2], padding: same, bias: false}, {type: batchNorm, activation: relu}, {type: globalAvgPool}, {type: dense, units: 4}]}'
sgd='optimizer: {type: sgd, learningRate: 0.05, momentum: 0.9}'

# 1. Every format: one epoch, every sample once, on two ranks.
for format in idx cifar10 tfrecord imagefolder webdataset; do
  "$data" $format --out "$work/$format" --classes 4 --train 203 --eval 50 > /dev/null
  size='image: {size: [32, 32]}, augment: [randomResizedCrop, horizontalFlip]'
  case $format in idx | cifar10) size='augment: [randomCrop, horizontalFlip]' ;; esac
  manifest "$format" "$format" "$work/$format" "$small" "epochs: 2, batchSize: {global: 32}, $sgd" "$size"
  run "$format"
  equal "$format: two epochs" 0 "$status"
  [ "$status" = 0 ] || tail -5 <<< "$output"
  equal "$format: every sample twice" 406 "$(consumed "$format")"
  check "$format: finite loss" jq -e '.job.status.progress.loss < 10' "$work/$format.json"
done

# 2. What a checkpoint holds, for people and for other programs.
ls_output=$("$trainer" checkpoint ls "$work/tfrecord.ckpt" 2>&1)
check "checkpoint ls shows the last step" grep -q "$(report tfrecord .job.status.progress.step)" <<< "$ls_output"
last=$(ls -d "$work"/tfrecord.ckpt/step-* | tail -1)
check "checkpoint verify" "$trainer" checkpoint verify "$last"
check "checkpoint export" "$trainer" checkpoint export "$last" "$work/out.safetensors"
printf 'x' | dd of="$last/weights.safetensors" bs=1 seek=400 conv=notrunc status=none
"$trainer" checkpoint verify "$last" > "$work/verify" 2>&1
equal "a changed byte: verify exits 65" 65 $?
check "and names the file" grep -q weights.safetensors "$work/verify"

# All damaged: a restart from nothing would prune what could still be rescued.
for file in "$work"/tfrecord.ckpt/step-*/weights.safetensors; do printf 'x' | dd of="$file" bs=1 seek=400 conv=notrunc status=none; done
run tfrecord
equal "no checkpoint verifies: exit 65" 65 "$status"
contains "and says which folder" tfrecord.ckpt "$output"

# 3. Fine-tuning: what fits is loaded, what does not is listed.
manifest tune tfrecord "$work/tfrecord" "{layers: [{type: conv2d, filters: 8, kernelSize: [3], strides: [2], padding: same, bias: false}, {type: batchNorm, activation: relu}, {type: globalAvgPool}, {type: dense, units: 4, name: head}], initFrom: {path: $work/out.safetensors}}" \
  "steps: 2, batchSize: {global: 32}, $sgd" 'image: {size: [32, 32]}'
run tune
equal "initFrom runs" 0 "$status"

# 4. A trace of both ranks that a viewer can read.
cp "$work/idx.yaml" "$work/traced.yaml"
run traced --steps 4 --trace "$work/trace.json"
check "trace is JSON" jq -e '.traceEvents | length > 50' "$work/trace.json"
equal "of both ranks" "0 1" "$(jq -r '[.traceEvents[].pid] | unique | join(" ")' "$work/trace.json")"
equal "with operators, collectives, phases and data threads" "collective data operator phase" \
  "$(jq -r '[.traceEvents[] | select(.ph == "X") | .cat] | unique | join(" ")' "$work/trace.json")"

run traced --steps 4 --trace "$work/nowhere/trace.json"
equal "a trace that cannot be written is told before the training" 64 "$status"

# 5. Bad records: Fail names the file; Skip leaves them out and counts them.
mkdir -p "$work/cut"; cp -r "$work/imagefolder/." "$work/cut"
victim=$(find "$work/cut/train" -name '*.jpg' | sort | head -1)
truncate -s $(($(stat -c %s "$victim") / 2)) "$victim"
manifest cut imagefolder "$work/cut" "$small" "epochs: 1, batchSize: {global: 32}, $sgd" 'image: {size: [32, 32]}'
run cut
equal "a truncated JPEG: exit 65" 65 "$status"
check "names the file" grep -q "$(basename "$victim")" <<< "$output"
manifest skip imagefolder "$work/cut" "$small" "epochs: 1, batchSize: {global: 32}, $sgd" 'image: {size: [32, 32]}, onBadRecord: {action: Skip, maxSkipped: 1}'
run skip
equal "Skip: exit 0" 0 "$status"

# 6. Rank counts and micro-batches change no result (Ghost statistics).
manifest one cifar10 "$work/cifar10" "$small" "epochs: 1, batchSize: {global: 32}, batchNorm: {group: 8}, $sgd"
for workers in 1 3; do
  run one --workers $workers
  equal "$workers ranks" 0 "$status"
  losses+=("$(report one '.job.status.progress.loss * 1e4 | round')")
  rm -rf "$work/one.ckpt"
done
run one --workers 1 --micro-batch 5
equal "micro-batches that would cut a group are refused" 64 "$status"
run one --workers 1 --micro-batch 8
losses+=("$(report one '.job.status.progress.loss * 1e4 | round')")
equal "the same loss on 1 and 3 ranks and in micro-batches" "${losses[0]} ${losses[0]} ${losses[0]}" "${losses[*]}"

# 7. All processes killed at random moments, while a checkpoint is written each step: every start finds one that verifies,
# no step is lost but the one in flight, and at most three are kept.
manifest kills idx "$work/idx" '{layers: [{type: flatten}, {type: dense, units: 4}]}' "steps: 1000000, batchSize: {global: 16}, $sgd"
sed -i 's/everySteps: 1000/everySteps: 1, keep: 3/' "$work/kills.yaml"
RANDOM=7 before=0 verified=yes forward=yes kept=yes
for _ in $(seq $([ "${EVENKEEL_TEST_ALL:-no}" = yes ] && echo 50 || echo 6)); do
  setsid "$trainer" local -f "$work/kills.yaml" --checkpoint-dir "$work/kills.ckpt" > "$work/kills.log" 2>&1 &
  pid=$!
  for _ in $(seq 200); do ls "$work/kills.ckpt" 2> /dev/null | grep -q step- && break; sleep 0.05; done
  sleep "1.$((RANDOM % 1000))"
  kill -9 -- -$pid; wait $pid 2> /dev/null
  # A worker that was just forked may be in a session of its own.
  pkill -9 -f "$trainer worker"; pkill -9 -f "$trainer coordinator"
  newest=$(ls -d "$work"/kills.ckpt/step-* | grep -v '\.tmp$' | tail -1)
  "$trainer" checkpoint verify "$newest" > "$work/verify" 2>&1 || verified="no: $newest"
  now=$(basename "$newest" | sed 's/step-0*//')
  [ "$now" -ge $((before - 1)) ] || forward="no: $before, then $now"
  [ "$(ls -d "$work"/kills.ckpt/step-* | grep -vc '\.tmp$')" -le 4 ] || kept=no
  before=$now
done
equal "SIGKILL at random moments: the newest checkpoint always verifies" yes "$verified"
equal "no start goes back by more than a step" yes "$forward"
equal "old ones go" yes "$kept"
check "and it went on each time" test "$before" -gt 20

# 8. The plan before a run; a model that does not fit says so in numbers.
manifest big tfrecord "$work/tfrecord" '{preset: resnet50, options: {numClasses: 4}}' "epochs: 1, batchSize: {global: 32}, $sgd" 'image: {size: [224, 224]}'
plan=$("$trainer" plan -f "$work/big.yaml")
equal "plan exits 0" 0 $?
check "plan: parameters" grep -q '23516228 parameters' <<< "$plan"
check "plan --graph prints the passes" grep -q 'graph after fuse_relu' <<< "$("$trainer" plan -f "$work/big.yaml" --graph)"

# 9. ResNet-50 on photographs: a few steps.
run big --steps $([ "${EVENKEEL_TEST_ALL:-no}" = yes ] && echo 10 || echo 2)
equal "ResNet-50 steps" 0 "$status"

if [ "${EVENKEEL_TEST_ALL:-no}" = yes ]; then
  timeout 900 "$trainer" local -f examples/lenet-fashion-mnist.yaml --workers 2 --checkpoint-dir "$work/lenet.ckpt" --report "$work/lenet.json" > "$work/lenet.out" 2>&1
  status=$?
  equal "LeNet on Fashion-MNIST" 0 "$status"
  printf 'LeNet: accuracy %s after 5 epochs\n' "$(report lenet .job.status.progress.accuracy)"
  check "LeNet reaches 0.90" jq -e '.job.status.progress.accuracy >= 0.9' "$work/lenet.json"
  "$data" cassava --out "$work/cassava" > /dev/null
  manifest leaf tfrecord "$work/cassava" '{preset: resnet20, options: {numClasses: 5}}' 'epochs: 4, batchSize: {global: 64}, optimizer: {type: sgd, learningRate: 0.1, momentum: 0.9, weightDecay: 0.0001}, learningRate: {schedule: cosine, scaling: None}' \
    'image: {size: [64, 64]}, split: {train: train, eval: validation}, augment: [horizontalFlip], cache: Memory'
  run leaf
  equal "ResNet-20 on the look-alike leaves" 0 "$status"
  printf 'ResNet-20 at 64 px: accuracy %s\n' "$(report leaf .job.status.progress.accuracy)"
  check "learns to 0.9" jq -e '.job.status.progress.accuracy >= 0.9' "$work/leaf.json"
fi
finish_tests
