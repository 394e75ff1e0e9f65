# For test scripts: checks that count, and the closing line that ./dev test reads. Sourced.
TESTS_PASSED=0 TESTS_FAILED=0
ok() { TESTS_PASSED=$((TESTS_PASSED + 1)); echo "ok    $*"; }
not_ok() { TESTS_FAILED=$((TESTS_FAILED + 1)); echo "FAIL  $*"; }
# check TEXT COMMAND...: passes when the command succeeds; shows its output when it does not.
check() {
  local text=$1 out; shift
  if out=$("$@" 2>&1); then ok "$text"; else not_ok "$text"; printf '%s\n' "$out" | tail -20 | sed 's/^/      /'; fi
}
# equal TEXT EXPECTED ACTUAL
equal() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1: expected '$2', got '$3'"; fi; }
# contains TEXT NEEDLE HAYSTACK
contains() { if grep -qF -- "$2" <<< "$3"; then ok "$1"; else not_ok "$1: no '$2' in: $(head -c 600 <<< "$3")"; fi; }
# within TEXT SECONDS COMMAND...: retries until the command succeeds.
within() {
  local text=$1 end=$((SECONDS + $2)); shift 2
  until "$@" > /dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then not_ok "$text (not within the time)"; return 1; fi
    sleep 0.5
  done
  ok "$text"
}
finish_tests() {
  echo "$TESTS_PASSED passed, $TESTS_FAILED failed"
  [ "$TESTS_FAILED" -eq 0 ]
}
