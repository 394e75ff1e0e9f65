# Shared by the commands of ./dev. Sourced from the root of the tree, never run.
BUILD_DIR=${EVENKEEL_BUILD_DIR:-build/dev}
CACHE_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/evenkeel

say() { printf '%s\n' "$*" >&2; }
die() { say "dev: $*"; exit 1; }
now_ms() { date +%s%3N; }

# step TEXT COMMAND...: runs it, tells how long it took.
step() {
  local text=$1 start; shift
  start=$(now_ms)
  "$@" || return $?
  say "$(printf '  %-44s %6.1f s' "$text" "$(( $(now_ms) - start ))e-3")"
}

# What the build, the demo and the tests need; and what the tests alone need, which a user of the demo need not have.
PACKAGE_LISTS=(tools/setup/packages.txt)

missing_packages() {
  local name
  while read -r name; do
    [ -n "$name" ] || continue
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || echo "$name"
  done < <(cat "${PACKAGE_LISTS[@]}")
}

ensure_packages() {
  local missing as_root=()
  command -v dpkg-query > /dev/null || die "this is not a Debian machine; install what tools/setup/*.txt list by your own means"
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  say "installing: $(echo $missing)"
  [ "$(id -u)" = 0 ] || { command -v sudo > /dev/null || die "run './dev setup' as root once"; as_root=(sudo); }
  "${as_root[@]}" apt-get update -qq
  # No service of a package may start by itself: only the programs are wanted.
  DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 "${as_root[@]}" apt-get install -y -qq --no-install-recommends $missing > /dev/null
  [ -z "$(missing_packages)" ] || die "could not install: $(missing_packages | tr '\n' ' ')"
}

# A fresh clone in another folder finds the objects of the last one. The libraries are compiled several files at a time,
# which halves a first build; whoever works on single files sets EVENKEEL_UNITY=OFF before it.
build_targets() {
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  if [ ! -f "$BUILD_DIR/build.ninja" ]; then
    mkdir -p "$BUILD_DIR"
    cmake --preset dev -B "$BUILD_DIR" -DCMAKE_UNITY_BUILD="${EVENKEEL_UNITY:-ON}" > "$BUILD_DIR/configure.log" 2>&1 || { cat "$BUILD_DIR/configure.log" >&2; die "configuring failed"; }
  fi
  ninja -C "$BUILD_DIR" "$@"
}
