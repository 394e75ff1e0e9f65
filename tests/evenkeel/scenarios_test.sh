#!/usr/bin/env bash
# The scenarios of ./dev demo that need no cluster, as a user starts them: each must find what it injected and say so. With
# --all alone; a short version of the same causes is in every run (bars 5 and 11). Those with nodes and pods are the same
# code as the end-to-end suite's.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tests/lib.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for scenario in straggler batch-not-scaled input-bound slow-network rotating uneven-shards kill-a-worker; do
  report=$folder/$scenario.json
  status=0
  TMPDIR=$folder timeout 300 ./dev demo --scenario "$scenario" --seed 7 --report "$report" > "$folder/$scenario.log" 2>&1 || status=$?
  equal "$scenario: exit code" 0 "$status"
  [ "$status" = 0 ] || tail -5 "$folder/$scenario.log" | sed 's/^/      /'
  check "$scenario: the report names its verdict" jq -e '.explain.diagnosis.verdict | length > 0' "$report"
  check "$scenario: a page to look at" grep -q '<svg' "$folder/evenkeel-$scenario.html"
done
finish_tests
