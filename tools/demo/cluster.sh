# The demo on a real Kubernetes. Sourced by tools/dev/demo.
CLUSTER=tools/cluster/cluster
NAMESPACE=evenkeel-demo
JOB=fashion-mnist
CHECKPOINTS=/var/tmp/evenkeel/$NAMESPACE/fashion-mnist-checkpoints

kubectl() { "$CLUSTER" kubectl "$@"; }

# What the cluster consists of is made beside the compiler: much of it is waiting for the network.
cluster_parts_begin() {
  "$CLUSTER" assets 2> >(grep --line-buffered -v '^assets are in' >&2) &
  PARTS_PID=$!
  trap 'kill "$PARTS_PID" 2> /dev/null || true' EXIT
}
cluster_parts_wait() {
  wait "$PARTS_PID" || die "a part of the cluster could not be made (see above)"
  trap - EXIT
}

# The cluster with Evenkeel on it. It goes when the demo ends, unless it is to be kept or was there before.
cluster_ready() {
  trap 'prometheus_stop || true; kill "${DISCOVER_PID:-}" 2> /dev/null || true; [ "$keep" = yes ] || [ -n "$context" ] || "$CLUSTER" down >&2 || true' EXIT
  if [ -n "$context" ]; then timed cluster "$CLUSTER" up --context "$context"; else timed cluster "$CLUSTER" up --nodes 2; fi
  timed images tools/image/build "$CACHE_DIR/images/evenkeel"
  timed load "$CLUSTER" load "$CACHE_DIR"/images/evenkeel/operator.tar "$CACHE_DIR"/images/evenkeel/trainer-cpu.tar
  timed helm_install "$CLUSTER" helm upgrade --install evenkeel charts/evenkeel --namespace evenkeel-system --create-namespace --wait --timeout 120s > "$WORK/helm.log" ||
    { cat "$WORK/helm.log" >&2; kubectl -n evenkeel-system get pods -o wide >&2; kubectl -n evenkeel-system logs deploy/evenkeel --tail=50 >&2; die "helm install failed"; }
}

# An empty namespace with data and a place for checkpoints: those of an earlier job belong to it.
namespace_ready() {
  kubectl delete namespace "$NAMESPACE" --ignore-not-found --wait > /dev/null
  kubectl delete pv "$NAMESPACE-fashion-mnist" "$NAMESPACE-fashion-mnist-checkpoints" --ignore-not-found > /dev/null
  rm -rf "$CHECKPOINTS" && install -d -o 65532 -g 65532 "$CHECKPOINTS"
  kubectl create namespace "$NAMESPACE" > /dev/null
  sed "s/default/$NAMESPACE/" examples/fashion-mnist-volumes.yaml | kubectl -n "$NAMESPACE" apply -f - > /dev/null
}

demo_cluster() { # MANIFEST
  inside() { "$CLUSTER" exec "$@"; }
  cluster_ready
  namespace_ready
  sed "s|@WORK@|$WORK|" tools/demo/prometheus-cluster.yaml > "$WORK/prometheus.yaml"
  inside "$PWD/tools/demo/discover" "$WORK/pods.json" > "$WORK/discover.log" 2>&1 &
  DISCOVER_PID=$!
  timed prometheus prometheus_start "$WORK/prometheus.yaml"
  kubectl -n "$NAMESPACE" apply -f "$1" >&2
  timed job watch_job
  collect_cluster
}

# The API server through the proxy that tools/demo/discover keeps open: a tenth of the cost of a kubectl, on a machine whose
# two cores are the cluster's too.
api() { inside curl -sf --max-time 5 "http://127.0.0.1:18001/$1" 2> /dev/null || echo '{}'; }

# Shows the job live until it ends; samples, while pods run, what only running pods can say.
watch_job() {
  local phase='' deadline=$((SECONDS + 900)) tick=0
  while [ $SECONDS -lt $deadline ]; do
    phase=$(api "apis/training.evenkeel.dev/v1alpha1/namespaces/$NAMESPACE/trainingjobs/$JOB" | jq -r '.status.phase // empty')
    say "$(printf '    %4d s  %-10s %s' "$((SECONDS - deadline + 900))" "${phase:-Created}" "$(live_line)")"
    case $phase in
      Succeeded | Failed) kubectl -n "$NAMESPACE" get tjob "$JOB" -o wide >&2; return 0 ;;
      Running)
        prometheus_targets > "$WORK/targets.new" 2> /dev/null && mv "$WORK/targets.new" "$WORK/targets.json"
        [ $((tick % 5)) != 1 ] || sample_cgroups ;;
    esac
    tick=$((tick + 1))
    sleep 3
  done
  kubectl -n "$NAMESPACE" get pods -o wide >&2
  die "the job did not end within 15 minutes (phase ${phase:-unknown})"
}

# The status of the object is written every 30 seconds at most; what happens now, the coordinator knows.
live_line() {
  local ip
  ip=$(api "api/v1/namespaces/$NAMESPACE/pods?labelSelector=training.evenkeel.dev/job-name=$JOB,training.evenkeel.dev/role=coordinator" | jq -r '.items[0].status.podIP // empty')
  [ -n "$ip" ] || return 0
  inside curl -sf --max-time 2 "http://$ip:9400/v1/report" > "$WORK/explain.new" 2> /dev/null || return 0
  mv "$WORK/explain.new" "$WORK/explain.json"
  jq -r '
    if .stage == "Rendezvous" then .message else
    "step \(.progress.step)/\(.progress.targetSteps), \(.progress.samplesPerSecond // 0 | round) samples/s, imbalance \(.balance.imbalanceRatio // "?"), \(.diagnosis.verdict): \(.diagnosis.message)" end' "$WORK/explain.json" || true
}

# CPU limit and throttled periods of each worker, read in its own cgroup (v1 or v2) through kubectl exec.
sample_cgroups() {
  local rank pod
  for rank in $(seq 0 $((WORKERS - 1))); do
    pod=$(kubectl -n "$NAMESPACE" get pods -l "training.evenkeel.dev/job-name=$JOB,training.evenkeel.dev/role=worker,training.evenkeel.dev/rank=$rank" \
      --field-selector=status.phase=Running -o 'jsonpath={.items[0].metadata.name}' 2> /dev/null) || continue
    kubectl -n "$NAMESPACE" exec "$pod" -- sh -c '
      if [ -f /sys/fs/cgroup/cpu.max ]; then cat /sys/fs/cgroup/cpu.max; cat /sys/fs/cgroup/cpu.stat
      else d=/sys/fs/cgroup/cpu; [ -d $d ] || d=/sys/fs/cgroup/cpu,cpuacct; echo "$(cat $d/cpu.cfs_quota_us) $(cat $d/cpu.cfs_period_us)"; cat $d/cpu.stat; fi' 2> /dev/null |
      awk -v rank="$rank" -v pod="$pod" '
        NR == 1 { limit = ($1 == "max" || $1 < 0) ? "null" : $1 / $2 } $1 == "nr_periods" { p = $2 } $1 == "nr_throttled" { t = $2 }
        END { if (NR > 1) printf "{\"rank\": %d, \"pod\": \"%s\", \"cpuLimit\": %s, \"periods\": %d, \"throttledPeriods\": %d}\n", rank, pod, limit, p, t }' \
      > "$WORK/cgroup.$rank.new" || continue
    [ ! -s "$WORK/cgroup.$rank.new" ] || mv "$WORK/cgroup.$rank.new" "$WORK/cgroup.$rank"
  done
}

collect_cluster() {
  cat "$WORK"/cgroup.? 2> /dev/null | jq -s . > "$WORK/cgroups.json"
  [ -f "$WORK/targets.json" ] || prometheus_targets > "$WORK/targets.json"
  prometheus_answers
  kubectl -n "$NAMESPACE" get tjob "$JOB" -o json > "$WORK/job.json"
  jq -n --arg kubernetes "$(kubectl version -o json 2> /dev/null | jq -r .serverVersion.gitVersion)" --arg helm "$("$CLUSTER" helm version --short 2> /dev/null)" \
    '{kubernetes: $kubernetes, helm: $helm}' > "$WORK/versions.json"
}
