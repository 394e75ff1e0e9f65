# up and down. Each step looks at what is there and adds what is missing, so that a step after a kill repairs.
# Sourced, never run.

COMPLETE_MARK=$STATE_DIR/complete
DEFAULT_NODE_GRACE_SECONDS=16

cluster_kubectl() { KUBECONFIG=$STATE_DIR/kubeconfig inside "$(asset_path kubectl)" "$@"; }

cluster_is_complete() {
  local record_path node
  [[ -e $COMPLETE_MARK ]] && network_exists || return 1
  for record_path in "$STATE_DIR"/run/*; do
    process_is_alive "$record_path" || return 1
  done
  # A node that was lost on purpose has left no records.
  for node in $(node_names); do
    [[ -e $(record "$node-containerd") && -e $(record "$node-kubelet") ]] || return 1
  done
  api_server_is_ready >/dev/null
}

# What an interrupted `up` left is used further. What a reboot or an interrupted `down` left is cleared first.
cluster_clear_remains() {
  [[ -e $STATE_DIR/pki || -e $STATE_DIR/going-down || -e $NAMESPACE_FILE ]] || return 0
  if [[ -e $STATE_DIR/going-down ]] || ! network_exists; then
    part "clear what an earlier cluster left" cluster_remove
  fi
}

cluster_up() { # NODES NODE_GRACE_SECONDS
  local nodes=$1 grace=$2 begin_ms
  begin_ms=$(now_ms)
  if cluster_is_complete && (($(node_names | wc -l) == nodes)); then
    say "cluster $CLUSTER_NAME is up: $nodes nodes, checked in $(seconds_since "$begin_ms")"
    return
  fi
  (($(node_names | wc -l) <= nodes)) ||
    die "cluster $CLUSTER_NAME has $(node_names | wc -l) nodes and $nodes were asked for; run \`cluster down\` first"
  say "cluster $CLUSTER_NAME: $nodes nodes, state in $STATE_DIR"
  assets_locked assets_all
  pause_image_ensure
  cluster_clear_remains
  cluster_bring_up "$nodes" "$grace"
  say "cluster $CLUSTER_NAME is up after $(seconds_since "$begin_ms")"
}

cluster_bring_up() { # NODES NODE_GRACE_SECONDS
  local names
  mapfile -t names < <(seq -f 'node-%.0f' "$1")
  mkdir -p "$STATE_DIR/run" "$STATE_DIR/logs"
  part "network namespace $NAMESPACE" network_up
  part "etcd and containerd started" cluster_start_stores "${names[@]}"
  part "certificates" control_plane_certificates
  control_plane_api_server
  part "pause image" each_node node_pause_image "${names[@]}"
  part "API server ready" control_plane_wait
  part "controllers, kubelets, proxy, DNS started" cluster_start_rest "$2" "${names[@]}"
  part "$1 nodes ready" wait_for 120 "not every node is ready; see $STATE_DIR/logs" cluster_nodes_ready "$1"
  part "default service account" wait_for 120 "no default service account; see $(log_file kube-controller-manager)" \
    cluster_kubectl get serviceaccount default
  : >"$COMPLETE_MARK"
}

each_node() { # FUNCTION NODES...
  local function=$1 node
  shift
  for node in "$@"; do "$function" "$node"; done
}

cluster_start_stores() {
  control_plane_etcd
  each_node node_containerd "$@"
}

cluster_start_rest() { # NODE_GRACE_SECONDS NODES...
  control_plane_controllers "$1"
  shift
  each_node node_kubelet "$@"
  addons_proxy
  addons_dns
}

cluster_nodes_ready() { # NODES
  local ready
  ready=$(cluster_kubectl get nodes -o \
    'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' | grep -c '^True$')
  ((ready == $1))
}

cluster_down() {
  local begin_ms
  begin_ms=$(now_ms)
  if [[ ! -e $STATE_DIR/pki && ! -e $STATE_DIR/run && ! -e $NAMESPACE_FILE ]]; then
    rm -rf "$STATE_DIR"
    say "cluster $CLUSTER_NAME is down: there was nothing"
    return
  fi
  cluster_remove
  say "cluster $CLUSTER_NAME is down after $(seconds_since "$begin_ms")"
}

# The order matters: processes, then what they held, and the files last: they say what there is to remove.
cluster_remove() {
  local node
  mkdir -p "$STATE_DIR"
  : >"$STATE_DIR/going-down"
  rm -f "$COMPLETE_MARK"
  for node in $(node_names); do node_stop "$node"; done
  cluster_stop_processes
  cluster_unmount
  cgroup_remove
  network_down
  cluster_remove_files
}

cluster_stop_processes() {
  local record_path processes
  for record_path in "$STATE_DIR"/run/*; do
    [[ -e $record_path ]] && process_kill "$record_path"
  done
  for _ in $(seq 100); do
    mapfile -t processes < <(network_processes)
    ((${#processes[@]} > 0)) || return 0
    kill -KILL "${processes[@]}" 2>/dev/null || true
    sleep 0.05
  done
  say "cluster: processes in namespace $NAMESPACE that cannot be ended: ${processes[*]}"
}

cluster_mounts() { awk -v prefix="$STATE_DIR/" 'index($5, prefix) == 1 {print $5}' /proc/self/mountinfo; }

cluster_unmount() {
  local point
  # The newest first; a mount that is still used by a process that is about to end is detached.
  for point in $(cluster_mounts | tac); do
    umount "$point" 2>/dev/null || umount -l "$point" 2>/dev/null || true
  done
  [[ -z $(cluster_mounts) ]] || die "mounts that cannot be removed: $(cluster_mounts | tr '\n' ' ')"
}

cluster_remove_files() {
  local link
  for link in /var/log/containers/*; do
    [[ -L $link && $(readlink "$link") == "$STATE_DIR/"* ]] && rm -f "$link"
  done
  # The mark goes last, so that a kill in between is seen.
  find "$STATE_DIR" -mindepth 1 -maxdepth 1 ! -name going-down -exec rm -rf --one-file-system {} +
  rm -rf "$STATE_DIR"
}
