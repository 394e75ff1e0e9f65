# One cluster = one name = one state folder, one network namespace. Sourced, never run.

CLUSTER_NAME=${EVENKEEL_CLUSTER_NAME:-default}
[[ $CLUSTER_NAME =~ ^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$ ]] ||
  die "EVENKEEL_CLUSTER_NAME '$CLUSTER_NAME' must be 1-20 lower-case letters, digits or '-'"
# Without links in it: the kernel lists mounts by their real path.
STATE_DIR=$(realpath -m "${EVENKEEL_CLUSTER_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/evenkeel/cluster}/$CLUSTER_NAME")
((${#STATE_DIR} <= 60)) ||
  die "the state folder '$STATE_DIR' has ${#STATE_DIR} characters; socket files allow 60 (set EVENKEEL_CLUSTER_STATE)"

NAMESPACE=evenkeel-$CLUSTER_NAME
NAMESPACE_FILE=/var/run/netns/$NAMESPACE

# Addresses inside the namespace. They are the same in every cluster: nothing outside the namespace sees them.
API_ADDRESS=10.197.0.1
DNS_ADDRESS=10.197.0.2
API_SERVICE_ADDRESS=10.96.0.1
SERVICE_RANGE=10.96.0.0/16
POD_RANGE=10.244.0.0/16
POD_GATEWAY=10.244.0.1
API_URL=https://$API_ADDRESS:6443

node_address() { printf '10.197.0.%d' $((10 + ${1#node-})); } # NODE

node_names() { # the nodes that the state folder knows, in order
  [[ -d $STATE_DIR/nodes ]] || return 0
  find "$STATE_DIR/nodes" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort -V
}

record() { printf '%s' "$STATE_DIR/run/$1"; }   # NAME -> its process record
log_file() { printf '%s' "$STATE_DIR/logs/$1.log"; } # NAME -> its log

# Runs a command inside the cluster's network namespace. Not by `ip netns exec`: that mounts /sys anew, hides the
# cgroup folders, and kubelet then dies with "failed to find cgroup mounts".
inside() { nsenter "--net=$NAMESPACE_FILE" "$@"; }

start_inside() { # NAME COMMAND...
  local name=$1
  shift
  process_start "$(record "$name")" "$(log_file "$name")" nsenter "--net=$NAMESPACE_FILE" "$@"
}

# One change at a time: `up`, `down` and `load` of the same cluster wait for each other.
with_cluster_lock() { # FUNCTION ARGUMENTS...
  # Beside the state folder, not in it: a lock that `down` removes would let two callers in.
  mkdir -p "$(dirname "$STATE_DIR")"
  exec 9>"$STATE_DIR.lock"
  flock -n 9 || { say "another cluster command is at work; waiting for it" && flock 9; }
  "$@"
}

write_file() { # FILE <content: renamed into place, so never seen half
  mkdir -p "$(dirname "$1")"
  cat >"$1.new" && mv "$1.new" "$1"
}
