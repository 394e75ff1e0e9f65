# A node is lost in the middle of a job and comes back. Sourced by e2e_test.sh; needs its volumes, job() and words.

node_of() { "$CLUSTER" kubectl get pods -A -l "$1" -o 'jsonpath={.items[0].spec.nodeName}'; }
# uids_on NODE JOB: of the pods there that are not on their way out.
uids_on() {
  k get pods -l "training.evenkeel.dev/job-name=$2" -o json |
    jq -r --arg node "$1" '.items[] | select(.spec.nodeName == $node and .metadata.deletionTimestamp == null) | .metadata.uid' | sort
}
node_is() { [ "$("$CLUSTER" kubectl get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]; }
none_on() { [ -z "$(k get pods -l "training.evenkeel.dev/job-name=$2" -o json | jq -r --arg node "$1" '.items[] | select(.spec.nodeName == $node) | .metadata.name')" ]; }
# The ranks that take part, by the coordinator.
takes_part() { [ "$(curl_report "$1" | jq -r '[.replicas[] | select(.state == "stepping")] | length' 2> /dev/null)" = "$2" ]; }
elsewhere() { # JOB NODE WORKERS: every rank and the coordinator have a pod that runs on another node
  [ "$(k get pods -l "training.evenkeel.dev/job-name=$1,training.evenkeel.dev/current=true" -o json |
    jq -r --arg node "$2" '[.items[] | select(.spec.nodeName != $node and .status.phase == "Running" and .metadata.deletionTimestamp == null)] | length')" = $(($3 + 1)) ]
}

# lose_a_node other|operator: the node that has no operator on it, or the one that has, ends as in a power cut. Nothing is set for it in the job: Kubernetes finds the node
# silent after 16 s (here) and its pods gone after 30 more, and they are replaced elsewhere in the same incident.
lose_a_node() {
  local lost=node-1 other=node-2 kept started step gone
  # Slow enough to be still at it after a minute, on any machine.
  job node 3 'steps: 100000' | sed 's/perReplica: 64/global: 128/; s/limits: {memory/limits: {cpu: 100m, memory/' > "$work/node.yaml"
  k apply -f "$work/node.yaml" > /dev/null
  within "a job of three runs on two nodes" 90 phase_is node Running
  within "and steps" 30 takes_part node 3
  [ "$1:$(node_of app.kubernetes.io/component=operator)" != other:node-1 ] && [ "$1:$(node_of app.kubernetes.io/component=operator)" != operator:node-2 ] || lost=node-2 other=node-1
  kept=$(uids_on "$other" node)
  gone=$(k get pods -o json -l training.evenkeel.dev/job-name=node | jq -r --arg node "$lost" '[.items[] | select(.spec.nodeName == $node) | .metadata.name] | join(" ")')
  check "some of its pods lie on $lost" test -n "$gone"
  step=$(curl_report node | jq -r .progress.step)
  started=$SECONDS
  check "$lost is lost" "$CLUSTER" lose "$lost"
  within "every rank has a pod elsewhere" "$([ "$1" = other ] && echo 80 || echo 150)" elsewhere node "$lost" 3
  within "and takes part" 40 takes_part node 3
  within "and the incident is over" 40 all_joined node
  echo "lost with $lost: $gone; whole again after $((SECONDS - started)) s"
  check "it trains on" test "$(curl_report node | jq -r .progress.step)" -gt "$step"
  equal "the pods on the other node are the pods they were" "$kept" "$(comm -12 <(echo "$kept") <(uids_on "$other" node))"
  equal "in its first attempt" 1 "$(field node .status.attempt)"
  equal "one incident, however many pods" 1 "$(field node .status.restarts.total)"
  equal "which does not count" 0 "$(field node .status.restarts.countedTowardsMax)"
  k patch tjob node --type=merge -p '{"spec":{"suspend":true}}' > /dev/null
  within "it can be suspended" 60 phase_is node Suspended
  equal "no sample lost or twice" "$(samples "$(field node .status.progress.step)")" "$(k get tjob node -o json | jq '[.status.replicas[].consumed] | add')"
  check "the node comes back" "$CLUSTER" up --nodes 2
  within "and is Ready" 60 node_is "$lost" True
  within "and lets the lost pods go" 90 none_on "$lost" node
  check "the job is deleted" k delete tjob node --timeout=60s
}
