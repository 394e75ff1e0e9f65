#!/usr/bin/env bash
# Jobs end to end on a real Kubernetes: apply, logs, exec, suspend and resume, a killed worker, pods deleted by force, a
# job that grows and shrinks, a lost node, bad manifests, delete.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tests/lib.sh
. tools/dev/lib.sh
. tests/e2e/node.sh
CLUSTER=tools/cluster/cluster
NS=e2e
k() { "$CLUSTER" kubectl -n "$NS" "$@"; }
field() { k get tjob "$1" -o "jsonpath={$2}" 2> /dev/null; }
phase_is() { [ "$(field "$1" .status.phase)" = "$2" ]; }
pods_of() { k get pods -l "training.evenkeel.dev/job-name=$1" --no-headers 2> /dev/null | grep -c . || true; }
no_pods() { [ "$(pods_of "$1")" = 0 ]; }
work=$(mktemp -d)
trap 'rm -rf "$work"; [ -n "${EVENKEEL_KEEP_CLUSTER:-}" ] || "$CLUSTER" down > /dev/null 2>&1' EXIT

start=$SECONDS
check "cluster up" "$CLUSTER" up --nodes 2
check "images" tools/image/build "$CACHE_DIR/images/evenkeel"
check "images loaded" "$CLUSTER" load "$CACHE_DIR"/images/evenkeel/operator.tar "$CACHE_DIR"/images/evenkeel/trainer-cpu.tar
check "helm install --wait" "$CLUSTER" helm upgrade --install evenkeel charts/evenkeel -n evenkeel-system --create-namespace --wait --timeout 120s
check "helm upgrade to itself" "$CLUSTER" helm upgrade evenkeel charts/evenkeel -n evenkeel-system --wait --timeout 120s
"$CLUSTER" kubectl delete namespace "$NS" --ignore-not-found --wait > /dev/null 2>&1
"$CLUSTER" kubectl create namespace "$NS" > /dev/null
# Pods of jobs must fit the strictest level.
"$CLUSTER" kubectl label namespace "$NS" pod-security.kubernetes.io/enforce=restricted > /dev/null
checkpoints=/var/tmp/evenkeel/e2e-checkpoints
rm -rf "$checkpoints"
# volume CLAIM HOST-PATH MODE: a claim on a folder of this machine, which all nodes share.
volume() {
  cat <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec: {capacity: {storage: 1Gi}, accessModes: [$3], persistentVolumeReclaimPolicy: Retain, storageClassName: "", hostPath: {path: $2, type: Directory}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec: {accessModes: [$3], resources: {requests: {storage: 1Gi}}, storageClassName: "", volumeName: $1}
---
YAML
}
"$CLUSTER" kubectl get pv -o name 2> /dev/null | grep '/e2e-' | xargs -r "$CLUSTER" kubectl delete > /dev/null 2>&1
{ volume e2e-data /usr/share/datasets/fashion-mnist ReadOnlyMany
  for name in good pause kill force scale node quiet silence; do
    install -d -o 65532 -g 65532 "$checkpoints/$name"
    volume "e2e-$name" "$checkpoints/$name" ReadWriteMany
  done; } > "$work/volumes.yaml"
check "volumes" k apply -f "$work/volumes.yaml"
all_bound() { [ "$(k get pvc --no-headers 2> /dev/null | grep -vc ' Bound ')" = 0 ]; }
within "volumes are bound" 30 all_bound

job() { # NAME WORKERS EPOCHS-OR-STEPS [CHECKPOINT-CLAIM]
  cat <<YAML
apiVersion: training.evenkeel.dev/v1alpha1
kind: TrainingJob
metadata: {name: $1}
spec:
  workers: {replicas: $2, resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 512Mi}}}
  model: {preset: mlp}
  dataset:
    format: idx
    path: /usr/share/datasets/fashion-mnist
    volume: {persistentVolumeClaim: {claimName: e2e-data, readOnly: true}}
  training: {$3, batchSize: {perReplica: 64}, optimizer: {type: sgd, learningRate: 0.02}}
  checkpoint:
    path: /checkpoints
    volume: {persistentVolumeClaim: {claimName: e2e-${4:-$1}}}
    everySteps: 100
YAML
}

# 1. A job from apply to the end; first step soon; the same count of right answers by an independent evaluator.
job good 2 'epochs: 1' > "$work/good.yaml"
applied=$(date +%s%3N)
check "apply" k apply -f "$work/good.yaml"
first_step() { [ "$(curl_report good | jq -r '.progress.step // 0' 2> /dev/null)" -ge 1 ] 2> /dev/null; }
curl_report() { # through the pod's own address, as the operator does
  local ip; ip=$(k get pod -l "training.evenkeel.dev/job-name=$1,training.evenkeel.dev/role=coordinator,training.evenkeel.dev/current=true" -o 'jsonpath={.items[0].status.podIP}' 2> /dev/null)
  "$CLUSTER" exec curl -sf --max-time 2 "http://$ip:9400/v1/report"
}
within "first committed step" 60 first_step
# A kubelet that is quicker than the API server's node authorizer is refused its volumes, and asks again 15 s later.
echo "apply -> first committed step seen after $(($(date +%s%3N) - applied)) ms; volumes refused by the node authorizer: $(k get events 2> /dev/null | grep -c 'no relationship found')"
within "Running" 30 phase_is good Running
worker=$(k get pods -l training.evenkeel.dev/job-name=good,training.evenkeel.dev/rank=1,training.evenkeel.dev/role=worker -o 'jsonpath={.items[0].metadata.name}')
contains "kubectl logs: JSON lines with the rank" '"rank":1' "$(k logs "$worker")"
contains "kubectl exec" evenkeel-trainer "$(k exec "$worker" -- evenkeel-trainer version)"
equal "no warning of PodSecurity" 0 "$(k get events 2> /dev/null | grep -c 'violates PodSecurity')"
check "kubectl wait --for=condition=Complete" k wait --for=condition=Complete tjob/good --timeout=180s
equal "phase" Succeeded "$(field good .status.phase)"
equal "all samples of the epoch, once" 60000 "$(k get tjob good -o json | jq '[.status.replicas[].consumed] | add')"
last=$(ls -d "$checkpoints"/good/step-* 2> /dev/null | grep -v '\.tmp$' | tail -1)
right=$("$BUILD_DIR/bin/naive_evaluator" "$last/weights.safetensors" /usr/share/datasets/fashion-mnist/t10k-{images-idx3,labels-idx1}-ubyte.gz)
equal "an independent evaluator counts the same right answers" "correct $(k get tjob good -o json | jq '.status.progress.accuracy * 10000 | round') of 10000" "$right"
contains "kubectl get prints the columns" Succeeded "$(k get tjob good)"
contains "kubectl explain" stragglerThreshold "$("$CLUSTER" kubectl explain tjob.spec.balance)"

# 2. Suspend with a checkpoint, resume from it.
job pause 2 'steps: 1200' > "$work/pause.yaml"
k apply -f "$work/pause.yaml" > /dev/null
within "second job runs" 60 phase_is pause Running
k patch tjob pause --type=merge -p '{"spec":{"suspend":true}}' > /dev/null
within "Suspended" 60 phase_is pause Suspended
within "suspended: no pods" 60 no_pods pause
before=$(ls "$checkpoints/pause" | grep -v '\.tmp$' | tail -1 | sed 's/step-0*//')
check "suspend left a checkpoint" test "${before:-0}" -gt 0
k patch tjob pause --type=merge -p '{"spec":{"suspend":false}}' > /dev/null
within "runs again" 60 phase_is pause Running
check "and completes" k wait --for=condition=Complete tjob/pause --timeout=180s
equal "steps in all" 1200 "$(field pause .status.progress.step)"
equal "attempt raised by the resume" 2 "$(field pause .status.attempt)"
equal "no restart counted" 0 "$(field pause .status.restarts.countedTowardsMax)"
equal "no sample lost or twice: consumed = steps x global batch" "$(e=$((1200 / 469)); r=$((1200 % 469)); echo $((e * 60000 + r * 128)))" \
  "$(k get tjob pause -o json | jq '[.status.replicas[].consumed] | add')"

# uids JOB [NAME...]: of the job's pods, but for those of these names, sorted.
uids() {
  local job=$1; shift
  k get pods -l "training.evenkeel.dev/job-name=$job" -o json |
    jq -r --args '.items[].metadata | select(.name as $n | $ARGS.positional | index($n) | not) | .uid' "$@" | sort
}
# samples STEPS: of so many steps of 128, with the short last one of each epoch.
samples() { echo $(($1 / 469 * 60000 + $1 % 469 * 128)); }
# The pod that peers resolve under a rank's name is this one.
holds() { # JOB ROLE RANK POD
  [ "$(k get pods -l "training.evenkeel.dev/job-name=$1,training.evenkeel.dev/role=$2,training.evenkeel.dev/rank=$3,training.evenkeel.dev/current=true" \
    -o 'jsonpath={.items[*].metadata.name}' 2> /dev/null)" = "$4" ]
}
all_joined() { [ "$(k get tjob "$1" -o json | jq -r '.status.conditions[] | select(.type == "Restarting") | .status')" = False ] && phase_is "$1" Running; }

# 3. A worker dies: one incident, one restart, and the end is the same.
job kill 2 'steps: 900' > "$work/kill.yaml"
k apply -f "$work/kill.yaml" > /dev/null
within "third job runs" 60 phase_is kill Running
checkpointed() { ls "$checkpoints/kill" 2> /dev/null | grep -v '\.tmp$' | grep -q step-; }
within "has a checkpoint" 60 checkpointed
pod=$(k get pods -l training.evenkeel.dev/job-name=kill,training.evenkeel.dev/rank=0,training.evenkeel.dev/role=worker -o 'jsonpath={.items[0].metadata.name}')
pid=$(pgrep -f 'evenkeel-trainer worker' | while read -r p; do tr '\0' '\n' < "/proc/$p/environ" 2> /dev/null | grep -qx "EVENKEEL_POD_NAME=$pod" && echo "$p"; done | head -1)
check "SIGKILL to the worker's process" kill -9 "$pid"
check "completes all the same" k wait --for=condition=Complete tjob/kill --timeout=180s
equal "one restart" 1 "$(field kill .status.restarts.total)"
equal "steps in all" 900 "$(field kill .status.progress.step)"
equal "in its first attempt: nobody else was restarted" 1 "$(field kill .status.attempt)"

# 3b. A worker's pod is deleted by force, then the coordinator's: each is replaced alone, and no sample is lost or
# taken twice.
job force 3 'steps: 1500' | sed 's/perReplica: 64/global: 128/' > "$work/force.yaml"
k apply -f "$work/force.yaml" > /dev/null
within "a job of three runs" 60 phase_is force Running
harmed=(force-worker-1-1 force-coordinator-0-1)
kept=$(uids force "${harmed[@]}")
check "a worker's pod is deleted by force" k delete pod force-worker-1-1 --force --grace-period=0
within "the rank gets another pod" 30 holds force worker 1 force-worker-1-2
within "and joins" 90 all_joined force
check "the coordinator's pod is deleted" k delete pod force-coordinator-0-1 --wait=false
within "the coordinator gets another pod" 30 holds force coordinator 0 force-coordinator-0-3
within "and the workers join it" 120 all_joined force
check "the job completes" k wait --for=condition=Complete tjob/force --timeout=300s
equal "in its first attempt" 1 "$(field force .status.attempt)"
equal "two incidents" 2 "$(field force .status.restarts.total)"
equal "of which none counts" 0 "$(field force .status.restarts.countedTowardsMax)"
equal "the others are the pods they were" "$kept" "$(uids force "${harmed[@]}" force-worker-1-2 force-coordinator-0-3)"
equal "no sample lost or twice" "$(samples 1500)" "$(k get tjob force -o json | jq '[.status.replicas[].consumed] | add')"

# 3c. Two pods of two ranks each: a rank that is killed is started again in its pod, and Kubernetes never hears of it.
job pair 2 'steps: 2000' force | sed 's/replicas: 2/replicas: 2, devicesPerReplica: 2/; s/perReplica: 64/global: 128/' > "$work/pair.yaml"
rm -rf "$checkpoints"/force/*
k apply -f "$work/pair.yaml" > /dev/null
within "a job of two pods with two ranks each runs" 60 phase_is pair Running
within "and four ranks take part" 60 takes_part pair 4
kept=$(uids pair)
equal "two worker pods" 2 "$(k get pods -l training.evenkeel.dev/job-name=pair,training.evenkeel.dev/role=worker --no-headers | grep -c .)"
contains "ranks of a pod talk through memory" 'toNext":"shared memory' "$(k logs -l training.evenkeel.dev/job-name=pair,training.evenkeel.dev/role=worker --tail=-1 | grep 'ring connected')"
pod=$(k get pods -l training.evenkeel.dev/job-name=pair,training.evenkeel.dev/role=worker -o 'jsonpath={.items[1].metadata.name}')
# Of the processes of that pod the ranks are those that are not its first.
pid=$(pgrep -f 'evenkeel-trainer worker' | while read -r p; do tr '\0' '\n' < "/proc/$p/environ" 2> /dev/null | grep -qx "EVENKEEL_POD_NAME=$pod" && echo "$p"; done | tail -1)
step=$(curl_report pair | jq -r .progress.step)
check "SIGKILL to a rank" kill -9 "$pid"
restarted() { k logs "$pod" | grep -q 'a rank is started again in its pod'; }
within "it is started again in its pod" 30 restarted
within "and four take part again" 60 takes_part pair 4
check "it trains on" test "$(curl_report pair | jq -r .progress.step)" -gt "${step:-0}"
check "the job completes" k wait --for=condition=Complete tjob/pair --timeout=240s
equal "with the pods it had" "$kept" "$(uids pair)"
equal "no container was restarted" 0 "$(k get pods -l training.evenkeel.dev/job-name=pair -o json | jq '[.items[].status.containerStatuses[].restartCount] | add')"
equal "no restart is counted" 0 "$(field pair .status.restarts.total)"
equal "no sample lost or twice" "$(samples 2000)" "$(k get tjob pair -o json | jq '[.status.replicas[].consumed] | add')"

# 3d. A job grows and shrinks while it runs; in the middle of the shrinking its coordinator is replaced.
job scale 2 'steps: 2500, scaling: Strong' | sed 's/perReplica: 64/global: 128/; s/replicas: 2/replicas: 2, minReplicas: 1, maxReplicas: 3/' > "$work/scale.yaml"
k apply -f "$work/scale.yaml" > /dev/null
within "a scalable job runs" 60 phase_is scale Running
kept=$(uids scale scale-coordinator-0-1)
contains "beyond its range it does not go" 'between minReplicas and maxReplicas' "$(k scale tjob scale --replicas=4 2>&1)"
check "kubectl scale up" k scale tjob scale --replicas=3
members() { curl_report scale | jq -r '[.replicas[] | select(.state == "stepping")] | length' 2> /dev/null; }
has_members() { [ "$(members)" = "$1" ]; }
within "three train" 150 has_members 3
check "kubectl scale down" k scale tjob scale --replicas=2
check "and its coordinator's pod is deleted at once" k delete pod scale-coordinator-0-1 --wait=false
pods_are() { [ "$(k get pods -l "training.evenkeel.dev/job-name=$1" --field-selector=status.phase=Running --no-headers 2> /dev/null | grep -c .)" = "$2" ]; }
within "two train, with another coordinator" 150 has_members 2
within "and the third pod is gone" 90 pods_are scale 3
check "the job completes" k wait --for=condition=Complete tjob/scale --timeout=300s
equal "in its first attempt" 1 "$(field scale .status.attempt)"
equal "the coordinator is the only incident" 1 "$(field scale .status.restarts.total)"
equal "and does not count" 0 "$(field scale .status.restarts.countedTowardsMax)"
equal "with the workers it had" "$kept" "$(comm -12 <(echo "$kept") <(uids scale))"
equal "no sample lost or twice" "$(samples 2500)" "$(field scale .status.progress.samples)"

# 3e. A node is lost, and comes back. With --all, once more: the one that the operator is on.
lose_a_node other
[ "${EVENKEEL_TEST_ALL:-no}" != yes ] || { rm -rf "$checkpoints"/node/*; lose_a_node operator; }

# 4. Bad input: clear words, and nobody else suffers.
contains "a typo is named" 'replicaz' "$(job typo 2 'epochs: 1' | sed 's/replicas/replicaz/' | k apply -f - 2>&1)"
contains "an unknown enum value" 'strategy' "$(job enum 2 'epochs: 1' | sed 's/^spec:/spec:\n  strategy: {type: Telepathy}/' | k apply -f - 2>&1)"
contains "minReplicas > maxReplicas" 'minReplicas' "$(job minmax 2 'epochs: 1' | sed 's/replicas: 2/replicas: 2, minReplicas: 4, maxReplicas: 3/' | k apply -f - 2>&1)"
contains "a name of 50 characters" '49' "$(job "$(printf 'x%.0s' {1..50})" 2 'epochs: 1' | k apply -f - 2>&1)"
job nodata 1 'epochs: 1' good | sed 's|path: /usr/share/datasets/fashion-mnist|path: /nowhere|; /volume: {persistentVolumeClaim: {claimName: e2e-data/d' | k apply -f - > /dev/null
within "missing data set: Failed" 60 phase_is nodata Failed
contains "and says which file" /nowhere "$(k get tjob nodata -o json | jq -r '.status.conditions[] | select(.type == "Failed") | .message')"
equal "with exit code 65" 65 "$(field nodata .status.lastFailure.exitCode)"
equal "without a restart" 0 "$(field nodata .status.restarts.total)"

# 5. The operator is killed while a job runs: no step is lost, no pod touched.
job quiet 2 'steps: 1500' > "$work/quiet.yaml"
k apply -f "$work/quiet.yaml" > /dev/null
within "fourth job runs" 60 phase_is quiet Running
uids=$(k get pods -l training.evenkeel.dev/job-name=quiet -o 'jsonpath={.items[*].metadata.uid}')
check "SIGKILL to the operator" bash -c 'kill -9 $(pgrep -f "[/]usr/bin/evenkeel-operator run" | head -1)'
check "the job completes" k wait --for=condition=Complete tjob/quiet --timeout=180s
equal "in its first attempt" 1 "$(field quiet .status.attempt)"
equal "without a restart" 0 "$(field quiet .status.restarts.total)"
contains "with the pods it had" "${uids%% *}" "$(k get pods -l training.evenkeel.dev/job-name=quiet -o 'jsonpath={.items[*].metadata.uid}')"

# 6. The API server answers nobody for 30 s while a job runs and ends: the workers need no API server, and the operator
# finds the end when it can ask again.
job silence 2 'steps: 2500' > "$work/silence.yaml"
k apply -f "$work/silence.yaml" > /dev/null
within "fifth job runs" 60 phase_is silence Running
uids=$(k get pods -l training.evenkeel.dev/job-name=silence -o 'jsonpath={.items[*].metadata.uid}')
step=$(field silence .status.progress.step)
server=$(pgrep -f '[/]kube-apiserver --' | head -1)
check "the API server is frozen" kill -STOP "$server"
sleep 30
check "and thaws" kill -CONT "$server"
within "it answers again" 60 k get tjob silence
check "the job completes" k wait --for=condition=Complete tjob/silence --timeout=240s
check "it trained on in the silence" test "$(field silence .status.progress.step)" -gt "${step:-0}"
equal "in its first attempt" 1 "$(field silence .status.attempt)"
equal "without a restart" 0 "$(field silence .status.restarts.total)"
contains "with the pods it had" "${uids%% *}" "$(k get pods -l training.evenkeel.dev/job-name=silence -o 'jsonpath={.items[*].metadata.uid}')"

# 7. Delete: nothing of the jobs is left.
check "delete all jobs" k delete tjob --all --timeout=60s
gone() { [ "$(k get pods,services,configmaps,secrets -l training.evenkeel.dev/job-name --no-headers 2> /dev/null | grep -c .)" = 0 ]; }
within "nothing of them is left" 60 gone
check "helm uninstall" "$CLUSTER" helm uninstall evenkeel -n evenkeel-system --wait
contains "the CRD stays" trainingjobs.training.evenkeel.dev "$("$CLUSTER" kubectl get crd -o name)"
echo "end to end: $((SECONDS - start)) s"
finish_tests
