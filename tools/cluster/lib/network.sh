# The cluster's network namespace: everything the cluster runs lives inside, nothing touches the host's network.
# Sourced, never run.

network_exists() { [[ -e $NAMESPACE_FILE ]] && inside true 2>/dev/null; }

network_add_address() { # ADDRESS
  inside ip address replace "$1/32" dev lo
}

network_up() {
  if ! network_exists; then
    rm -f "$NAMESPACE_FILE" # what a kill between "make the file" and "mount it" leaves
    ip netns add "$NAMESPACE"
  fi
  inside ip link set lo up
  # Small kernels have no dummy device: the cluster's own addresses sit on lo.
  network_add_address "$API_ADDRESS"
  network_add_address "$DNS_ADDRESS"
  inside bash -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  # kube-proxy translates a service's address only in packets that have a route: programs of `exec` need one.
  inside ip route replace "$SERVICE_RANGE" dev lo src "$API_ADDRESS"
  network_pod_config
}

network_pod_config() {
  write_file "$STATE_DIR/cni/conf/10-pods.conflist" <<EOF
{"cniVersion": "1.0.0", "name": "$NAMESPACE", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$STATE_DIR/cni/addresses",
            "ranges": [[{"subnet": "$POD_RANGE", "gateway": "$POD_GATEWAY"}]], "routes": [{"dst": "0.0.0.0/0"}]}}
]}
EOF
}

# Every process of the namespace by id, except this script's own.
network_processes() {
  network_exists || return 0
  ip netns pids "$NAMESPACE" | grep -vx "$$" || true
}

network_down() {
  local id
  if [[ -e $NAMESPACE_FILE ]]; then
    ip netns delete "$NAMESPACE" 2>/dev/null || rm -f "$NAMESPACE_FILE"
  fi
  # The CNI library keeps its results there whatever the configuration says.
  rm -f "/var/lib/cni/results/$NAMESPACE-"*
  for id in $(container_ids); do rm -f "/var/lib/cni/results/cni-loopback-$id-lo"; done
}
