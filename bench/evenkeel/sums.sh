# Bar 10: the same weights, however the batch is split. Sourced by bench/evenkeel.sh, after faults.sh.

SUMS='{layers: [{type: flatten}, {type: dense, units: 8, activation: relu}, {type: dense, units: 4}]}'
# sum_job NAME WORKERS [TRAINING]: a batch of whole groups and a rest, that divides by no number of ranks.
sum_job() { manifest "$1" "$2" "$WORK/rows" "$SUMS" "epochs: 16, batchSize: {global: 67}, optimizer: {type: sgd, learningRate: 0.05}, learningRate: {scaling: None}, seed: 7${3:+, $3}" 'preflight: {mode: Off}'; }
# numbers NAME: all weights.
numbers() {
  local file length
  file=$(ls -d "$WORK/$1.ckpt"/step-* | grep -v '\.tmp$' | tail -1)/weights.safetensors
  length=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
  od -An -v -w4 -t f4 -j $((8 + length)) "$file"
}
# difference A B: the largest of all weights, relative to the largest weight.
difference() { paste <(numbers "$1") <(numbers "$2") | awk '{ d = $1 - $2; if (d < 0) d = -d; m = $1 < 0 ? -$1 : $1; if (d > w) w = d; if (m > x) x = m } END { printf "%.3g", w / x }'; }
hash_of() { sha256sum < "$(ls -d "$WORK/$1.ckpt"/step-* | grep -v '\.tmp$' | tail -1)/weights.safetensors" | cut -c1-16; }

bar_10() {
  local ranks worst=() hashes=() pid
  row_references
  for ranks in 1 2 3 4; do
    sum_job "sum-$ranks" "$ranks"; run "sum-$ranks"
    [ "$ranks" = 1 ] || worst+=("$(difference sum-1 "sum-$ranks")")
    sum_job "bits-$ranks" "$ranks" 'reproducible: true'; run "bits-$ranks"
    hashes+=("$(hash_of "bits-$ranks")")
  done
  # Shares that move, and a rank that dies in the middle.
  sum_job bits-shares 4 'reproducible: true'; run bits-shares --inject "compute=0.005,compute=0.005@$(draw bits-slow 0 4)"
  hashes+=("$(hash_of bits-shares)")
  sum_job bits-kill 4 'reproducible: true'; start bits-kill --inject compute=0.005
  if PORT=$(coordinator_port) && until_step 15; then pid=$(pid_of "$(draw bits-kill 0 4)"); kill -9 "$pid"; fi
  finish bits-kill
  hashes+=("$(hash_of bits-kill)-$([ "$(of bits-kill .job.status.restarts.total)" = 1 ] && echo killed || echo alive)")
  # The comparison must be able to fail: another seed is another sum.
  sum_job bits-other 2 'reproducible: true'; sed -i 's/seed: 7/seed: 8/' "$WORK/bits-other.yaml"; run bits-other
  [ "$(hash_of bits-other)" != "${hashes[0]}" ] || hashes+=("the hash does not see another seed")
  hashes[5]=${hashes[5]%-killed}
  bar 10 "weights on 2, 3, 4 ranks against one, largest difference over the largest weight" ratio "$(quantile 1 "${worst[@]}")" "<= 1e-5" "" 4 "{\"all\": $(list "${worst[@]}")}"
  bar 10-hash "different weights with reproducible: true for 1, 2, 3, 4 ranks, moving shares and a kill" hashes "$(printf "%s\n" "${hashes[@]}" | sort -u | wc -l)" "<= 1" "<= 1" 6 \
    "$(printf '%s\n' "${hashes[@]}" | jq -R . | jq -cs '{hashes: .}')"
}
