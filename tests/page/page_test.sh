#!/usr/bin/env bash
# The page of `evenkeel-trainer explain --html`, drawn by a real browser that has no network: the pictures are there and
# have colours, nothing is asked for, nothing is complained of. The report is that of a job with one slow rank.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tests/lib.sh
. tools/dev/lib.sh
. bench/evenkeel/lib.sh
TRAINER=$(readlink -f "${EVENKEEL_TRAINER:-$BUILD_DIR/bin/evenkeel-trainer}")
WORK=$(mktemp -d) JOB=
trap 'end_job; rm -rf "$WORK"' EXIT

# browse NAME FILE OPTIONS...: what the browser prints; its log in NAME.log, what it asked the network for in NAME.net.
browse() {
  local name=$1 file=$2; shift 2
  local alone=(unshare --net)
  [ "$(id -u)" = 0 ] || alone=(unshare --net --map-root-user)
  timeout 60 "${alone[@]}" chromium --headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run --disable-extensions \
    --hide-scrollbars --window-size=960,2000 "--user-data-dir=$WORK/browser" "--log-net-log=$WORK/$name.net" --enable-logging=stderr "$@" "file://$file" 2> "$WORK/$name.log"
}
complaints() { grep -c ':CONSOLE' "$WORK/$1.log"; }
# The browser's own questions (is there a newer one?) have no page behind them.
requests() { jq -r '.events[].params | select(.url? and .initiator? and .initiator != "not an origin" and (.url | test("^(file|data):") | not)).url' "$WORK/$1.net" | sort -u | grep -c .; }

# pixels NAME COLOUR...: how many pixels of NAME.png have each colour, counted by the browser itself.
pixels() {
  local name=$1; shift
  { echo '<pre id="out">none</pre><script>const wanted ='; printf '%s\n' "$@" | jq -R . | jq -cs .; echo '; const picture = new Image(); picture.onload = () => {
      const canvas = document.createElement("canvas"); canvas.width = picture.width; canvas.height = picture.height;
      const context = canvas.getContext("2d"); context.drawImage(picture, 0, 0);
      const data = context.getImageData(0, 0, picture.width, picture.height).data; const seen = new Map();
      for (let i = 0; i < data.length; i += 4) { const c = data[i] << 16 | data[i + 1] << 8 | data[i + 2]; seen.set(c, (seen.get(c) || 0) + 1); }
      document.getElementById("out").textContent = "pixels " + wanted.map(c => seen.get(parseInt(c.slice(1), 16)) || 0).join(" ");
    }; picture.src = `data:image/png;base64,'; base64 -w 0 "$WORK/$name.png"; echo '`.replace(/\s/g, "");</script>'; } > "$WORK/count.html"
  browse count "$WORK/count.html" --dump-dom --virtual-time-budget=10000 | sed -n 's/.*pixels \([0-9 ]*\).*/\1/p'
}
# colour NAME light|dark: as the page's own style says.
colour() { grep -oE -- "--$1: #[0-9a-f]{6}" "$WORK/page.html" | sed -n "$([ "$2" = dark ] && echo 2 || echo 1)s/.*: //p"; }

blank_set "$WORK/blank" 65536
manifest slow 4 "$WORK/blank" "$SMALL" 'steps: 60, batchSize: {perReplica: 32}, learningRate: {scaling: None}' 'balance: {mode: Observe}'
run slow --inject compute=0.001,compute=0.001@2
equal "a job with one slow rank" 0 "$STATUS"
check "its page is written" "$TRAINER" explain "$WORK/slow.json" --html "$WORK/page.html"

# 1. The page as the browser understands it.
browse page "$WORK/page.html" --dump-dom > "$WORK/dom.html"
for title in "The waterfall" "Each rank over time" "Shares over time" "Who is waited for"; do
  picture=$(tr '\n' ' ' < "$WORK/dom.html" | grep -oE "<h2>$title</h2>.*" | sed 's/<h2>/\n&/2; s/\n.*//')
  check "picture of \"$title\": drawn, with its shapes" test "$(grep -oE '<svg.*</svg>' <<< "$picture" | grep -oE '<(rect|polyline)' | grep -c .)" -ge 4
done
contains "the verdict" "<b>$(of slow .explain.diagnosis.verdict)</b>" "$(cat "$WORK/dom.html")"
equal "the console is silent" 0 "$(complaints page)"
equal "nothing is asked of the network" 0 "$(requests page)"

# 2. What is seen, by day and by night: useful work, waiting and communication in their colours, on the page's own ground.
for light in light dark; do
  browse "$light" "$WORK/page.html" "--screenshot=$WORK/$light.png" --blink-settings=preferredColorScheme=$([ $light = dark ] && echo 0 || echo 1)
  read -r ground useful wait rest < <(pixels "$light" "$(colour page $light)" "$(colour useful $light)" "$(colour wait $light)" "$(colour rest $light)")
  echo "$light: $ground pixels of ground, $useful of useful work, $wait of waiting, $rest of communication"
  check "$light: the ground is the page's" test "${ground:-0}" -gt 500000
  check "$light: the bar of useful work" test "${useful:-0}" -gt 2000
  check "$light: the bar of waiting" test "${wait:-0}" -gt 2000
  check "$light: communication" test "${rest:-0}" -gt 100
done

# 3. The three checks can fail: a page that fetches, complains and shows nothing.
sed 's|<meta http-equiv="Content-Security[^>]*>||; s|</body>|<script>missing()</script><img src="http://127.0.0.1:9/x.png"></body>|; s|svg { display: block|svg { display: none|' "$WORK/page.html" > "$WORK/bad.html"
browse bad "$WORK/bad.html" "--screenshot=$WORK/bad.png"
equal "an error would be seen" 1 "$(complaints bad)"
equal "a request would be seen" 1 "$(requests bad)"
equal "a missing picture would be seen" 0 "$(pixels bad "$(colour useful light)")"
finish_tests
