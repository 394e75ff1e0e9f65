# The operator under the chart's own account: a run in which every verb has its use, then the audit log beside the
# rules. Sourced by rights_test.sh.
account=system:serviceaccount:evenkeel-system:evenkeel

start_operator() { # KUBECONFIG CHART ARGUMENTS...; what is said of leaders is as in the chart
  local config=$1 leader
  mapfile -t leader < <(grep -oE -- '--(leader|lease|renew|retry)[a-z-]*(=[^ "]+)?' "$2")
  shift 2
  "$bin/evenkeel-operator" run --kubeconfig "$config" --metrics-address 127.0.0.1:0 --trainer-image trainer:test "${leader[@]}" "$@" >>"$dir/operator.log" 2>&1 &
  operator_pid=$!
}
operator_config() { # ACCOUNT FILE
  sed "s|^    token: .*|    token: $(kubectl -n evenkeel-system create token "$1" --duration=2h)|" "$dir/kubeconfig-token" >"$2"
}
# job NAMESPACE NAME SPEC-CHANGE
job() { make "$dir/job.json" "{\"metadata\": {\"name\": \"$2\"}, \"spec\": $3}" && kubectl -n "$1" create -f "$dir/job.json" >/dev/null; }
edit() { kubectl -n "$1" patch tjob "$2" --type=merge -p "{\"spec\": $3}" >/dev/null; }
current_pods() { kubectl -n "$1" get pods -l "training.evenkeel.dev/job-name=$2,training.evenkeel.dev/current=true" -o name 2>/dev/null | wc -l; }
has_pods() { [ "$(current_pods "$1" "$2")" = "$3" ]; }
condition_is() { # NAMESPACE JOB TYPE STATUS
  [ "$(kubectl -n "$1" get tjob "$2" -o "jsonpath={.status.conditions[?(@.type==\"$3\")].status}")" = "$4" ]
}
pod_status() { # NAMESPACE POD STATUS
  kubectl -n "$1" patch pod "$2" --subresource=status --type=merge -p "{\"status\": $3}" >/dev/null
}
container='"name": "trainer", "image": "x", "imageID": "", "ready": false, "restartCount": 0'
run_pods() { # NAMESPACE JOB
  local pod
  for pod in $(kubectl -n "$1" get pods -l "training.evenkeel.dev/job-name=$2" -o 'jsonpath={.items[*].metadata.name}'); do
    pod_status "$1" "$pod" "{\"phase\": \"Running\", \"podIP\": \"127.0.0.1\", \"podIPs\": [{\"ip\": \"127.0.0.1\"}], \"containerStatuses\": [{$container, \"state\": {\"running\": {\"startedAt\": \"2026-01-01T00:00:00Z\"}}}]}"
  done
}
end_pod() { # NAMESPACE POD PHASE CODE
  pod_status "$1" "$2" "{\"phase\": \"$3\", \"containerStatuses\": [{$container, \"state\": {\"running\": null, \"terminated\": {\"exitCode\": $4, \"reason\": \"Ended\", \"startedAt\": \"2026-01-01T00:00:00Z\", \"finishedAt\": \"2026-01-01T00:01:00Z\"}}}]}"
}

operator_config evenkeel "$dir/operator.kubeconfig"
start_operator "$dir/operator.kubeconfig" "$dir/chart.yaml"

# Pods of every kind, in a namespace that warns.
every_option='{"workers": {"podOptions": {
  "labels": {"team": "a"}, "annotations": {"note": "x"}, "nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": {}},
  "env": [{"name": "LEVEL", "value": "1"}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
  "envFrom": [{"prefix": "P_", "configMapRef": {"name": "c"}}], "imagePullSecrets": [{"name": "pull"}], "serviceAccountName": "trainer",
  "tolerations": [{"key": "k", "operator": "Exists"}],
  "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"team": "a"}}}],
  "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000, "supplementalGroups": [5]},
  "volumes": [{"name": "a", "emptyDir": {"medium": "Memory"}}, {"name": "b", "configMap": {"name": "c"}}, {"name": "d", "secret": {"secretName": "s"}},
    {"name": "e", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "f", "csi": {"driver": "x.example"}},
    {"name": "g", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}],
  "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b", "readOnly": true}, {"name": "g", "mountPath": "/g", "subPath": "x"}]}},
  "coordinator": {"podOptions": {"labels": {"team": "a"}}},
  "dataset": {"volume": {"persistentVolumeClaim": {"claimName": "data", "readOnly": true}}},
  "checkpoint": {"volume": {"persistentVolumeClaim": {"claimName": "checkpoints"}}}}'
job strict plain '{"workers": {"minReplicas": 1, "maxReplicas": 4}}'
job strict ranks '{"workers": {"devicesPerReplica": 2, "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}}'
job strict options "$every_option"
for name in plain ranks options; do within "pods of $name" 60 has_pods strict $name 3; done

pod_warnings() { # POD -> what the API server warns of when such a pod is made
  kubectl -n strict get pod "$1" -o json |
    jq 'del(.status, .spec.nodeName, .metadata.uid, .metadata.resourceVersion, .metadata.creationTimestamp, .metadata.managedFields) | .metadata.name += "-again"' |
    kubectl -n strict create --dry-run=server -f - 2>&1 >/dev/null
}
for pod in $(kubectl -n strict get pods -o 'jsonpath={.items[*].metadata.name}'); do
  equal "PodSecurity restricted says nothing to $pod" "" "$(pod_warnings "$pod" || echo refused)"
done
loose=$(kubectl -n other label namespace other pod-security.kubernetes.io/warn=restricted >/dev/null; kubectl -n other run loose --image=x --dry-run=server 2>&1)
contains "and does warn of another pod" "would violate PodSecurity" "$loose"

# What the operator does in a job's life.
run_pods strict plain
edit strict plain '{"workers": {"replicas": 3}}'
within "scaled up" 60 has_pods strict plain 4
hinted() { [ "$(kubectl -n strict get pods -l training.evenkeel.dev/job-name=plain,training.evenkeel.dev/role=coordinator -o 'jsonpath={.items[0].metadata.annotations.training\.evenkeel\.dev/wanted}')" = 3 ]; }
within "the coordinator's pod is told" 60 hinted
end_pod strict plain-worker-1-1 Failed 1
replaced() { has_pods strict plain 4 && ! kubectl -n strict get pod plain-worker-1-1; }
within "a worker is replaced" 60 replaced
kubectl -n strict patch service plain --type=merge -p '{"spec": {"selector": {"app": "mine"}, "publishNotReadyAddresses": false}}' >/dev/null
repaired() { [ "$(kubectl -n strict get service plain -o json | jq -r '.spec | "\(.selector.app) \(.selector["training.evenkeel.dev/current"]) \(.publishNotReadyAddresses)"')" = "null true true" ]; }
within "an edited Service is put right" 60 repaired
for round in 1 2; do
  edit strict plain '{"suspend": true}'
  within "suspended, time $round" 60 condition_is strict plain Suspended True
  edit strict plain '{"suspend": false}'
  within "resumed, time $round" 60 has_pods strict plain 4
done
series() { [ "$(kubectl -n strict get events.events.k8s.io -o json | jq '[.items[] | select(.reason == "Suspended" and .series.count >= 2)] | length')" -ge 1 ]; }
within "what happens twice is one event with a count" 60 series
job strict ends '{"cleanup": {"ttlSecondsAfterFinished": 0}}'
within "pods of ends" 60 has_pods strict ends 3
run_pods strict ends
end_pod strict ends-coordinator-0-1 Succeeded 0
ended() { ! kubectl -n strict get tjob ends; }
within "a finished job is deleted when its time is up" 60 ended
kubectl -n strict create configmap clash-config-1 >/dev/null
job strict clash '{}'
within "a stranger's ConfigMap is a condition" 60 condition_is strict clash NameConflict True
equal "and stays" "" "$(kubectl -n strict get configmap clash-config-1 -o 'jsonpath={.metadata.labels}')"

# Examples whose words come from the operator.
for file in examples/broken/*.yaml; do
  words=$(sed -n 's/^# status: //p' "$file")
  [ -n "$words" ] || continue
  name=$(basename "$file" .yaml)
  namespace=broken
  ! grep -q '^kind: ResourceQuota' "$file" || namespace=limited
  kubectl -n $namespace apply -f "$file" >/dev/null || { not_ok "broken/$name is not accepted"; continue; }
  read -r type reason message <<<"$words"
  tells() { kubectl -n $namespace get tjob "$name" -o "jsonpath={.status.conditions[?(@.type==\"$type\")]}" | jq -e --arg reason "$reason" --arg message "$message" '.reason == $reason and (.message | startswith($message))'; }
  within "status of broken/$name" 60 tells || kubectl -n $namespace get tjob "$name" -o 'jsonpath={.status.conditions}' || true
done
equal "nothing was denied to the operator" "" "$(jq -r --arg user $account 'select(.user.username == $user and .annotations["authorization.k8s.io/decision"] == "forbid") | "\(.verb) \(.objectRef.resource)/\(.objectRef.subresource // "") \(.responseStatus.message // "")"' "$dir/audit.log" | sort -u)"
equal "no pod of its violated PodSecurity" 0 "$(jq -r --arg user $account 'select(.user.username == $user) | .annotations["pod-security.kubernetes.io/audit-violations"] // empty' "$dir/audit.log" | grep -c . || true)"
stop_operator

# One read has no use on a good day: the job itself, live, when own writes do not come back by the watch. So: no watch.
kubectl get clusterrole evenkeel -o json | jq '(.rules[] | select(.resources | index("pods")).verbs) -= ["watch"]' | kubectl replace -f - >/dev/null
start_operator "$dir/operator.kubeconfig" "$dir/chart.yaml"
job strict blind '{}'
looked() { [ -n "$(jq -c --arg user $account 'select(.user.username == $user and .verb == "get" and .objectRef.resource == "trainingjobs" and .objectRef.name == "blind")' "$dir/audit.log")" ]; }
within "an operator that sees nothing asks" 90 looked
kubectl apply --server-side --force-conflicts -f "$dir/chart.yaml" >/dev/null
within "and goes on when it sees again" 90 has_pods strict blind 3
blind_pods() { kubectl -n strict get pods -l training.evenkeel.dev/job-name=blind -o name | wc -l; }
denied() { [ -n "$(jq -c --arg user $account 'select(.user.username == $user and .annotations["authorization.k8s.io/decision"] == "forbid" and .verb == "watch")' "$dir/audit.log")" ]; }
check "the log shows what was denied to it" denied
equal "without a pod too many" 3 "$(blind_pods)"
stop_operator

# The verbs that were used, beside those that are granted.
grants() { # ROLE... (json on stdin): "group resource verb"
  jq -r '.rules[] | .apiGroups[] as $group | .resources[] as $resource | .verbs[] | "\($group) \($resource) \(.)"' | sort -u
}
uses() { # ACCOUNT NAMESPACE-OR-EMPTY
  jq -r --arg user "$1" 'select(.user.username == $user and .objectRef != null and .annotations["authorization.k8s.io/decision"] != "forbid")
    | "\(.objectRef.apiGroup // "") \(.objectRef.resource)\(if .objectRef.subresource then "/" + .objectRef.subresource else "" end) \(.verb)"' "$dir/audit.log" | sort -u
}
{ kubectl get clusterrole evenkeel -o json | grants; kubectl -n evenkeel-system get roles -o json | jq '{rules: [.items[].rules[]]}' | grants; } | sort -u >"$dir/granted"
uses $account >"$dir/used"
# Asked by the admission of blockOwnerDeletion, in no request of the operator's own: the pods above were made under it.
printf 'training.evenkeel.dev trainingjobs/finalizers update\n' >"$dir/indirect"
equal "every verb that was used is granted" "" "$(comm -23 "$dir/used" "$dir/granted")"
equal "every verb that is granted was used" "$(<"$dir/indirect")" "$(comm -13 "$dir/used" "$dir/granted")"
equal "nothing else was asked for" "" "$(jq -r --arg user $account 'select(.user.username == $user and .objectRef == null) | .requestURI' "$dir/audit.log" | sort -u | grep -vxE '/version' || true)"
uid=$(kubectl -n strict get tjob plain -o 'jsonpath={.metadata.uid}')
owned() { # FINALIZERS-RIGHT: a ConfigMap that holds up the deletion of a job, made by somebody who may only make ConfigMaps
  jq -n --arg uid "$uid" '{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "owned", ownerReferences: [
    {apiVersion: "training.evenkeel.dev/v1alpha1", kind: "TrainingJob", name: "plain", uid: $uid, controller: true, blockOwnerDeletion: true}]}}' |
    kubectl -n strict --as maker create --dry-run=server -f - 2>&1
}
kubectl -n strict create role maker --verb=create --resource=configmaps >/dev/null
kubectl -n strict create rolebinding maker --role=maker --user=maker >/dev/null
contains "trainingjobs/finalizers is what blockOwnerDeletion needs" "cannot set blockOwnerDeletion" "$(owned || true)"

# rbac.scope Namespace: Roles in the namespaces that are watched, nothing in the cluster.
"$helm" template scoped charts/evenkeel --namespace evenkeel-system --set rbac.scope=Namespace --set 'operator.watchNamespaces={scoped}' \
  --set crds.enabled=false --set admissionPolicy.enabled=false >"$dir/scoped.yaml"
equal "rbac.scope Namespace asks for nothing in the cluster" 0 "$(grep -c '^kind: ClusterRole' "$dir/scoped.yaml" || true)"
kubectl apply --server-side -f "$dir/scoped.yaml" >/dev/null
operator_config scoped-evenkeel "$dir/scoped.kubeconfig"
start_operator "$dir/scoped.kubeconfig" "$dir/scoped.yaml" --namespace scoped
job other outside '{}'
job scoped inside '{}'
within "a job in a watched namespace gets its pods" 60 has_pods scoped inside 3
equal "a job elsewhere gets no status" "" "$(kubectl -n other get tjob outside -o 'jsonpath={.status}')"
stop_operator
equal "nothing was denied to the scoped operator" "" "$(jq -r 'select(.user.username == "system:serviceaccount:evenkeel-system:scoped-evenkeel" and .annotations["authorization.k8s.io/decision"] == "forbid") | "\(.verb) \(.requestURI)"' "$dir/audit.log" | sort -u)"
