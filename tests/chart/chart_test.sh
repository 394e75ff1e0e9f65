#!/usr/bin/env bash
# The chart without a cluster: lint, templates with every option on and off, closed schema, one place for each thing.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tests/lib.sh
helm=$(tools/cluster/cluster assets > /dev/null 2>&1; find "${XDG_CACHE_HOME:-$HOME/.cache}/evenkeel/helm" -name helm -type f | sort | tail -1)
[ -x "$helm" ] || { not_ok "helm is not there"; finish_tests; exit 1; }
chart=charts/evenkeel
render() { "$helm" template evenkeel "$chart" --namespace ns "$@"; }

check "lint --strict" "$helm" lint --strict "$chart"
check "lint --strict with every option" "$helm" lint --strict "$chart" -f "$chart/ci/all-options-values.yaml"
default=$(render) || not_ok "template with defaults"
all=$(render -f "$chart/ci/all-options-values.yaml") || not_ok "template with every option"

equal "default: kinds" "ClusterRole ClusterRoleBinding CustomResourceDefinition Deployment ServiceAccount ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding" \
  "$(grep -E '^kind:' <<< "$default" | awk '{print $2}' | sort | tr '\n' ' ' | sed 's/ $//')"
contains "the CRD outlives the release" "helm.sh/resource-policy: keep" "$default"
equal "crds.enabled: false leaves it out" 0 "$(render --set crds.enabled=false | grep -c '^kind: CustomResourceDefinition')"
equal "crds.keep: false takes the annotation away" 0 "$(render --set crds.keep=false | grep -c 'helm.sh/resource-policy')"
equal "rbac.create: false" 0 "$(render --set rbac.create=false | grep -cE '^kind: (ClusterRole|Role)')"
equal "serviceAccount.create: false" 0 "$(render --set serviceAccount.create=false | grep -c '^kind: ServiceAccount')"
equal "rbac.scope Namespace: a Role in each namespace" 2 "$(grep -c '^kind: Role$' <<< "$all")"
check "rbac.scope Namespace without namespaces is refused" bash -c "! $helm template x $chart --set rbac.scope=Namespace"
equal "admissionPolicy.enabled: false" 0 "$(render --set admissionPolicy.enabled=false | grep -c '^kind: ValidatingAdmissionPolicy')"
contains "the policy refuses when it cannot be asked" "failurePolicy: Fail" "$default"
equal "the binding names the policy" 3 "$(grep -cE '^  (name|policyName): evenkeel-service-accounts$' <<< "$default")"
for word in escalate bind impersonate pods/exec nodes/proxy serviceaccounts/token secrets/; do
  equal "no right says $word" 0 "$(grep -vE '^ *#' <<< "$default" | grep -A99 '^kind: ClusterRole$' | grep -B99 -m1 '^---' | grep -cwF -- "$word")"
done
equal "no right is a wildcard" 0 "$(grep -cE '"\*"|\[\*\]' <<< "$default")"
equal "every image passes through the registry" 0 "$(grep -E '(image: |--trainer-image=)' <<< "$all" | grep -vc 'sentinel.example/')"
contains "pull secrets reach the operator" "name: sentinel" "$all"
contains "pull secrets reach the trainer's pods" '"imagePullSecrets":[{"name":"sentinel"}]' "$all"
for typo in operater.workers=2 operator.worker=2 image.tags=1 trainer.image.tagg=1 metrics.ports=1 rbac.scopes=x crds.enable=true admissionPolicy.enable=true; do
  check "a typo is refused: $typo" bash -c "! $helm template x $chart --set $typo"
done
check "global and enabled are allowed at the root" "$helm" template x "$chart" --set global.a=b --set enabled=true
# As a dependency with a condition, the way umbrella charts use it.
parent=$(mktemp -d)
trap 'rm -rf "$parent"' EXIT
mkdir -p "$parent/charts" && cp -r "$chart" "$parent/charts/evenkeel"
printf 'apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n  - {name: evenkeel, version: 0.1.0, condition: evenkeel.enabled}\n' > "$parent/Chart.yaml"
printf 'global: {a: b}\nevenkeel: {enabled: true}\n' > "$parent/values.yaml"
check "umbrella chart, on" bash -c "$helm template p $parent | grep -q 'kind: Deployment'"
check "umbrella chart, off" bash -c "! $helm template p $parent --set evenkeel.enabled=false | grep -q 'kind: Deployment'"
for name in a evenkeel my-evenkeel release-with-a-very-long-name-that-goes-on-and-on-ok; do
  check "labels and selector agree for release $name" bash -c "
    out=\$($helm template $name $chart --show-only templates/deployment.yaml)
    [ \$(grep -c 'app.kubernetes.io/instance: $name\$' <<< \"\$out\") = 3 ]"
done
check "CRD is under 200 KB" bash -c "[ \$(wc -c < $chart/files/crd.yaml) -lt 200000 ]"
finish_tests
