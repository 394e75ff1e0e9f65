# examples/broken: what `kubectl apply` prints is what the comment says. Sourced by rights_test.sh; those whose words
# come from the operator are in operator.sh.
comment() { sed -n "s/^# $1: //p" "$2" | head -1; }
apply_prints() { # TEXT WORDS FILE KUBECTL-ARGUMENTS...
  local text=$1 words=$2 file=$3 out
  shift 3
  if out=$(kubectl -n team "$@" apply -f "$file" 2>&1); then not_ok "$text: was accepted"; return; fi
  contains "$text" "$words" "$out"
}
for file in examples/broken/*.yaml; do
  name=$(basename "$file" .yaml)
  words=$(comment says "$file")
  [ -z "$words" ] || apply_prints "apply of broken/$name" "$words" "$file" --as ops
  words=$(comment 'as dev' "$file")
  [ -z "$words" ] || apply_prints "apply of broken/$name by dev" "$words" "$file" --as dev
  words=$(comment 'ends 65' "$file")
  [ -n "$words" ] || continue
  code=0
  out=$("$bin/evenkeel-trainer" local -f "$file" --workers 1 2>&1) || code=$?
  equal "broken/$name ends with exit code" 65 "$code"
  contains "broken/$name names what it did not find" "$words" "$out"
done
check "the good example is accepted" kubectl -n team --as ops apply --dry-run=server -f examples/fashion-mnist.yaml
