# Layer 3 alone: who may name an account, and what the policy must leave alone. Sourced by rights_test.sh.
jobs=$api/team/trainingjobs
merge=application/merge-patch+json
words='may neither create pods in team nor use that account'
# try USER TEXT JSON: creates the job with this change, without keeping it
create_as() { # USER CHANGE -> the code
  make "$dir/policy.json" "$2"
  AS=$1
  code=$(request POST "$jobs?dryRun=All&fieldValidation=Strict" "$dir/policy.json")
  AS=
}
patch_as() { # USER SUBRESOURCE PATCH [TYPE] -> the code; of the job "held", for good
  printf '%s' "$3" >"$dir/policy.json"
  AS=$1
  code=$(request PATCH "$jobs/held$2" "$dir/policy.json" "${4:-$merge}")
  AS=
}
of() { printf '{"spec": {"workers": {"podOptions": {"serviceAccountName": "%s"}}}}' "$1"; }

create_as ops "$(of admin)"; accepted "who may create pods may name any account" "$code"
create_as user "$(of trainer)"; accepted "who may use the account may name it" "$code"
create_as user "$(of admin)"; refused "but no other" 403 "podOptions.serviceAccountName admin: user $words" "$code"
create_as user '{"spec": {"workers": {"podOptions": {"serviceAccountName": "trainer"}}, "coordinator": {"podOptions": {"serviceAccountName": "trainer"}}}}'
accepted "the same account twice is one account" "$code"
create_as user '{"spec": {"workers": {"podOptions": {"serviceAccountName": "trainer"}}, "coordinator": {"podOptions": {"serviceAccountName": "admin"}}}}'
refused "a second account is not let in by the first" 403 "$words" "$code"
create_as neighbour "$(of admin)"; refused "pods of another namespace do not count" 403 "$words" "$code"
create_as dev '{}'; accepted "without an account nobody is asked" "$code"
create_as dev '{"spec": {"workers": {"podOptions": {"env": [{"name": "LEVEL", "value": "1"}]}}}}'
accepted "nor for other options" "$code"

# Ways in: an edit, a JSON patch, an apply.
make "$dir/policy.json" '{"metadata": {"name": "mine"}, "spec": {"suspend": true}}'
AS=dev
accepted "dev makes a job" "$(request POST "$jobs" "$dir/policy.json")"
of admin >"$dir/policy.json"
refused "an account comes in by no edit" 403 "$words" "$(request PATCH "$jobs/mine" "$dir/policy.json" $merge)"
printf '[{"op": "add", "path": "/spec/coordinator", "value": {"podOptions": {"serviceAccountName": "admin"}}}]' >"$dir/policy.json"
refused "nor by a JSON patch" 403 "$words" "$(request PATCH "$jobs/mine" "$dir/policy.json" application/json-patch+json)"
printf '{"apiVersion": "training.evenkeel.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "mine"}, "spec": {"workers": {"overrides": [{"replicas": [1], "podOptions": {"serviceAccountName": "admin"}}]}}}' >"$dir/policy.json"
refused "nor by an apply" 403 "$words" "$(request PATCH "$jobs/mine?fieldManager=dev&force=true" "$dir/policy.json" application/apply-patch+yaml)"
AS=

# A job that runs under an account already: what would run there may not be exchanged ...
make "$dir/policy.json" '{"metadata": {"name": "held"}, "spec": {"suspend": true, "workers": {"minReplicas": 1, "maxReplicas": 4, "podOptions": {"serviceAccountName": "admin"}}}}'
accepted "the administrator makes a job with an account" "$(request POST "$jobs" "$dir/policy.json")"
patch_as dev "" '{"spec": {"workers": {"image": "registry.example/mine:1"}}}'; refused "another image under that account" 403 "$words" "$code"
patch_as dev "" '{"spec": {"workers": {"podOptions": {"env": [{"name": "LD_PRELOAD", "value": "/x.so"}]}}}}'; refused "another variable" 403 "$words" "$code"
patch_as dev "" '{"spec": {"workers": {"overrides": [{"replicas": [0], "podOptions": {"envFrom": [{"configMapRef": {"name": "c"}}]}}]}}}'; refused "an override" 403 "$words" "$code"
patch_as dev "" '{"spec": {"coordinator": {"podOptions": {"labels": {"a": "b"}}}}}'; refused "options of the coordinator" 403 "$words" "$code"
patch_as ops "" '{"spec": {"workers": {"podOptions": {"labels": {"a": "b"}}}}}'; accepted "who may create pods may" "$code"
# ... and everything else goes on, whoever writes it.
patch_as dev "" '{"metadata": {"labels": {"team": "a"}}}'; accepted "labels of the job" "$code"
patch_as dev "" '{"spec": {"training": {"epochs": 2}}}'; accepted "training, while suspended" "$code"
patch_as dev "" '{"spec": {"workers": {"resources": {"limits": {"cpu": "2"}}}}}'; accepted "resources" "$code"
patch_as queue "" '{"spec": {"suspend": false}}'; accepted "another controller resumes it" "$code"
patch_as queue "" '{"spec": {"suspend": true}}'; accepted "and suspends it" "$code"
patch_as queue "" '{"metadata": {"annotations": {"queue.example/admitted": "yes"}, "finalizers": ["queue.example/done"]}}'; accepted "a finalizer is set" "$code"
owner=$(kubectl -n team create configmap owner -o 'jsonpath={.metadata.uid}')  # one that exists, or the job would be collected
patch_as queue "" "{\"metadata\": {\"ownerReferences\": [{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"name\": \"owner\", \"uid\": \"$owner\"}]}}"; accepted "an owner is set" "$code"
patch_as queue "" '{"metadata": {"finalizers": null, "ownerReferences": null}}'; accepted "both are taken away" "$code"
patch_as queue /status '{"status": {"phase": "Suspended", "attempt": 1, "conditions": [{"type": "Accepted", "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}'
accepted "the status" "$code"
patch_as queue /scale '{"spec": {"replicas": 3}}'; accepted "the scale" "$code"

# Foreground deletion: the garbage collector, and whoever has a finalizer, writes the job once more when the children are gone.
uid=$(kubectl -n team get tjob held -o 'jsonpath={.metadata.uid}')
jq -n --arg uid "$uid" '{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "child", ownerReferences: [
  {apiVersion: "training.evenkeel.dev/v1alpha1", kind: "TrainingJob", name: "held", uid: $uid, controller: true, blockOwnerDeletion: true}]}}' >"$dir/child.json"
kubectl -n team create -f "$dir/child.json" >/dev/null
check "foreground deletion comes to its end" kubectl -n team --as dev delete tjob held --cascade=foreground --wait --timeout=90s
gone() { ! kubectl -n team get configmap child; }
check "and took the children along" until_true 30 gone
make "$dir/policy.json" '{"metadata": {"name": "held", "finalizers": ["queue.example/done"]}, "spec": {"suspend": true, "workers": {"podOptions": {"serviceAccountName": "admin"}}}}'
request POST "$jobs" "$dir/policy.json" >/dev/null
kubectl -n team delete tjob held --wait=false >/dev/null
patch_as queue "" '{"metadata": {"finalizers": null}}'; accepted "the last finalizer of a job that is being deleted is taken away" "$code"
no_job() { ! kubectl -n team get tjob held; }
check "and the job is gone" until_true 30 no_job
kubectl -n team delete tjob mine >/dev/null

# That all this was the policy: without it the first attack gets through. A moment later it is back.
kubectl delete validatingadmissionpolicybinding evenkeel-service-accounts >/dev/null
let_in() { create_as dev "$(of admin)"; [ "$code" = 201 ]; }
check "without the policy any account may be named" until_true 60 let_in
kubectl apply --server-side -f "$dir/chart.yaml" >/dev/null
kept_out() { create_as dev "$(of admin)"; [ "$code" = 403 ]; }
check "with it no more" until_true 60 kept_out
