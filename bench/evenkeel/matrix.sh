# Bars 11 and 12: causes produced for real, in strengths that are shares of the step's time; the diagnosis sees none of what was
# injected. Sourced by bench/evenkeel.sh; the demo's scenarios are the same causes.

# What a job of healthy ranks needs for a step here: 32 samples a rank, two milliseconds each, and the rest.
MATRIX_COST=0.002
healthy_step() {
  [ -f "$WORK/matrix-base.json" ] || matrix_job matrix-base ""
  of matrix-base .explain.waterfall.stepSeconds
}
has_step_cost() { "$TRAINER" local --help | grep -q 'step=SECONDS'; }
# matrix_job NAME INJECT [BATCH]
matrix_job() {
  manifest "$1" 4 "$WORK/blank" "$SMALL" "steps: ${MATRIX_STEPS:-60}, batchSize: {${3:-perReplica: 32}}, learningRate: {scaling: None}" 'balance: {mode: Observe}'
  run "$1" --inject "compute=$MATRIX_COST${2:+,$2}"
}
# cause NAME SHARE RANK: the injection that loses SHARE of the step's time.
cause() {
  local base; base=$(healthy_step)
  local more; more=$(calc "$base * $2 / (1 - $2)")
  case $1 in
    healthy) ;;
    input) echo "input=$(calc "$more / 32")" ;;
    network) echo "network=$more" ;;
    straggler) echo "compute=$(calc "$more / 32")@$3" ;;
    # Three quarters of what the late rank needs longer is waiting; the rest is work that all of them share.
    rotating) echo "compute=$(calc "$base * $2 / (0.75 - $2) / 32")@rotate" ;;
    # The batch was kept: eight samples a rank, and what does not shrink with them.
    batch) echo "step=$(calc "($base - 24 * $MATRIX_COST) * $2 / (1 - $2)")" ;;
  esac
}
verdict_of() { case $1 in healthy) echo ScalingFine ;; input) echo InputBound ;; network) echo CommunicationBound ;; straggler) echo Straggler ;; rotating) echo VariableWork ;; batch) echo BatchNotScaled ;; esac; }
# one_case NAME CAUSES SHARE RANK: its verdict and sentence in VERDICT and SENTENCE.
one_case() {
  local name=$1 part inject= batch=
  for part in ${2//+/ }; do
    inject+=${inject:+,}$(cause "$part" "$3" "$4")
    [ "$part" != batch ] || batch='global: 32'
  done
  inject=${inject#,}
  [ "${batch:-}" = "" ] || MATRIX_STEPS=120
  matrix_job "$name" "$inject" "$batch"
  MATRIX_STEPS=
  VERDICT=$(of "$name" .explain.diagnosis.verdict) SENTENCE=$(of "$name" .explain.diagnosis.message)
  jq -nc --arg injected "$2" --argjson share "$3" --argjson rank "$4" --arg verdict "$VERDICT" --arg sentence "$SENTENCE" --arg inject "$inject" \
    '{injected: $injected, share: $share, rank: $rank, verdict: $verdict, sentence: $sentence, inject: $inject}' >> "$WORK/cases"
}

bar_11() {
  local causes=(input network straggler rotating) strengths=(0.15 0.25 0.40 0.60) repeats=3 healthy=20 c s i right=0 all=0 rank missing='["shards"]'
  if has_step_cost; then causes+=(batch); else missing='["shards", "batch"]'; fi
  # One of each must be right every time, so the short version takes a strength that is far from every threshold.
  [ -z "${QUICK:-}" ] || strengths=(0.40) repeats=1 healthy=2
  : > "$WORK/cases"
  for c in "${causes[@]}"; do for s in "${strengths[@]}"; do for ((i = 0; i < repeats; i++)); do
    rank=$(draw "matrix-$c-$s" "$i" 4)
    # A strength of its own, within a tenth.
    one_case "case-$c-$s-$i" "$c" "$(calc "$s * (0.95 + 0.001 * $(draw "strength-$c-$s" "$i" 100))")" "$rank"
    all=$((all + 1))
    if [ "$VERDICT" = "$(verdict_of "$c")" ]; then right=$((right + 1)); else say "  $c $s rank $rank: $VERDICT: $SENTENCE"; fi
  done; done; done
  local false_ones=0
  for ((i = 0; i < healthy; i++)); do
    one_case "case-healthy-$i" healthy 0 0
    [ "$VERDICT" = ScalingFine ] || { false_ones=$((false_ones + 1)); say "  healthy: $VERDICT: $SENTENCE"; }
  done
  local matrix; matrix=$(jq -sc 'group_by(.injected) | map({(.[0].injected): (group_by(.verdict) | map({(.[0].verdict): length}) | add)}) | add' "$WORK/cases")
  # Of five cases a trainer that holds the bar of 58 of 60 misses one in one run of six: the short version allows one.
  bar 11 "verdicts that name the cause that was injected, as a share of $all" share "$(calc "$right / $all")" "$([ -n "${QUICK:-}" ] && echo '>= 0.8' || echo '>= 0.9667')" ">= 1" "$all" \
    "{\"right\": $right, \"of\": $all, \"matrix\": $matrix, \"notProduced\": $missing, \"wrong\": $(jq -sc '[.[] | select(.injected as $i | {healthy: "ScalingFine", input: "InputBound", network: "CommunicationBound", straggler: "Straggler", rotating: "VariableWork", batch: "BatchNotScaled"}[$i] != .verdict)]' "$WORK/cases")}"
  bar 11-healthy "healthy jobs in which something was found" jobs "$false_ones" "<= 0" "<= 0" "$healthy"
  pairs
}
# Two causes at once: both must be named.
pairs() {
  local list=(input+network straggler+network straggler+input) pair a named=0
  ! has_step_cost || list+=(batch+network batch+input batch+straggler)
  [ -z "${QUICK:-}" ] || list=("${list[0]}")
  for pair in "${list[@]}"; do
    one_case "pair-$pair" "$pair" 0.3 "$(draw "pair-$pair" 0 4)"
    local both=1
    for a in ${pair//+/ }; do [[ "$VERDICT: $SENTENCE" = *"$(verdict_of "$a"):"* ]] || both=0; done
    [ $both = 1 ] && named=$((named + 1)) || say "  $pair: $VERDICT: $SENTENCE"
  done
  bar 11-pairs "pairs of causes of which both were named" share "$(calc "$named / ${#list[@]}")" "" ">= 1" "${#list[@]}"
}

# ---- Bar 12: a delay that is known moves its own term by as much, and no other.
# Terms in milliseconds: fixed, imbalance, input, rest; the useful one, which nothing may move, is the last.
terms_of() { of "$1" '.explain.waterfall.terms | map({(.name): (.seconds * 1000)}) | add | "\(.fixed // 0) \(.capacity + .wait) \(.input) \(.rest) \(.useful // 0)"'; }
# long_step NAME INJECT: steps long enough that what a sleep takes too long does not count; the pre-flight sees no delay.
long_step() {
  manifest "$1" 4 "$WORK/blank" "$SMALL" 'steps: 60, batchSize: {perReplica: 32}, learningRate: {scaling: None}' 'balance: {mode: Observe}'
  run "$1" --inject "$2"
}
bar_12() {
  local base=0.064 shares=(0.05 0.10 0.20) repeats=5 phase s i good=0 all=0 ms wanted rank inject floor=0.9
  # Nine of ten are asked for because the machine's own hiccups spoil some: of four, one.
  [ -z "${QUICK:-}" ] || shares=(0.20) repeats=1 floor=0.75
  : > "$WORK/delays"
  for ((i = 0; i < repeats; i++)); do
    long_step "delay-none-$i" "compute=$(calc "$base / 32")"
    for s in "${shares[@]}"; do for phase in fixed straggler input network; do
      rank=$(draw "delay-$phase" "$i" 4) ms=$(calc "$base * $s * 1000")
      case $phase in
        fixed) inject="compute=$(calc "$base / 32"),from=1,step=$(calc "$base * $s")" ;;
        straggler) inject="compute=$(calc "$base / 32"),from=1,compute=$(calc "$base * $s / 32")@$rank" ;;
        input) inject="compute=$(calc "$base / 32"),from=1,input=$(calc "$base * $s / 32")" ;;
        network) inject="compute=$(calc "$base / 32"),from=1,network=$(calc "$base * $s")" ;;
      esac
      long_step "delay-$phase-$s-$i" "$inject"
      wanted=$(paste <(terms_of "delay-none-$i" | tr ' ' '\n') <(terms_of "delay-$phase-$s-$i" | tr ' ' '\n') | awk -v ms="$ms" -v phase="$phase" -v base="$base" '
        BEGIN { own["fixed"] = 1; own["straggler"] = 2; own["input"] = 3; own["network"] = 4 }
        { d = $2 - $1; if (NR == own[phase]) { moved = d; if (d < 0.95 * ms || d > 1.05 * ms) bad = 1 } else if (d > 0.02 * base * 1000 || d < -0.02 * base * 1000) { bad = 1; other = d } }
        END { printf "{\"moved\": %.4f, \"other\": %.4f, \"good\": %s}", moved, other, bad ? "false" : "true" }')
      all=$((all + 1))
      [[ $wanted = *true* ]] && good=$((good + 1)) || say "  $phase $s: injected $ms ms: $wanted"
      jq -c --arg phase "$phase" --argjson ms "$ms" '. + {phase: $phase, injectedMs: $ms}' <<< "$wanted" >> "$WORK/delays"
    done; done
  done
  bar 12 "injected delays that move their own term by themselves, within 5 %, and no other by 2 % of the step" share "$(calc "$good / $all")" ">= $floor" ">= 1" "$all" \
    "{\"delays\": $(jq -sc . "$WORK/delays")}"
}
