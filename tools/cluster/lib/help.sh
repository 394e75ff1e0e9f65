# Texts of --help. Sourced, never run.

help_all() {
  cat <<'EOF'
usage: cluster COMMAND [ARGUMENTS...]        a real Kubernetes on this machine, in a network namespace of its own

  up [--nodes N] [--node-grace SECONDS]      start it, or repair it (2 nodes unless said)
  up --context NAME                          use a cluster that you have already, by its kubectl context
  down                                       end it; nothing is left behind
  status                                     nodes, pods, processes, memory, where the logs are
  kubectl ARGS... | helm ARGS...             the cluster's own kubectl and helm
  exec COMMAND...                            any program where it can reach API server and pods
  shell                                      a shell of that kind
  load [IMAGE_OR_ARCHIVE...]                 put images on every node; without one, those of this tree
  lose NODE                                  end a node as a power cut does; up brings it back
  env                                        lines of `export X=...` for scripts
  assets                                     only build or download the programs (10 minutes, once)

Each has its own --help. Variables: EVENKEEL_CLUSTER_NAME (default "default"; two names are two clusters),
EVENKEEL_CLUSTER_STATE (folder of their states), KUBE_ASSETS (folder with your own kube-apiserver, etcd, kubectl, ...),
XDG_CACHE_HOME (programs and images are kept below it).
EOF
}

help_for() { # COMMAND
  case $1 in
    up) cat <<'EOF' ;;
usage: cluster up [--nodes N] [--node-grace SECONDS] | cluster up --context NAME

Starts the cluster and returns when every node is Ready. On a running cluster it only checks (1 second). After a kill
in the middle, or when one of its processes died, it starts what is missing.
--nodes N             1 to 99, default 2; a running cluster can grow but not shrink
--node-grace SECONDS  silence after which a node counts as lost (--node-monitor-grace-period), default 16
--context NAME        start nothing: use the cluster that this kubectl context names
EOF
    down) cat <<'EOF' ;;
usage: cluster down

Ends every process of the cluster by its id, removes its mounts, cgroups, network namespace and state folder. Programs
and images stay in the cache. With --context clusters, only the way to them is forgotten.
EOF
    status) echo "usage: cluster status        nodes, pods, processes, memory, logs; exit code 1 when it is not up" ;;
    shell) echo "usage: cluster shell         a shell inside the cluster's network, with kubectl and helm; exit leaves" ;;
    kubectl) echo "usage: cluster kubectl ARGS...        kubectl on this cluster" ;;
    helm) echo "usage: cluster helm ARGS...           helm on this cluster" ;;
    load) cat <<'EOF' ;;
usage: cluster load [IMAGE_OR_ARCHIVE...]

Imports each OCI archive (see tools/cluster/image-build), or image that image-build made, on every node. A node that
has the same content is left alone. Pods use such images with imagePullPolicy: IfNotPresent. Without an argument: the
images of the operator and the trainer, built from this tree.
EOF
    lose) cat <<'EOF' ;;
usage: cluster lose NODE

Ends the node's kubelet, containerd and all its containers at once; nobody is told. Kubernetes notices by the silence
(--node-grace). `cluster up` brings the node back.
EOF
    assets) echo "usage: cluster assets        build or download the cluster's programs into the cache, start nothing" ;;
    env) echo 'usage: eval "$(cluster env)"  KUBECONFIG, PATH, EVENKEEL_CLUSTER_STATE_DIR, EVENKEEL_CLUSTER_NETNS' ;;
    exec) cat <<'EOF' ;;
usage: cluster exec COMMAND [ARGUMENTS...]

Runs COMMAND inside the cluster's network namespace with KUBECONFIG and PATH (kubectl, helm) set. API server, services
and pods are reachable there and nowhere else; 127.0.0.1 inside is not the machine's. A program that must be reachable
from outside listens on a socket file, or is asked by another `cluster exec`. `cluster down` ends it.
EOF
  esac
}
