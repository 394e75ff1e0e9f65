# Bars 5 to 9, TR-26 and TR-27, false deaths: processes are killed, stopped and starved; samples are counted afterwards.
# Sourced by bench/evenkeel.sh.

# One of four is killed; the others are watched until they commit, then the new one until it has done its part.
# Into KILLS, a line each: gap-seconds contribute-seconds redone-steps others-replaced
kill_once() { # NUMBER
  local rank=$((1 + $(draw kill-rank "$1" 3))) at=$((20 + $(draw kill-step "$1" 20))) name=kill-$1 before after pid
  [ $(($1 % 4)) != 3 ] || rank=0
  manifest "$name" 4 "$WORK/blank" "$SMALL" 'steps: 260, batchSize: {perReplica: 16}, learningRate: {scaling: None}' 'preflight: {mode: Off}' \
    'balance: {mode: Off}'
  start "$name" --inject compute=0.0005
  PORT=$(coordinator_port) && until_step "$at" || { finish "$name"; return 1; }
  before=$(processes | sort) pid=$(pid_of "$rank")
  local generation step consumed killed gap='' joined='' line
  read -r generation step consumed < <(look "\"\(.generation) \(.progress.step) \(.replicas[$rank].consumed)\"")
  killed=$(now_ms)
  kill -9 "$pid"
  while kill -0 "$JOB" 2> /dev/null; do
    line=$(look "\"\(.generation) \(.progress.step) \(.replicas[$rank].consumed) \(.stage)\"") && [ -n "$line" ] || continue
    set -- $line
    if [ -z "$gap" ]; then
      if [ "$1" = "$generation" ]; then step=$2 consumed=$3; elif [ "$2" -gt "$step" ]; then gap=$(($(now_ms) - killed)) consumed=$3; fi
    fi
    if [ -n "$gap" ] && [ "$3" -gt "$consumed" ]; then joined=$(($(now_ms) - killed)); break; fi
    [ "$4" = Running ] || [ "$4" = Rendezvous ] || break
  done
  after=$(processes | sort)
  local others; others=$(comm -23 <(grep -v "^$rank " <<< "$before") <(grep -v "^$rank " <<< "$after") | wc -l)
  local redone=; redone=$(redone_steps "$rank")
  finish "$name"
  [ "$STATUS" = 0 ] || return 1
  [ "$(of "$name" .job.status.attempt)" = 1 ] || others=9
  echo "$(calc "${gap:-99000} / 1000") $(calc "${joined:-99000} / 1000") ${redone:-99} $others" >> "$WORK/kills"
}
# redone_steps RANK: by the log of a survivor: committed when its group broke, less what the next group began with.
redone_steps() {
  jq -rR 'fromjson? | select(.step != null) | (.msg // .message) as $m | select($m == "ready" or ($m | startswith("left the group"))) | "\(if $m == "ready" then "ready" else "left" end) \(.step)"' \
    "/proc/$(pid_of $((($1 + 1) % 4)))/fd/2" 2> /dev/null |
    awk '$1 == "left" { left = $2; open = 1 } $1 == "ready" && open { seen = 1; open = 0; d = left - $2; if (d > worst) worst = d } END { if (seen) print worst + 0 }'
}

bar_kills() { # bars 5, 6, 7, 8
  local runs=${QUICK:+4} i lost=0; runs=${runs:-20}
  : > "$WORK/kills"
  for ((i = 0; i < runs; i++)); do kill_once "$i" || lost=$((lost + 1)); done
  figures_of() { awk -v c="$1" '{ print $c }' "$WORK/kills"; }
  local done; done=$(wc -l < "$WORK/kills")
  if [ "$done" = 0 ]; then bar 5 "SIGKILL of one of four to the next commit" s null "<= 5" "<= 2" 0 '{"why": "no run ended well"}'; return; fi
  bar 5 "SIGKILL of one of four to the next commit, p95 (a run that was not survived counts as 99)" s \
    "$([ $lost = 0 ] && quantile 0.95 $(figures_of 1) || echo 99)" "<= 5" "<= 2" "$runs" "{\"p50\": $(quantile 0.5 $(figures_of 1)), \"all\": $(list $(figures_of 1))}"
  bar 6 "SIGKILL to the replacement's first samples, p95" s "$(quantile 0.95 $(figures_of 2))" "<= 10" "<= 5" "$done" "{\"p50\": $(quantile 0.5 $(figures_of 2)), \"all\": $(list $(figures_of 2))}"
  bar 7 "committed steps that were done again for a failure, worst" steps "$(quantile 1 $(figures_of 3))" "<= 1" "<= 0" "$done" "{\"all\": $(list $(figures_of 3))}"
  bar 8 "healthy processes that were replaced" processes "$(figures_of 4 | awk '{ s += $1 } END { print s }')" "<= 0" "<= 0" "$done"
}

# ---- Bar 9: every sample as often as there are epochs, whoever dies. Counted from outside, by the rows that moved.
# The last step of an epoch is a short one; its sum is divided by the full batch all the same, so that every row moves alike.
ROW_SAMPLES=203 ROW_EPOCHS=16 ROW_BATCH=16
row_job() { # NAME WORKERS TRAINING [LINE...]
  local name=$1 workers=$2 training=$3; shift 3
  manifest "$name" "$workers" "$WORK/rows" "$ROWS" \
    "$training, batchSize: {global: $ROW_BATCH}, optimizer: {type: sgd, momentum: 0, learningRate: ${RATE:-0.001}}, learningRate: {scaling: None}, lossNormalization: ConstantGlobal, seed: 42" "$@"
}
# kernel NAME: its numbers in order, one a line.
kernel() {
  local file length
  file=$(ls -d "$WORK/$1.ckpt"/step-* | grep -v '\.tmp$' | tail -1)/weights.safetensors
  length=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
  local from; from=$(head -c $((8 + length)) "$file" | tail -c "$length" | jq '[.[] | select(.shape? and (.shape | length) == 2)][0].data_offsets[0]')
  od -An -v -w4 -t f4 -j $((8 + length + from)) -N $((ROW_SAMPLES * 4 * 4)) "$file"
}
# rows_moved NAME: how often each sample was used, as a table "times: samples".
rows_moved() {
  kernel "$1" | paste "$WORK/kernel-start" "$WORK/kernel-one" - | awk '
    { a = $2 - $1; b = $3 - $1; x += (a < 0 ? -a : a); y += (b < 0 ? -b : b) }
    NR % 4 == 0 { times[x > 0 ? int(y / x + 0.5) : -1]++; x = y = 0 }
    END { for (t in times) print t ":" times[t] }' | sort -n | tr '\n' ' '
}
row_references() {
  [ ! -f "$WORK/kernel-one" ] || return 0
  row_set "$WORK/rows" $ROW_SAMPLES
  RATE=1.0e-30 row_job rows-start 1 'steps: 1' 'preflight: {mode: Off}'; run rows-start; kernel rows-start > "$WORK/kernel-start"
  row_job rows-one 1 'epochs: 1' 'preflight: {mode: Off}'; run rows-one; kernel rows-one > "$WORK/kernel-one"
}

# Five kills in two or three incidents, the coordinator among those who may go; whoever is killed is replaced, so that at
# least two join. One rank is slow, so that shares move as well.
chaos() { # NUMBER: prints nothing; 0 when all is as it should be, else a word in WRONG
  local name=chaos-$1 slow k who pid steps=$(((ROW_SAMPLES + ROW_BATCH - 1) / ROW_BATCH * ROW_EPOCHS))
  slow=$(draw chaos-slow "$1" 4)
  row_job "$name" 4 "epochs: $ROW_EPOCHS"
  LIMIT=90 start "$name" --inject "compute=0.003,compute=0.003@$slow"
  WRONG=
  PORT=$(coordinator_port) || { finish "$name"; WRONG="did not start"; return 1; }
  for k in 0 1 2 3 4; do
    # Two at once, and the rest spread over the job.
    [ $((k % 2)) = 1 ] || until_step $((10 + k * steps / 8 + $(draw "chaos-step-$k" "$1" 12))) || break
    who=$(draw "chaos-who-$k" "$1" 9)
    [ "$who" = 8 ] && who=coordinator || who=$((who % 4))
    pid=$(pid_of "$who")
    [ -n "$pid" ] || { who=$(((${who/coordinator/0} + 1) % 4)); pid=$(pid_of "$who"); }
    [ -z "$pid" ] || { kill -9 "$pid" 2> /dev/null && KILLED=$((KILLED + 1)); }
  done
  finish "$name"
  [ "$STATUS" = 0 ] || { WRONG="exit $STATUS"; return 1; }
  local moved; moved=$(rows_moved "$name")
  [ "$moved" = "$ROW_EPOCHS:$ROW_SAMPLES " ] || { WRONG="rows moved (times:rows) $moved"; return 1; }
  [ "$(of "$name" '[.job.status.replicas[].consumed] | add')" = $((ROW_EPOCHS * ROW_SAMPLES)) ] || { WRONG="consumed $(of "$name" '[.job.status.replicas[].consumed] | add')"; return 1; }
  [ "$(of "$name" .job.status.progress.step)" = "$steps" ] || { WRONG="steps $(of "$name" .job.status.progress.step) of $steps"; return 1; }
}
bar_9() {
  local runs=${QUICK:+3} i bad=0 list='[]'; runs=${runs:-100}
  row_references
  KILLED=0
  # The count itself must be able to fail: one epoch more is not the same.
  row_job rows-mutant 1 "steps: $(((ROW_SAMPLES + ROW_BATCH - 1) / ROW_BATCH * ROW_EPOCHS + 1))" 'preflight: {mode: Off}'; run rows-mutant
  [ "$(rows_moved rows-mutant)" = "$((ROW_EPOCHS)):$((ROW_SAMPLES - ROW_BATCH)) $((ROW_EPOCHS + 1)):$ROW_BATCH " ] ||
    { bar 9 "samples lost or doubled" runs null "<= 0" "<= 0" 0 "$(jq -n --arg why "the count does not see one step more: $(rows_moved rows-mutant)" '{why: $why}')"; return; }
  for ((i = 0; i < runs; i++)); do
    chaos "$i" || { bad=$((bad + 1)); list=$(jq -c --arg seed "$i" --arg wrong "$WRONG" '. + [{seed: $seed, wrong: $wrong}]' <<< "$list"); say "  chaos $i: $WRONG"; }
  done
  bar 9 "runs of five kills, joins and new shares in which a sample was lost or doubled, or that did not end" runs "$bad" "<= 0" "<= 0" "$runs" \
    "{\"wrong\": $list, \"kills\": $KILLED}"
}

# ---- TR-26, TR-27: one of three stands still, and comes back.
bar_zombie() {
  local hold=${QUICK:+8} rank pid t gap='' step before; hold=${hold:-60}
  rank=$(draw zombie 0 3)
  row_references
  manifest zombie 3 "$WORK/blank" "$SMALL" "steps: $((hold * 40 + 200)), batchSize: {global: 48}, learningRate: {scaling: None}" 'preflight: {mode: Off}'
  LIMIT=$((hold * 3 + 60)) start zombie --inject compute=0.001
  PORT=$(coordinator_port) && until_step 20 || { finish zombie; return; }
  pid=$(pid_of "$rank")
  kill -STOP "$pid"; t=$(now_ms)
  local generation last; read -r generation step < <(look '"\(.generation) \(.progress.step)"')
  while [ $(($(now_ms) - t)) -lt $((hold * 1000)) ] && kill -0 "$JOB" 2> /dev/null; do
    set -- $(look "\"\(.generation) \(.progress.step) \(.replicas[$rank].consumed)\"")
    if [ -n "${3:-}" ]; then
      if [ -z "$gap" ] && [ "$1" != "$generation" ] && [ "$2" -gt "$step" ]; then gap=$(calc "($(now_ms) - $t) / 1000"); fi
      [ -n "$gap" ] || step=$2
      last=$2 before=$3
    fi
    sleep 0.02
  done
  kill -CONT "$pid"; t=$(now_ms)
  local gone=; while [ $(($(now_ms) - t)) -lt 20000 ]; do kill -0 "$pid" 2> /dev/null || { gone=$(calc "($(now_ms) - $t) / 1000"); break; }; sleep 0.02; done
  finish zombie
  local code; code=$(sed -n "s/^worker-$rank ended with \([0-9]*\).*/\1/p" "$WORK/zombie.log" | head -1)
  bar TR-26 "one of three stands still: the others' next commit" s "${gap:-99}" "<= 5" "<= 3" 1 "{\"stoodStillSeconds\": $hold, \"stepsMeanwhile\": $((${last:-0} - step))}"
  bar TR-27 "it comes back: seconds until it is gone (exit 75; the job complete and every epoch proved)" s \
    "$([ "$STATUS" = 0 ] && [ "$code" = 75 ] && echo "${gone:-99}" || echo 99)" "<= 5" "" 1 "{\"exit\": ${code:-null}, \"jobExit\": $STATUS}"
}

# Four ranks at a tenth of a core are slow, not dead.
bar_false_deaths() {
  local seconds=${QUICK:+15}; seconds=${seconds:-1800}
  manifest starved 4 /usr/share/datasets/fashion-mnist '{preset: mlp}' 'steps: 1000000, batchSize: {perReplica: 64}, optimizer: {type: sgd, learningRate: 0.02}' \
    'workers: {replicas: 4, resources: {limits: {cpu: 100m}}}'
  LIMIT=$((seconds + 120)) start starved
  PORT=$(coordinator_port) && until_step 1 || { finish starved; return; }
  sleep "$seconds"
  local generation; generation=$(look .generation)
  end_job
  if grep -q 'CPU limits are not applied' "$WORK/starved.log"; then
    bar false-deaths "deaths declared among living ranks at a tenth of a core" deaths null "<= 0" "<= 0" 0 '{"why": "CPU limits need root and a writable cgroup"}'
  else
    bar false-deaths "deaths declared among living ranks at a tenth of a core, in $seconds s" deaths "$((${generation:-99} - 1))" "<= 0" "<= 0" 1 \
      "{\"seconds\": $seconds}"
  fi
}
