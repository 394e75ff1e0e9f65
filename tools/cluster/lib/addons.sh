# kube-proxy and CoreDNS: one of each for the shared namespace, as processes. Sourced, never run.

addons_proxy() {
  write_file "$STATE_DIR/proxy.yaml" <<EOF
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: $STATE_DIR/pki/proxy.kubeconfig}
hostnameOverride: node-1
healthzBindAddress: ""
metricsBindAddress: 127.0.0.1:10249
# The kernel's limits belong to the host and are left as they are.
conntrack: {maxPerCore: 0, min: 0}
# Two pods on one bridge answer each other past the translation, unless the question came from the gateway.
iptables: {masqueradeAll: true, minSyncPeriod: 0s}
EOF
  start_inside kube-proxy "$(asset_path kube-proxy)" "--config=$STATE_DIR/proxy.yaml"
}

# The same cache rules as kubeadm's: names of the cluster itself are never answered from an old answer.
addons_dns() {
  write_file "$STATE_DIR/Corefile" <<EOF
.:53 {
    bind $DNS_ADDRESS
    errors
    cache 30 {
        disable success cluster.local
        disable denial cluster.local
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig $STATE_DIR/pki/dns.kubeconfig
        ttl 5
    }
}
EOF
  cluster_kubectl apply -f "$CLUSTER_DIR/config/dns-rbac.yaml" >/dev/null
  start_inside coredns "$(asset_path coredns)" "-conf=$STATE_DIR/Corefile"
}
