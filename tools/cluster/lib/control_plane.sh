# Command lines of etcd and kube-apiserver, the same for the whole cluster and for apiserver-only. Sourced, never run.

# etcd listens on a socket file in its working folder: no port to choose and none to collide. It answers whoever can
# open that file, which is this user alone. Without fsync, because a test's data need not outlive the machine.
etcd_command() { # DATA_FOLDER
  ETCD_COMMAND=(env -C "$1" "$(asset_path etcd)" --name=evenkeel "--data-dir=$1/data"
    --listen-client-urls=unix://client:0 --advertise-client-urls=unix://client:0
    --listen-peer-urls=unix://peer:0 --initial-advertise-peer-urls=unix://peer:0
    --initial-cluster=evenkeel=unix://peer:0 --unsafe-no-fsync --log-level=warn
    --snapshot-count=100000 --quota-backend-bytes=4294967296)
}

# Flags that every API server here has; the callers add addresses and what differs.
api_server_command() { # PKI_DIR ETCD_SERVER
  local pki=$1
  API_SERVER_COMMAND=("$(asset_path kube-apiserver)" "--etcd-servers=$2"
    --allow-privileged --authorization-mode=Node,RBAC
    "--client-ca-file=$pki/ca.crt" "--tls-cert-file=$pki/apiserver.crt" "--tls-private-key-file=$pki/apiserver.key"
    --service-account-issuer=https://kubernetes.default.svc
    "--service-account-key-file=$pki/sa.pub" "--service-account-signing-key-file=$pki/sa.key"
    --service-cluster-ip-range=10.96.0.0/16 --profiling=false --shutdown-delay-duration=0s)
}

control_plane_certificates() {
  local pki=$STATE_DIR/pki
  pki_authority "$pki"
  pki_certificate "$pki" apiserver /CN=kube-apiserver \
    "IP:$API_ADDRESS,IP:$API_SERVICE_ADDRESS,IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
  pki_certificate "$pki" apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet
  pki_certificate "$pki" admin /O=system:masters/CN=admin
  pki_certificate "$pki" controller-manager /CN=system:kube-controller-manager
  pki_certificate "$pki" scheduler /CN=system:kube-scheduler
  pki_certificate "$pki" proxy /CN=system:kube-proxy
  pki_certificate "$pki" dns /CN=system:coredns
  pki_service_account_key "$pki"
  local name
  for name in controller-manager scheduler proxy dns; do
    pki_kubeconfig "$pki" "$name" "$API_URL" "$pki/$name.kubeconfig"
  done
  pki_kubeconfig "$pki" admin "$API_URL" "$STATE_DIR/kubeconfig"
}

control_plane_etcd() {
  mkdir -p "$STATE_DIR/etcd" && chmod 700 "$STATE_DIR/etcd"
  etcd_command "$STATE_DIR/etcd"
  start_inside etcd "${ETCD_COMMAND[@]}"
}

control_plane_api_server() {
  local pki=$STATE_DIR/pki
  api_server_command "$pki" "unix://$STATE_DIR/etcd/client:0"
  start_inside kube-apiserver "${API_SERVER_COMMAND[@]}" \
    "--advertise-address=$API_ADDRESS" --secure-port=6443 \
    "--kubelet-client-certificate=$pki/apiserver-kubelet.crt" "--kubelet-client-key=$pki/apiserver-kubelet.key" \
    "--kubelet-certificate-authority=$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --enable-admission-plugins=NodeRestriction \
    "--audit-policy-file=$CLUSTER_DIR/config/audit-policy.yaml" "--audit-log-path=$STATE_DIR/logs/audit.log"
}

api_server_is_ready() {
  inside curl --silent --fail --max-time 2 --cacert "$STATE_DIR/pki/ca.crt" --cert "$STATE_DIR/pki/admin.crt" \
    --key "$STATE_DIR/pki/admin.key" "$API_URL/readyz"
}

# Three seconds on an idle machine, more than a minute on one that compiles: only a server that ended is given up early.
control_plane_wait() {
  wait_for 180 "kube-apiserver is not ready; see $(log_file kube-apiserver)" api_server_is_ready_or_gone
  process_is_alive "$(record kube-apiserver)" || die "kube-apiserver ended; see $(log_file kube-apiserver)"
}

api_server_is_ready_or_gone() { api_server_is_ready || process_is_gone "$(record kube-apiserver)"; }

control_plane_controllers() { # NODE_GRACE_SECONDS
  local pki=$STATE_DIR/pki
  # A claim that is seen before its volume waits for the binder's next round: 15 s unless told otherwise.
  start_inside kube-controller-manager "$(asset_path kube-controller-manager)" \
    "--kubeconfig=$pki/controller-manager.kubeconfig" --use-service-account-credentials --leader-elect=false \
    "--root-ca-file=$pki/ca.crt" "--service-account-private-key-file=$pki/sa.key" --bind-address=127.0.0.1 \
    --controllers=*,-nodeipam "--node-monitor-grace-period=${1}s" --pvclaimbinder-sync-period=1s --profiling=false
  start_inside kube-scheduler "$(asset_path kube-scheduler)" "--kubeconfig=$pki/scheduler.kubeconfig" \
    --leader-elect=false --bind-address=127.0.0.1 --profiling=false
}
