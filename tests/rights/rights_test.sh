#!/usr/bin/env bash
# Rights, as a real API server and the chart's own objects see them: every attack of attacks.json is refused by the
# layer that it names, with the words that it names, and what must not be refused is not; the operator, under its own
# account, uses the verbs that the chart grants it and no other; its pods pass PodSecurity "restricted" without a word.
#   tests/rights/rights_test.sh [PART...]     parts: attacks policy examples operator (default: all of them)
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tests/lib.sh
bin=${EVENKEEL_BUILD_DIR:-build/dev}/bin
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(attacks policy examples operator)

dir=$(mktemp -d "${TMPDIR:-/tmp}/rights-test.XXXXXX")
operator_pid=
stop_operator() {
  [ -n "$operator_pid" ] || return 0
  kill "$operator_pid" 2>/dev/null || true
  wait "$operator_pid" 2>/dev/null || true
  operator_pid=
}
finish() {
  local status=$?
  stop_operator
  tools/cluster/apiserver-only stop "$dir" >/dev/null 2>&1 || true
  if [ "$TESTS_FAILED" -eq 0 ] && [ $status -eq 0 ]; then rm -rf "$dir"; else echo "logs are kept in $dir"; fi
}
trap finish EXIT

tools/cluster/apiserver-only start "$dir" --owner $$ --controllers garbage-collector-controller,resourcequota-controller -- \
  "--audit-policy-file=$PWD/tests/rights/audit-policy.yaml" --enable-admission-plugins=OwnerReferencesPermissionEnforcement >"$dir/start" ||
  { not_ok "no API server"; finish_tests; exit 1; }
assets=$(dirname "$(readlink "/proc/$(awk '$1 == "kube-apiserver" {print $2}' "$dir/pids")/exe")")
helm=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/evenkeel/helm" -name helm -type f 2>/dev/null | sort | tail -1)
[ -x "$helm" ] || { tools/cluster/cluster assets >/dev/null 2>&1; helm=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/evenkeel/helm" -name helm -type f | sort | tail -1); }
kubectl() { "$assets/kubectl" --kubeconfig "$dir/kubeconfig" --cache-dir "$dir/cache" "$@"; }
url=$(<"$dir/url")
token=$(<"$dir/token")

# request METHOD PATH [FILE [TYPE]]: as $AS, if that is set; prints the HTTP code, the answer lies in $dir/answer
AS=
request() {
  curl --silent --show-error --max-time 60 --cacert "$dir/ca.crt" -H "Authorization: Bearer $token" ${AS:+-H "Impersonate-User: $AS"} \
    -X "$1" -o "$dir/answer" -w '%{http_code}' ${3:+-H "Content-Type: ${4:-application/json}" --data-binary "@$3"} "$url$2" || true
}
said() { jq -r '.message // empty' "$dir/answer" 2>/dev/null || cat "$dir/answer"; }
api=/apis/training.evenkeel.dev/v1alpha1/namespaces
until_true() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}
# refused TEXT CODE WORDS ACTUAL-CODE
refused() {
  if [ "$4" = "$2" ] && grep -qF -- "$3" <<<"$(said)"; then ok "$1"; else not_ok "$1: got $4, $(said | head -c 600), not $2 with '$3'"; fi
}
accepted() { # TEXT ACTUAL-CODE
  case $2 in 200 | 201) ok "$1" ;; *) not_ok "$1: got $2, $(said | head -c 600)" ;; esac
}

for namespace in evenkeel-system team other strict broken limited scoped; do kubectl create namespace "$namespace" >/dev/null; done
for mode in enforce warn audit; do kubectl label namespace strict broken limited scoped "pod-security.kubernetes.io/$mode=restricted" >/dev/null; done
"$helm" template evenkeel charts/evenkeel --namespace evenkeel-system >"$dir/chart.yaml"
kubectl apply --server-side -f "$dir/chart.yaml" >/dev/null
kubectl apply --server-side -f tests/rights/users.yaml >/dev/null
served() { [ "$(request GET "$api/team/trainingjobs")" = 200 ]; }
until_true 60 served || not_ok "TrainingJobs are not served"

# The job that every attack is laid over.
base='{"apiVersion": "training.evenkeel.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "attack"},
  "spec": {"workers": {"replicas": 2}, "model": {"preset": "mlp"}, "dataset": {"format": "idx", "path": "/data"},
           "training": {"epochs": 1, "batchSize": {"global": 64}}, "checkpoint": {"path": "/checkpoints"}}}'
# make FILE JSON: that job with a change
make() { jq -n --argjson base "$base" --argjson change "$2" '$base * $change' >"$1"; }
make "$dir/account.json" '{"spec": {"workers": {"podOptions": {"serviceAccountName": "admin"}}}}'
# A policy is enforced a moment after it was made.
AS=dev
enforced() { [ "$(request POST "$api/team/trainingjobs?dryRun=All" "$dir/account.json")" = 403 ] && grep -q ValidatingAdmissionPolicy "$dir/answer"; }
until_true 60 enforced || not_ok "the policy is not enforced: $(said)"
AS=

for part in "${parts[@]}"; do . "tests/rights/$part.sh"; done
finish_tests
