# A real Prometheus for the demo. Sourced by tools/dev/demo. `inside` runs a command where the pods can be reached.

prometheus_start() { # CONFIG
  inside prometheus --config.file="$1" --storage.tsdb.path="$WORK/prometheus" --web.listen-address=127.0.0.1:19090 \
    --log.level=warn > "$WORK/prometheus.log" 2>&1 &
  PROMETHEUS_PID=$!
  local i
  for i in $(seq 100); do
    inside curl -sf http://127.0.0.1:19090/-/ready > /dev/null 2>&1 && return
    kill -0 "$PROMETHEUS_PID" 2> /dev/null || break
    sleep 0.2
  done
  cat "$WORK/prometheus.log" >&2
  die "Prometheus did not start (127.0.0.1:19090)"
}

prometheus_stop() {
  [ -n "${PROMETHEUS_PID:-}" ] || return 0
  pkill -TERM -P "$PROMETHEUS_PID" 2> /dev/null || true
  kill "$PROMETHEUS_PID" 2> /dev/null || true
  wait "$PROMETHEUS_PID" 2> /dev/null || true
  PROMETHEUS_PID=
}

prometheus_query() { inside curl -sfG http://127.0.0.1:19090/api/v1/query --data-urlencode "query=$1"; }
prometheus_targets() { inside curl -sf http://127.0.0.1:19090/api/v1/targets; }

# prometheus_answers: the raw answers of /api/v1/query and, as last seen while the pods ran, of /api/v1/targets.
# The counters are read as their last value: the pods are gone a moment later.
prometheus_answers() {
  local name query out='{}'
  while IFS='|' read -r name query; do
    out=$(jq -n --argjson out "$out" --arg name "$name" --arg query "$query" --argjson answer "$(prometheus_query "$query")" \
      '$out + {($name): ({query: $query} + $answer)}')
  done <<'QUERIES'
samples_total|last_over_time(evenkeel_replica_samples_total[1h])
steps_total|last_over_time(evenkeel_replica_steps_total[1h])
busy_seconds|sum by (rank) (last_over_time(evenkeel_replica_phase_seconds_total{phase=~"input_wait|h2d_copy|forward|backward|optimizer"}[1h]))
collective_wait_seconds|sum by (rank) (last_over_time(evenkeel_replica_phase_seconds_total{phase="collective_wait"}[1h]))
relative_performance|last_over_time(evenkeel_job_replica_relative_performance_ratio[1h])
job_phase|last_over_time(evenkeel_job_status_phase[1h])
QUERIES
  jq -n --argjson out "$out" --slurpfile targets "$WORK/targets.json" '$out + {targets: $targets[0]}' > "$WORK/prometheus.json"
}
