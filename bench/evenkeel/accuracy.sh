# Time to a fixed accuracy: a job whose batch was kept, with `tune: Apply` against `Off`. Real data, real computation, real
# sums: the MLP on Fashion-MNIST, four ranks, 64 samples a step, a rate that suits them. Sourced by bench/evenkeel.sh.
TARGET=${TARGET:-0.86}

# seconds_to_target NAME MODE SEED: of training, from the first step to the first evaluation that reaches TARGET.
seconds_to_target() {
  local name=$1 mode=$2 seed=$3 step accuracy begin= seconds=
  manifest "$name" 4 /usr/share/datasets/fashion-mnist '{preset: mlp}' \
    "epochs: 12, batchSize: {global: 64}, optimizer: {type: sgd, learningRate: 0.02, momentum: 0.9}, seed: $seed" "tune: {mode: $mode, maxGlobalBatch: 512}"
  LIMIT=240 start "$name"
  PORT=$(coordinator_port) || { end_job; return 1; }
  while kill -0 "$JOB" 2> /dev/null; do
    # Empty fields would move the others.
    read -r step accuracy < <(look '"\(.progress.step) \(.progress.accuracy // 0)"') || true
    [ "${step:-0}" = 0 ] || begin=${begin:-$(now_ms)}
    if [ -n "$begin" ] && awk "BEGIN { exit !(${accuracy:-0} >= $TARGET) }"; then seconds=$(calc "($(now_ms) - $begin) / 1000"); break; fi
    sleep 0.25
  done
  curl -s --max-time 2 "http://127.0.0.1:$PORT/v1/report" > "$WORK/$name.seen" 2> /dev/null || true
  end_job
  [ -n "$seconds" ] || { say "  $name: never reached $TARGET"; return 1; }
  echo "$seconds"
}

bar_time_to_accuracy() {
  local seeds=${QUICK:+1} i seed mode seconds all='[]' off=() apply=() modes
  [ -d /usr/share/datasets/fashion-mnist ] || { bar time-to-accuracy "" "" null ">= 1.5" "" 0 '{"why": "the package dataset-fashion-mnist is not installed"}'; return; }
  for ((i = 0; i < ${SEEDS:-${seeds:-3}}; i++)); do
    seed=$(draw accuracy "$i" 100000)
    # By turns, and the other one first each time: what else the machine does falls to both.
    if [ $((i % 2)) = 0 ]; then modes='Off Apply'; else modes='Apply Off'; fi
    for mode in $modes; do
      seconds=$(seconds_to_target "accuracy-$mode-$i" "$mode" "$seed") || return 1
      all=$(jq -c --arg mode "$mode" --argjson seed "$seed" --argjson seconds "$seconds" --slurpfile report "$WORK/accuracy-$mode-$i.seen" \
        '. + [{mode: $mode, seed: $seed, seconds: $seconds, epochs: $report[0].progress.epoch, accuracy: $report[0].progress.accuracy,
          remedies: [$report[0].diagnosis.remedies[]? | select(.state == "Applied" or .state == "Reverted")]}]' <<< "$all")
      say "  accuracy $TARGET with tune $mode, seed $seed: $seconds s, $(jq -r '.[-1] | "\(.epochs) epochs, \([.remedies[].action] | join("; "))"' <<< "$all")"
      if [ "$mode" = Off ]; then off+=("$seconds"); else apply+=("$seconds"); fi
    done
  done
  local slow fast
  slow=$(quantile 0.5 "${off[@]}") fast=$(quantile 0.5 "${apply[@]}")
  bar time-to-accuracy "training until Fashion-MNIST is read with an accuracy of $TARGET: time with tune Off over time with Apply (medians: $slow s, $fast s)" ratio \
    "$(calc "$slow / $fast")" ">= 1.5" "" "${#off[@]}" "{\"offSeconds\": $slow, \"applySeconds\": $fast, \"target\": $TARGET, \"all\": $all}"
}
