# One node = one containerd + one kubelet with folders, sockets and an address of their own. Sourced, never run.

node_folder() { printf '%s' "$STATE_DIR/nodes/$1"; }

node_ctr() { # NODE ARGUMENTS... (in the namespace that kubelet uses)
  local node=$1
  shift
  "$(asset_path ctr)" --address "$(node_folder "$node")/containerd.sock" --namespace k8s.io "$@"
}

node_containerd_config() { # NODE
  local folder
  folder=$(node_folder "$1")
  write_file "$folder/containerd.toml" <<EOF
version = 3
root = "$folder/containerd"
state = "$folder/run"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs",
  "io.containerd.differ.v1.erofs", "io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
address = "$folder/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "$folder/opt"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "$PAUSE_IMAGE"
[plugins."io.containerd.cri.v1.runtime"]
# Without this, runc fails with "can't get final child's PID from pipe" where the score may not be lowered.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "$STATE_DIR/cni/conf"
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = "$(asset_path containerd-shim-runc-v2)"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
Root = "$folder/runc"
[plugins."io.containerd.grpc.v1.cri"]
stream_server_address = "127.0.0.1"
stream_server_port = "0"
EOF
}

node_kubelet_config() { # NODE
  local folder address
  folder=$(node_folder "$1")
  address=$(node_address "$1")
  write_file "$folder/kubelet.yaml" <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $address
port: 10250
healthzPort: 0
readOnlyPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $STATE_DIR/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $STATE_DIR/pki/$1.crt
tlsPrivateKeyFile: $STATE_DIR/pki/$1.key
containerRuntimeEndpoint: unix://$folder/containerd.sock
clusterDNS: [$DNS_ADDRESS]
clusterDomain: cluster.local
resolvConf: ""
podLogsDir: $folder/pod-logs
staticPodPath: ""
# Two kubelets share one machine: neither may count or limit what the other's pods use.
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
maxPods: 250
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
imageGCHighThresholdPercent: 100
imageMinimumGCAge: 24h
registryPullQPS: 0
eventRecordQPS: 0
kubeAPIQPS: 100
kubeAPIBurst: 200
nodeStatusUpdateFrequency: 4s
# The lease is renewed every quarter of this.
nodeLeaseDurationSeconds: 12
shutdownGracePeriod: 0s
EOF
}

node_certificates() { # NODE
  pki_certificate "$STATE_DIR/pki" "$1" "/O=system:nodes/CN=system:node:$1" "IP:$(node_address "$1"),DNS:$1"
  pki_kubeconfig "$STATE_DIR/pki" "$1" "$API_URL" "$STATE_DIR/pki/$1.kubeconfig"
}

node_containerd() { # NODE
  mkdir -p "$(node_folder "$1")"
  network_add_address "$(node_address "$1")"
  node_containerd_config "$1"
  start_inside "$1-containerd" "$(asset_path containerd)" --config "$(node_folder "$1")/containerd.toml" --log-level warn
}

node_pause_image() { # NODE
  local archive
  archive=$(asset_path pause.tar)
  wait_for 60 "containerd of $1 does not answer; see $(log_file "$1-containerd")" node_ctr "$1" version
  image_import "$1" "$archive" "$PAUSE_IMAGE" "$(image_digest "$archive")"
}

node_kubelet() { # NODE
  local folder
  folder=$(node_folder "$1")
  node_certificates "$1"
  node_kubelet_config "$1"
  start_inside "$1-kubelet" "$(asset_path kubelet)" "--config=$folder/kubelet.yaml" \
    "--kubeconfig=$STATE_DIR/pki/$1.kubeconfig" "--root-dir=$folder/kubelet" "--hostname-override=$1" \
    "--node-ip=$(node_address "$1")" "--cert-dir=$folder/kubelet/pki" --v=1
}

# A node ends without its pods being told, as a machine does that loses its power. First whoever could start something
# again or clear away the folders by which the containers are found; the containers last.
node_stop() { # NODE
  process_kill "$(record "$1-kubelet")"
  process_kill "$(record "$1-containerd")"
  node_shims_kill "$1"
  cgroup_kill "$1"
}

# The shims of this node, known by the socket in their command line; their own sockets lie outside the state folder.
node_shims_kill() { # NODE
  local socket pid bundle
  socket=$(node_folder "$1")/containerd.sock
  for pid in $(network_processes); do
    if tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF "$socket"; then
      kill -KILL "$pid" 2>/dev/null || true
    fi
  done
  for bundle in "$(node_folder "$1")"/run/io.containerd.runtime.v2.task/k8s.io/*/bootstrap.json; do
    [[ -e $bundle ]] && rm -f "$(jq -r '.address // empty | sub("^unix://"; "")' "$bundle")"
  done
  return 0
}
