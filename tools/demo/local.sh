# The demo without a cluster: the same manifest as processes of this machine. Sourced by tools/dev/demo.
METRICS_BASE=${EVENKEEL_DEMO_PORT:-19400}

demo_local() { # MANIFEST
  inside() { "$@"; }
  trap 'prometheus_stop' EXIT
  # Ports: the coordinator's, then one for each rank.
  local targets rank
  targets="\"127.0.0.1:$METRICS_BASE\""
  for rank in $(seq 1 $WORKERS); do targets+=", \"127.0.0.1:$((METRICS_BASE + rank))\""; done
  cat > "$WORK/prometheus.yaml" <<YAML
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - {job_name: evenkeel-trainer, static_configs: [{targets: [$targets], labels: {namespace: default}}]}
YAML
  timed prometheus prometheus_start "$WORK/prometheus.yaml"
  ( while sleep 2; do prometheus_targets > "$WORK/targets.new" 2> /dev/null && [ "$(jq '[.data.activeTargets[] | select(.health == "up")] | length' "$WORK/targets.new")" -gt 0 ] && mv "$WORK/targets.new" "$WORK/targets.json"; done ) &
  local sampler=$!
  timed job "$BUILD_DIR/bin/evenkeel-trainer" local -f "$1" --checkpoint-dir "$WORK/checkpoints" --metrics-port-base "$METRICS_BASE" --report "$WORK/local.json" >&2 ||
    say "demo: evenkeel-trainer local ended with $?"
  kill "$sampler" 2> /dev/null || true
  [ -f "$WORK/targets.json" ] || prometheus_targets > "$WORK/targets.json"
  prometheus_answers
  jq .job "$WORK/local.json" > "$WORK/job.json"
  cp "$WORK/local.json" "$WORK/explain.json"
  jq '[.cpu[]? | {rank, cpuLimit: .limitCores, periods, throttledPeriods, source}]' "$WORK/local.json" > "$WORK/cgroups.json"
}
