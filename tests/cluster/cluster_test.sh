#!/usr/bin/env bash
# The test cluster itself: a start that is killed is repaired, a second `up` changes nothing, pods get DNS, logs, exec,
# CPU limits and the API, and `down`, even one that was killed, leaves nothing. Needs root. Has a name of its own, so it
# runs beside a cluster that is up.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CLUSTER=$HERE/../../tools/cluster/cluster
WORK=$(mktemp -d /tmp/evenkeel-cluster-test.XXXXXX)
export EVENKEEL_CLUSTER_NAME=test-$$ EVENKEEL_CLUSTER_STATE=$WORK/state
STATE=$EVENKEEL_CLUSTER_STATE/$EVENKEEL_CLUSTER_NAME
passed=0 failed=0

check() { # "what must hold" COMMAND...
  local what=$1
  shift
  if "$@" >"$WORK/out" 2>&1; then
    passed=$((passed + 1)) && printf 'ok    %s\n' "$what"
  else
    failed=$((failed + 1)) && printf 'FAIL  %s\n' "$what"
    tail -20 "$WORK/out" | sed 's/^/      /'
  fi
}

# Everything on the host that a cluster could leave behind. A folder that does not exist holds nothing.
host_footprint() {
  echo "links:" && ip -o link | awk '{print $2}' | sort
  echo "namespaces:" && ip netns list | awk '{print $1}' | sort
  echo "mounts:" && awk '{print $5}' /proc/self/mountinfo | sort
  echo "cgroups:" && find /sys/fs/cgroup -maxdepth 3 -type d -path '*/k8s.io*' | sort
  echo "shim sockets:" && folder_content /run/containerd/s
  echo "pod logs:" && folder_content /var/log/containers && folder_content /var/log/pods
  echo "addresses:" && folder_content /var/lib/cni/results
  echo "rules:" && (iptables-save 2>/dev/null || true) | sed -e '/^#/d' -e 's/\[.*\]//' | sort
}
folder_content() { [[ ! -d $1 ]] || ls "$1" | sort; }

# What is there now and was not there before.
footprint_is_as_before() {
  local more
  more=$(host_footprint | grep -vxFf "$WORK/before" || true)
  [[ -z $more ]] || { echo "left behind: $more" && false; }
}
no_process_mentions_the_state() { ! pgrep -af -- "$STATE"; }
state_is_gone() { [[ ! -e $STATE ]] || { find "$STATE" | head && false; }; }

kubectl() { "$CLUSTER" kubectl "$@"; }
in_pod() { kubectl exec "$pod" -- bash -c "$1"; }
process_ids() { cat "$STATE"/run/*; }

interrupted() { # SECONDS COMMAND...: runs it and kills it, with all the helpers it runs at that moment, after a while
  local seconds=$1 pid
  shift
  setsid "$@" >/dev/null 2>&1 &
  pid=$!
  sleep "$seconds"
  kill -KILL -- "-$pid" 2>/dev/null || return 1
  wait "$pid" 2>/dev/null || true
}

nodes_are_ready() { (($(kubectl get nodes --no-headers | grep -cw Ready) == 2)); }
# Told by what was done, not by the clock: a loaded machine is not a fault.
second_up_restarts_nothing() {
  process_ids >"$WORK/ids" && "$CLUSTER" up 2>&1 | grep 'checked in' && diff "$WORK/ids" <(process_ids)
}
pods_are_on_two_nodes() {
  (($(kubectl get pods -l app=web -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l) == 2))
}
name_resolves_to_three_addresses() {
  for _ in $(seq 20); do
    (($(in_pod 'getent ahostsv4 web.default.svc.cluster.local' | awk '{print $1}' | sort -u | wc -l) == 3)) && return
    sleep 0.5
  done
  return 1
}
logs_say_hello() { kubectl logs "$pod" | grep -qx "hello from $pod"; }
limit_is_visible() { # 250m of a 100 ms period, in the words of cgroup v1 or v2
  in_pod 'cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cat /sys/fs/cgroup/cpu.max' | grep -qE '^25000( 100000)?$'
}
api_answers_the_pods_token() {
  in_pod 'cd /var/run/secrets/kubernetes.io/serviceaccount
    printf "GET /api HTTP/1.1\r\nHost: kubernetes.default.svc\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n" "$(cat token)" |
    openssl s_client -quiet -verify_quiet -verify_return_error -CAfile ca.crt -connect kubernetes.default.svc:443 2>/dev/null' |
    grep -q '"kind": *"APIVersions"'
}
loading_again_changes_nothing() { # an import would write its log again
  touch "$WORK/moment" && "$CLUSTER" load "$archive" &&
    [[ -e $STATE/logs/node-1-import.log && -z $(find "$STATE"/logs/*-import.log -newer "$WORK/moment") ]]
}
a_dead_kubelet_is_replaced() {
  kill -KILL "$(cut -d' ' -f1 "$STATE/run/node-2-kubelet")" && "$CLUSTER" up && nodes_are_ready
}
down_is_refused_inside() { ! "$CLUSTER" exec "$CLUSTER" down && kubectl get --raw /readyz; }

finish() {
  "$CLUSTER" down >/dev/null 2>&1 || true
  rm -rf "$WORK"
}
trap finish EXIT

host_footprint >"$WORK/before"
archive=${XDG_CACHE_HOME:-$HOME/.cache}/evenkeel/images/debian-base-12.tar
"$CLUSTER" assets
check "a start can be killed in the middle" interrupted 3 "$CLUSTER" up
check "up after a killed start" "$CLUSTER" up
check "two nodes are ready" nodes_are_ready
check "a second up restarts nothing" second_up_restarts_nothing
check "load" "$CLUSTER" load "$archive"
check "loading the same image again changes nothing" loading_again_changes_nothing
check "a deployment of three pods is applied" kubectl apply -f "$HERE/pods.yaml"
check "its pods become ready" kubectl rollout status deployment/web --timeout=180s
check "its pods are on two nodes" pods_are_on_two_nodes
pod=$(kubectl get pods -l app=web -o jsonpath='{.items[0].metadata.name}')
check "a headless name resolves to three addresses" name_resolves_to_three_addresses
check "logs" logs_say_hello
check "the CPU limit is visible inside" limit_is_visible
check "the API server answers a pod's token" api_answers_the_pods_token
check "a dead kubelet is replaced by up" a_dead_kubelet_is_replaced
check "down is refused inside the cluster" down_is_refused_inside
check "a stop can be killed in the middle" interrupted 0.5 "$CLUSTER" down
check "down after a killed down" "$CLUSTER" down
check "down left no process" no_process_mentions_the_state
check "down left no state" state_is_gone
check "down left no link, namespace, mount, cgroup, socket or rule" footprint_is_as_before
check "down when there is nothing" "$CLUSTER" down
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
