#!/usr/bin/env bash
# A real API server judges what C++ judges in contract/job/corpus_test.cpp: the manifests of tests/manifests, with the
# same verdict. Then the things that only a server can show: explain, columns, scale, and the status of an object that
# was stored under a looser schema.
#   tests/crd/crd_test.sh [--crd FILE | --operator PROGRAM]     default: build/dev/bin/evenkeel-operator
set -euo pipefail
cd "$(dirname "$0")/../.."

operator=${EVENKEEL_BUILD_DIR:-build/dev}/bin/evenkeel-operator
crd=
while [ $# -gt 0 ]; do
  case $1 in
    --crd) crd=$2; shift 2 ;;
    --operator) operator=$2; shift 2 ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 64 ;;
  esac
done

dir=$(mktemp -d "${TMPDIR:-/tmp}/crd-test.XXXXXX")
finish() { tools/cluster/apiserver-only stop "$dir" >/dev/null 2>&1 || true; rm -rf "$dir"; }
trap finish EXIT
[ -n "$crd" ] || { "$operator" crd >"$dir/crd.yaml"; crd=$dir/crd.yaml; }

passed=0
failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); printf 'FAILED %s\n' "$*"; }
check() { # WORDS COMMAND...: passes if the command does
  local words=$1
  shift
  if "$@" >"$dir/check" 2>&1; then ok; else bad "$words"; sed 's/^/    /' "$dir/check" | head -20; fi
}

tools/cluster/apiserver-only start "$dir" --owner $$ >"$dir/start"
assets=$(dirname "$(readlink "/proc/$(awk '$1 == "kube-apiserver" {print $2}' "$dir/pids")/exe")")
kubectl() { "$assets/kubectl" --kubeconfig "$dir/kubeconfig" --cache-dir "$dir/cache" "$@"; }
url=$(cat "$dir/url")
token=$(cat "$dir/token")
jobs=$url/apis/training.evenkeel.dev/v1alpha1/namespaces/default/trainingjobs

# request METHOD URL [FILE [TYPE]] -> prints the HTTP code; the answer lies in $dir/answer
request() {
  curl --silent --show-error --max-time 60 --cacert "$dir/ca.crt" -H "Authorization: Bearer $token" -X "$1" \
    -o "$dir/answer" -w '%{http_code}' ${3:+-H "Content-Type: ${4:-application/json}" --data-binary "@$3"} "$2" || true  # no answer: 000
}
# How kubectl asks: unknown fields are an error, not a warning.
strict='fieldValidation=Strict&fieldManager=crd-test'

install_crd() { # FILE: applied and served
  kubectl apply --server-side --force-conflicts -f "$1" >/dev/null
  wait_for 30 established
}
# `kubectl wait` fails on a definition that has no conditions yet.
established() {
  kubectl get crd trainingjobs.training.evenkeel.dev -o json |
    jq -e "any(.status.conditions[]?; .type == \"Established\" and .status == \"True\")" >/dev/null
}
wait_for() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}


# The server's words must name the field too. It writes unknown fields and map keys in its own way, so the last name of
# the path is what both have.
names_the_field() { # PATH
  local last=${1##*.}
  last=${last%%\[*}
  grep -qF "$last" "$dir/answer"
}

judge_create() { # FILE PATH REASON
  judge "$1" "$2" "$3" "$(request POST "$jobs?dryRun=All&$strict" "$1")"
}

judge_update() { # FILE.new.json PATH
  local new=$1 path=$2 old=${1%.new.json}.old.json name code
  name=$(jq -r .metadata.name "$old")
  code=$(request POST "$jobs?$strict" "$old")
  [ "$code" = 201 ] || { bad "$old: the old object is refused ($code): $(jq -r .message "$dir/answer")"; return; }
  jq --arg version "$(jq -r .metadata.resourceVersion "$dir/answer")" '.metadata.resourceVersion = $version' "$new" >"$dir/update.json"
  code=$(request PUT "$jobs/$name?dryRun=All&$strict" "$dir/update.json")
  judge "$new" "$path" "" "$code"
  request DELETE "$jobs/$name" >/dev/null
}

judge() { # FILE PATH REASON CODE
  local file=$1 path=$2 reason=$3 code=$4
  if [ -z "$path" ] || [ -n "$reason" ]; then
    case $code in
      200 | 201) ok; [ -z "$reason" ] || printf 'only the operator judges %s: %s\n' "$(basename "$file" .json)" "$reason" ;;
      *) bad "$file: must be accepted, got $code: $(jq -r .message "$dir/answer")" ;;
    esac
    return
  fi
  case $code in
    400 | 422) ;;
    *) bad "$file: must be refused with 400 or 422, got $code"; return ;;
  esac
  if names_the_field "$path"; then ok; else bad "$file: refused without naming $path: $(jq -r .message "$dir/answer")"; fi
}

# Stored values of another type, and one name twice in a list: "may this change" cannot be asked of them at all, so the
# server refuses even their status. The operator can only log those.
wrong_types="env-twice env-value-as-a-number label-as-a-number learning-rate-as-text learning-rate-in-the-wrong-place quantity-with-a-point volume-twice"

# Objects that a looser schema let in: the rules of today must not block their status. (Names and versions are judged
# whatever the schema says, and the scale subresource refuses what is no 64-bit number.)
judge_stored() {
  jq '.spec.versions[0].schema.openAPIV3Schema = {type: "object", "x-kubernetes-preserve-unknown-fields": true}' "$dir/crd.json" >"$dir/loose.json"
  install_crd "$dir/loose.json"
  local names=() file name
  for file in tests/manifests/invalid/*.json; do
    case $file in
      *.old.json | *.new.json | */other-version.json | */other-kind.json | */name-*.json) continue ;;
      */enormous-replicas.json | */half-a-replica.json | */replicas-as-text.json) continue ;;
    esac
    case " $wrong_types " in *" $(basename "$file" .json) "*) continue ;; esac
    wait_for 20 stored "$file" || { bad "$file: the loose schema refuses it: $(jq -r .message "$dir/answer")"; continue; }
    names+=("$(basename "$file" .json)")
  done
  install_crd "$dir/crd.json"
  wait_for 30 strict_again || { bad "the strict schema does not come back"; return; }
  printf '{"status": {"phase": "Failed", "conditions": [{"type": "Accepted", "status": "False", "reason": "Invalid"}]}}' >"$dir/status.json"
  for name in "${names[@]}"; do
    code=$(request PATCH "$jobs/$name/status" "$dir/status.json" application/merge-patch+json)
    if [ "$code" = 200 ]; then ok; else bad "status of the stored $name is refused ($code): $(jq -r .message "$dir/answer" | cut -c1-300)"; fi
  done
  request DELETE "$jobs" >/dev/null
}
stored() { [ "$(request POST "$jobs" "$1")" = 201 ]; }
strict_again() { [ "$(request POST "$jobs?dryRun=All&$strict" tests/manifests/invalid/zero-replicas.json)" = 422 ]; }

judge_status_and_scale() {
  request POST "$jobs" tests/manifests/valid/shortest.json >/dev/null
  check "a status with every field is stored whole" full_status
  check "wait" kubectl wait --for=condition=Complete --timeout=5s tjob/shortest
  check "scale shows the replicas" scale_reads
  check "scale changes a suspended job" scale_writes
  check "scale is refused for a running job, in words" scale_is_refused
  request POST "$jobs" tests/manifests/valid/elastic.json >/dev/null
  check "scale changes a running job that has a range" kubectl scale tjob elastic --replicas=8
  check "and not beyond it, in words" scale_is_out_of_range
  check "columns" columns_print
}
full_status() {
  jq -n --slurpfile status tests/crd/full_status.json '{status: $status[0]}' >"$dir/status.json"
  [ "$(request PATCH "$jobs/shortest/status?fieldValidation=Strict" "$dir/status.json" application/merge-patch+json)" = 200 ] || { cat "$dir/answer"; return 1; }
  jq -S .status "$dir/answer" >"$dir/stored.json"
  diff <(jq -S . tests/crd/full_status.json) "$dir/stored.json"
}
scale_reads() {
  request GET "$jobs/shortest/scale" >/dev/null
  [ "$(jq -r '"\(.spec.replicas) \(.status.replicas) \(.status.selector)"' "$dir/answer")" = "4 3 training.evenkeel.dev/job-name=shortest" ]
}
scale_writes() {
  kubectl patch tjob shortest --type=merge -p '{"spec": {"suspend": true}}' &&
    kubectl scale tjob shortest --replicas=6 && kubectl scale tjob shortest --replicas=4 &&
    kubectl patch tjob shortest --type=merge -p '{"spec": {"suspend": false}}'
}
scale_is_refused() {
  local words
  ! words=$(kubectl scale tjob shortest --replicas=5 2>&1) && grep -q "fixed size" <<<"$words"
}
scale_is_out_of_range() {
  local words
  ! words=$(kubectl scale tjob elastic --replicas=9 2>&1) && grep -q "between minReplicas and maxReplicas" <<<"$words"
}
columns_print() {
  kubectl get tjob shortest -o wide | tee "$dir/columns"
  [ "$(head -1 "$dir/columns" | tr -s ' ' | sed 's/ $//')" = "NAME STATUS PROGRESS READY SAMPLES/S IMBALANCE RESTARTS ETA AGE VERDICT EFFICIENCY LOSS STRAGGLER QUEUE" ] &&
    grep -q 'shortest *Running *37 *3/4' "$dir/columns" && kubectl get training | grep -q shortest
}
explains() {
  kubectl explain "$1" >"$dir/explain" && grep -F "$2" "$dir/explain"
}

install_crd "$crd"
kubectl create --dry-run=client -o json -f "$crd" >"$dir/crd.json"
wait_for 20 stored tests/manifests/valid/shortest.json
request DELETE "$jobs/shortest" >/dev/null

# One line for each manifest: file, expected path, why only the operator judges it.
jq -r '[input_filename, (.metadata.annotations // {} | (."expect.error/path" // "-", ."expect.error/only-operator" // "-"))] | @tsv' \
  tests/manifests/valid/*.json tests/manifests/invalid/*.json >"$dir/corpus"
while IFS=$'\t' read -r file path reason; do
  [ "$path" != - ] || path=
  [ "$reason" != - ] || reason=
  case $file in
    *.old.json) ;;
    *.new.json) judge_update "$file" "$path" ;;
    *) judge_create "$file" "$path" "$reason" ;;
  esac
done <"$dir/corpus"
[ $((passed + failed)) -ge 240 ] || bad "only $((passed + failed)) manifests were judged"
check "explain of a field" wait_for 20 explains tjob.spec.balance.mode "Default: Rebalance."
check "explain of a group" explains tjob.spec.balance "What is done about unequal ranks."
check "explain of a status field" explains tjob.status.workers.readyText "e.g. 3/4"
judge_status_and_scale
judge_stored

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
