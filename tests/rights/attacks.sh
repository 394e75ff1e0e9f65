# Layers 1 to 3: the list, one request each. Sourced by rights_test.sh. Layer 4 is operator/render/attacks_test.cpp.
#   declared  a dangerous name, which the schema knows only to refuse it: pruning would drop an unknown one in silence, so
#             these are sent the way a client without validation sends them
#   schema    types, ranges, names that nobody knows: sent the way kubectl does
#   cel       rules over several fields, or over the contents of one
#   policy    who asks is what is wrong; the others are asked as the administrator, whom no policy refuses
mkdir -p "$dir/attacks"
jq -r --argjson base "$base" '.[] | [.layer, .says, .name, ($base * {spec: .spec} | tojson | @base64)] | @tsv' tests/rights/attacks.json >"$dir/attacks/list"
attacks_made=0
while IFS=$'\t' read -r layer says name object; do
  attacks_made=$((attacks_made + 1))
  says=${says//\\\\/\\}
  base64 -d <<<"$object" >"$dir/attacks/one.json"
  validation=Ignore
  code=422
  case $layer in
    schema) validation=Strict; grep -q '^unknown field' <<<"$says" && code=400 ;;
    policy) code=403; AS=dev ;;
  esac
  refused "$layer: $name" "$code" "$says" "$(request POST "$api/team/trainingjobs?dryRun=All&fieldValidation=$validation&fieldManager=attacker" "$dir/attacks/one.json")"
  case "$layer $(said)" in
    policy*ValidatingAdmissionPolicy*) ;;
    policy*) not_ok "policy: $name: refused, but not by the policy" ;;
    *ValidatingAdmissionPolicy*) not_ok "$layer: $name: refused by the policy only" ;;
  esac
  AS=
done <"$dir/attacks/list"
check "at least 40 attacks were made" test "$attacks_made" -ge 40
make "$dir/attacks/none.json" '{}'
accepted "the same job without an attack is accepted" "$(request POST "$api/team/trainingjobs?dryRun=All&fieldValidation=Strict" "$dir/attacks/none.json")"
