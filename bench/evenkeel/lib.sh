# Jobs that are slowed, killed and watched, and the bars that come of them. Sourced by bench/evenkeel.sh and by the
# scenarios of ./dev demo; TRAINER is the program, WORK a folder of one's own.

# ---- Seeds: of the commit, so that no threshold was ever set on them.
# draw NAME NUMBER MODULO: the same for the same seed, another for each name and number.
draw() { local hash; hash=$(printf '%s %s %s' "$SEED" "$1" "$2" | sha256sum); echo $((16#${hash:0:8} % $3)); }

# ---- Numbers.
calc() { awk "BEGIN { printf \"%.6g\", $1 }"; }
# quantile Q NUMBER...: by nearest rank, so that it is one of them.
quantile() {
  local q=$1; shift
  printf '%s\n' "$@" | sort -g | awk -v q="$q" '{ a[NR] = $1 } END { i = q * NR; i = i == int(i) ? i : int(i) + 1; print a[i < 1 ? 1 : i] }'
}

# ---- Data sets, made with printf alone.
u32() { printf '%08x' "$1" | sed 's/../\\x&/g'; }
# blank_set DIR N: N images of one zero byte. Reading and computing them costs next to nothing.
blank_set() {
  mkdir -p "$1"
  { printf "$(u32 2051)$(u32 "$2")$(u32 1)$(u32 1)"; head -c "$2" /dev/zero; } > "$1/train-images-idx3-ubyte"
  { printf "$(u32 2049)$(u32 "$2")"; head -c "$2" /dev/zero; } > "$1/train-labels-idx1-ubyte"
  { printf "$(u32 2051)$(u32 4)$(u32 1)$(u32 1)"; head -c 4 /dev/zero; } > "$1/t10k-images-idx3-ubyte"
  { printf "$(u32 2049)$(u32 4)"; head -c 4 /dev/zero; } > "$1/t10k-labels-idx1-ubyte"
}
# row_set DIR N: image i has byte i = 255, so that row i of a kernel moves once for each time that sample i was used.
row_set() {
  mkdir -p "$1"
  local i
  { printf "$(u32 2051)$(u32 "$2")$(u32 1)$(u32 "$2")"
    for ((i = 1; i < $2; i++)); do printf '\xff'; head -c "$2" /dev/zero; done; printf '\xff'; } > "$1/train-images-idx3-ubyte"
  { printf "$(u32 2049)$(u32 "$2")"; for ((i = 0; i < $2; i++)); do printf "\\x0$((i % 4))"; done; } > "$1/train-labels-idx1-ubyte"
  cp "$1/train-images-idx3-ubyte" "$1/t10k-images-idx3-ubyte"; cp "$1/train-labels-idx1-ubyte" "$1/t10k-labels-idx1-ubyte"
}

# ---- Jobs.
SMALL='{layers: [{type: flatten}, {type: dense, units: 2}]}'
ROWS='{layers: [{type: flatten}, {type: dense, units: 4, bias: false}]}'
# manifest NAME WORKERS DATA MODEL TRAINING [LINE OF THE SPEC...]
manifest() {
  local name=$1 workers=$2 data=$3 model=$4 training=$5; shift 5
  { cat <<YAML
apiVersion: training.evenkeel.dev/v1alpha1
kind: TrainingJob
metadata: {name: bench}
spec:
  model: $model
  dataset: {format: idx, path: $data}
  training: {$training}
  checkpoint: {path: /unused}
  restart: {failureDetectionSeconds: 2, maxRestarts: 100}
YAML
    # `workers` may come among the lines, with limits.
    [[ " $*" = *workers:* ]] || echo "  workers: {replicas: $workers}"
    printf '  %s\n' "$@"; } > "$WORK/$name.yaml"
}
# start NAME [OPTIONS...]: in the background; its process in JOB.
start() {
  local name=$1; shift
  rm -rf "$WORK/$name.ckpt" "$WORK/$name.json"
  timeout -k 5 "${LIMIT:-120}" "$TRAINER" local -f "$WORK/$name.yaml" --checkpoint-dir "$WORK/$name.ckpt" --report "$WORK/$name.json" "$@" \
    > "$WORK/$name.log" 2>&1 &
  JOB=$!
}
# finish NAME: waits for it; its exit code in STATUS.
finish() { STATUS=0; wait "$JOB" || STATUS=$?; JOB=; [ "$STATUS" = 0 ] || say "  $1 ended with $STATUS: $(tail -3 "$WORK/$1.log" | tr '\n' ' ')"; }
run() { start "$@"; finish "$1"; }
# end_job: asks it to stop, and waits.
end_job() { [ -z "$JOB" ] || { kill -TERM "$JOB" 2> /dev/null || true; wait "$JOB" 2> /dev/null || true; JOB=; }; }
of() { jq -r "$2" "$WORK/$1.json" 2> /dev/null; }

# ---- A running job from outside, as one who looks at a cluster sees it.
# processes: "ROLE-AND-RANK PID" of the children of JOB, which is timeout's process.
processes() {
  local trainer pid
  trainer=$(pgrep -P "$JOB" | head -1)
  for pid in $(pgrep -P "${trainer:-0}"); do
    { tr "\0" "\n" < "/proc/$pid/environ"; } 2> /dev/null | awk -F= -v pid="$pid" '
      $1 == "EVENKEEL_ROLE" { role = $2 } $1 == "EVENKEEL_RANK" { rank = $2 } END { if (role) print (role == "worker" ? rank : role), pid }'
  done
}
pid_of() { processes | awk -v who="$1" '$1 == who { print $2 }'; }
# port_of WHO: of the process's metrics; found once the process is there.
port_of() { { tr "\0" "\n" < "/proc/$(pid_of "$1")/environ"; } 2> /dev/null | sed -n 's/^EVENKEEL_METRICS_PORT=//p'; }
coordinator_port() {
  local end=$((SECONDS + 10)) port=
  until port=$(port_of coordinator) && [ -n "$port" ]; do [ $SECONDS -lt $end ] || return 1; sleep 0.02; done
  echo "$port"
}
# look FILTER: of the present report, as words; nothing while the coordinator does not answer.
look() { curl -s --max-time 1 "http://127.0.0.1:$PORT/v1/report" 2> /dev/null | jq -r "$1" 2> /dev/null; }
# until_step N: waits for that committed step; fails when the job ends before.
until_step() {
  local step
  while kill -0 "$JOB" 2> /dev/null; do
    step=$(look .progress.step)
    [ "${step:-0}" -lt "$1" ] || return 0
    sleep 0.01
  done
  return 1
}

# ---- Bars.
# bar ID WHAT UNIT VALUE FLOOR STRETCH RUNS [JSON]: FLOOR and STRETCH like ">= 0.93"; VALUE may be null, then JSON has a "why".
bar() {
  local id=$1 what=$2 unit=$3 value=$4 floor=$5 stretch=$6 runs=$7 more=${8:-{\}}
  jq -n --arg id "$id" --arg what "$what" --arg unit "$unit" --argjson value "$value" --arg floor "$floor" --arg stretch "$stretch" \
    --argjson runs "$runs" --argjson more "$more" --arg command "./dev bench evenkeel ${QUICK:+--quick }--seed $SEED --only $id" '
    def meets($goal): if $value == null or $goal == "" then null else ($goal | split(" ")) as [$op, $limit] | ($limit | tonumber) as $l
      | if $op == ">=" then $value >= $l elif $op == "<=" then $value <= $l else $value == $l end end;
    {id: $id, what: $what, unit: $unit, value: $value, figure: $value, goal: $floor, floor: $floor, stretch: $stretch, pass: meets($floor),
     stretchPass: meets($stretch), runs: $runs, command: $command} + $more' >> "$WORK/bars"
  say "$(tail -n +1 "$WORK/bars" | jq -rs '.[-1] | "  \(if .pass == null then "?   " elif .pass then "yes " else "NO  " end) \(.id)  \(.what): \(.value // "not measured: \(.why)") \(.unit) (floor \(.floor), stretch \(.stretch))"')"
}
# list NUMBER...: as JSON
list() { printf '%s\n' "$@" | jq -cs .; }
