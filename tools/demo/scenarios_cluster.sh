# Scenarios that need nodes and pods: a job that grows, a node that is lost. Sourced by tools/dev/demo.

grown_job() { # NAME WORKERS CPU SIZE-RANGE BATCH: never ends by itself
  cat <<YAML
apiVersion: training.evenkeel.dev/v1alpha1
kind: TrainingJob
metadata: {name: $1}
spec:
  workers: {replicas: $2$4, resources: {requests: {cpu: $3, memory: 128Mi}, limits: {cpu: $3, memory: 512Mi}}}
  model: {preset: mlp}
  dataset: {format: idx, path: /usr/share/datasets/fashion-mnist, volume: {persistentVolumeClaim: {claimName: fashion-mnist, readOnly: true}}}
  training: {steps: 1000000, batchSize: {$5}, optimizer: {type: sgd, learningRate: 0.02}}
  checkpoint: {path: /checkpoints, volume: {persistentVolumeClaim: {claimName: fashion-mnist-checkpoints}}, everySteps: 250}
YAML
}
kn() { kubectl -n "$NAMESPACE" "$@"; }
status_of() { kn get tjob "$scenario" -o json | jq -r ".status | $1"; }
# The coordinator's report, through its pod's address; into FILE.
report_of() {
  local ip; ip=$(kn get pods -l "training.evenkeel.dev/job-name=$scenario,training.evenkeel.dev/role=coordinator,training.evenkeel.dev/current=true" -o 'jsonpath={.items[0].status.podIP}' 2> /dev/null)
  "$CLUSTER" exec curl -sf --max-time 2 "http://$ip:9400/v1/report" > "$WORK/report.new" 2> /dev/null && mv "$WORK/report.new" "$WORK/live.json"
}
live() { report_of && jq -r "$1" "$WORK/live.json"; }
# until_true SECONDS TEXT COMMAND...
until_true() {
  local end=$((SECONDS + $1)) text=$2; shift 2
  until "$@"; do [ $SECONDS -lt $end ] || { kn get pods -o wide >&2; die "$text: not within the time"; }; sleep 1; done > /dev/null 2>&1
}
train() { [ "$(live '[.replicas[] | select(.state == "stepping")] | length')" = "$1" ]; }
stepped() { [ "$(live .progress.step)" -ge "$1" ]; }
# Samples a second, by the counter, over ten seconds.
pace_now() {
  local from at; from=$(live .progress.samples) at=$(now_ms)
  sleep 10
  calc "($(live .progress.samples) - $from) * 1000 / ($(now_ms) - $at)"
}
pods_on() { kn get pods -l "training.evenkeel.dev/job-name=$scenario" -o json | jq -r --arg node "$1" '.items[] | select(.metadata.deletionTimestamp == null and ($node == "" or .spec.nodeName == $node)) | .metadata.name' | sort; }
said() { say "    verdict    $(live .diagnosis.verdict)"; say "    sentence   $(live .diagnosis.message)"; }
# The job is stopped where it stands; what it consumed is what its steps hold.
stopped_and_counted() {
  kn patch tjob "$scenario" --type=merge -p '{"spec":{"suspend":true}}' > /dev/null
  until_true 60 "suspended" [ "$(status_of .phase)" != Running ]
  until_true 60 "suspended" is_phase Suspended
  [ "$(status_of '[.replicas[].consumed] | add')" = "$(status_of .progress.samples)" ]
}
is_phase() { [ "$(status_of .phase)" = "$1" ]; }
written() {
  [ -z "$report" ] || jq -n --slurpfile live "$WORK/live.json" --argjson job "$(kn get tjob "$scenario" -o json)" --arg scenario "$scenario" --arg commit "$(git rev-parse HEAD 2> /dev/null)" --argjson seed "$seed" --argjson more "$1" \
    '{suite: "demo", scenario: $scenario, commit: $commit, seed: $seed, bars: [], explain: $live[0], job: $job} + $more' > "$report"
}

scale_up() {
  local before after
  grown_job "$scenario" 2 200m ', minReplicas: 1, maxReplicas: 4' 'perReplica: 256' | kn apply -f - >&2
  until_true 90 "two workers train" train 2
  until_true 60 "twenty steps" stepped 20
  before=$(pace_now)
  say "two workers: $before samples/s"; said
  local kept; kept=$(pods_on "")
  say "injected: kubectl scale tjob $scenario --replicas=4"
  local asked=$SECONDS; kn scale tjob "$scenario" --replicas=4 >&2
  until_true 120 "four workers train" train 4
  say "four train $((SECONDS - asked)) s later"
  sleep 5
  after=$(pace_now)
  say "four workers: $after samples/s, $(calc "$after / $before") times as many"; said
  local same; same=$(comm -12 <(echo "$kept") <(pods_on "") | wc -l)
  stopped_and_counted || { say "NO   samples were lost or doubled"; return 1; }
  written "{\"samplesPerSecondBefore\": $before, \"samplesPerSecondAfter\": $after}"
  [ "$same" = 3 ] && [ "$(status_of .restarts.total)" = 0 ] && [ "$(status_of .attempt)" = 1 ] || { say "NO   somebody was restarted"; return 1; }
  [ "$(calc "($after > 1.3 * $before)")" = 1 ] || { say "NO   it did not become faster"; return 1; }
  say "yes  it grew while it ran: no restart, the three pods are the pods they were, every sample once"
}

lose_a_node() {
  local lost=node-1 step began gone kept
  grown_job "$scenario" 3 150m '' 'global: 128' | kn apply -f - >&2
  until_true 90 "three workers train" train 3
  until_true 60 "twenty steps" stepped 20
  [ "$(kubectl get pods -A -l app.kubernetes.io/component=operator -o 'jsonpath={.items[0].spec.nodeName}')" != node-1 ] || lost=node-2
  gone=$(pods_on "$lost") step=$(live .progress.step)
  kept=$(comm -23 <(pods_on "") <(echo "$gone"))
  [ -n "$gone" ] || die "no pod of the job lies on $lost"
  say "injected: $lost ends as in a power cut, at step $step; on it: $(echo $gone)"
  began=$SECONDS
  "$CLUSTER" lose "$lost" > /dev/null 2>&1
  until_true 120 "every rank has a pod elsewhere and trains" whole_without "$lost"
  until_true 60 "the incident is over" is_phase Running
  say "all three train again after $((SECONDS - began)) s, at step $(live .progress.step)"; said
  local same; same=$(comm -12 <(echo "$kept") <(pods_on "") | grep -c .)
  stopped_and_counted || { say "NO   samples were lost or doubled"; return 1; }
  written "{\"lostNode\": \"$lost\", \"secondsUntilWhole\": $((SECONDS - began))}"
  [ "$same" = "$(grep -c . <<< "$kept")" ] && [ "$(status_of .restarts.total)" = 1 ] && [ "$(status_of .restarts.countedTowardsMax)" = 0 ] && [ "$(status_of .attempt)" = 1 ] ||
    { say "NO   more was restarted than what was lost: $(status_of '.restarts | tostring')"; return 1; }
  say "yes  one incident that does not count, no other pod touched, every sample once"
  [ "$keep" != yes ] || "$CLUSTER" up --nodes 2
}
whole_without() {
  [ "$(kn get pods -l "training.evenkeel.dev/job-name=$scenario,training.evenkeel.dev/current=true" -o json |
    jq --arg node "$1" '[.items[] | select(.spec.nodeName != $node and .status.phase == "Running")] | length')" = 4 ] && train 3
}

cluster_scenario() {
  inside() { "$CLUSTER" exec "$@"; }
  cluster_ready
  namespace_ready
  case $1 in scale-up) scale_up ;; lose-a-node) lose_a_node ;; esac
}
