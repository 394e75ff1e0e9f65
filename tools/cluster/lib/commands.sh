# The subcommands, one function each; `cluster` chooses among them. Sourced, never run.

CONTEXT_FILE=$STATE_DIR/context

command_up() {
  local nodes=2 grace=$DEFAULT_NODE_GRACE_SECONDS context=
  while (($#)); do
    case $1 in
      --nodes) nodes=${2:?--nodes needs a number} && shift 2 ;;
      --node-grace) grace=${2:?--node-grace needs seconds} && shift 2 ;;
      --context) context=${2:?--context needs a name} && shift 2 ;;
      *) die "up: unknown argument '$1'; see cluster up --help" ;;
    esac
  done
  [[ $nodes =~ ^[1-9][0-9]?$ ]] || die "up: --nodes '$nodes' must be a number from 1 to 99"
  [[ $grace =~ ^[1-9][0-9]{0,3}$ ]] || die "up: --node-grace '$grace' must be a number of seconds from 1 to 9999"
  if [[ -n $context ]]; then
    with_cluster_lock use_context "$context"
    return
  fi
  need_root "cluster up"
  [[ ! -e $CONTEXT_FILE ]] || die "cluster $CLUSTER_NAME uses context '$(<"$CONTEXT_FILE")'; run \`cluster down\` first"
  packages_ensure
  with_cluster_lock cluster_up "$nodes" "$grace"
}

# A cluster that the user has already: nothing is started, only the way to it is remembered.
use_context() { # CONTEXT
  [[ ! -e $STATE_DIR/pki ]] || die "cluster $CLUSTER_NAME is up on this machine; run \`cluster down\` first"
  assets_locked assets_clients
  local config
  config=$(PATH=$PATH:$(tools_path) kubectl config view --raw --minify --flatten --context "$1") ||
    die "kubectl knows no context '$1'; see kubectl config get-contexts"
  (umask 077 && write_file "$STATE_DIR/kubeconfig" <<<"$config")
  if ! PATH=$PATH:$(tools_path) kubectl --kubeconfig "$STATE_DIR/kubeconfig" --request-timeout=10s get --raw /readyz \
    >/dev/null; then
    rm -rf "$STATE_DIR"
    die "the cluster of context '$1' does not answer"
  fi
  printf '%s' "$1" | write_file "$CONTEXT_FILE"
  say "cluster $CLUSTER_NAME is the one of context '$1'"
}

command_down() {
  (($# == 0)) || die "down takes no argument"
  if [[ -e $CONTEXT_FILE ]]; then
    rm -rf "$STATE_DIR"
    say "cluster $CLUSTER_NAME: context forgotten, its cluster left as it is"
    return
  fi
  need_root "cluster down"
  [[ ! -e $NAMESPACE_FILE || $(stat -Lc %i /proc/self/ns/net) != $(stat -Lc %i "$NAMESPACE_FILE") ]] ||
    die "this shell is inside the cluster and would end itself; leave it and run \`cluster down\` outside"
  with_cluster_lock cluster_down
}

need_cluster() {
  [[ -s $STATE_DIR/kubeconfig && (-e $CONTEXT_FILE || -e $COMPLETE_MARK) ]] ||
    die "cluster $CLUSTER_NAME is not up; run \`./dev cluster up\`"
}

# Runs a command so that it sees the cluster: in its namespace, with kubectl and helm of the cluster first in PATH.
command_exec() {
  (($# > 0)) || die "exec needs a command; see cluster exec --help"
  need_cluster
  export KUBECONFIG=$STATE_DIR/kubeconfig PATH
  if [[ -e $CONTEXT_FILE ]]; then
    PATH=$PATH:$(tools_path) # the user's own kubectl first: it fits the user's cluster
    exec "$@"
  fi
  PATH=$(tools_path):$PATH
  exec nsenter "--net=$NAMESPACE_FILE" "$@"
}

tools_path() { printf '%s:%s' "$(dirname "$(asset_path kubectl)")" "$(dirname "$(asset_path helm)")"; }

command_kubectl() { command_exec kubectl "$@"; }
command_helm() { command_exec helm "$@"; }

command_shell() {
  say "inside cluster $CLUSTER_NAME: kubectl and helm are ready, \`exit\` leaves"
  EVENKEEL_CLUSTER_SHELL=$CLUSTER_NAME command_exec "${SHELL:-/bin/bash}"
}

command_env() {
  need_cluster
  printf 'export KUBECONFIG=%q\n' "$STATE_DIR/kubeconfig"
  printf 'export EVENKEEL_CLUSTER_STATE_DIR=%q\n' "$STATE_DIR"
  printf 'export PATH=%q:"$PATH"\n' "$(tools_path)"
  [[ -e $CONTEXT_FILE ]] || printf 'export EVENKEEL_CLUSTER_NETNS=%q\n' "$NAMESPACE_FILE"
}

# The images of this tree, built from what it holds now.
images_of_this_tree() {
  (cd "$CLUSTER_DIR/../.." && tools/dev/build evenkeel-operator evenkeel-trainer >/dev/null &&
    tools/image/build "$CACHE_DIR/images/evenkeel") >&2 || die "load: the images of this tree could not be built"
}

command_load() {
  need_cluster
  [[ ! -e $CONTEXT_FILE ]] ||
    die "load: the nodes of context '$(<"$CONTEXT_FILE")' are not ours; push the image to a registry that they pull from"
  need_root "cluster load"
  local image
  if (($# == 0)); then
    images_of_this_tree
    set -- "$CACHE_DIR"/images/evenkeel/{operator,trainer-cpu}.tar
  fi
  for image in "$@"; do with_cluster_lock image_load "$image"; done
}

command_lose() {
  (($# == 1)) || die "lose needs a node; see cluster lose --help"
  need_cluster
  [[ ! -e $CONTEXT_FILE ]] || die "lose: the nodes of context '$(<"$CONTEXT_FILE")' are not ours to end"
  need_root "cluster lose"
  [[ -d $STATE_DIR/nodes/$1 ]] || die "lose: there is no node '$1'; there are: $(node_names | tr '\n' ' ')"
  with_cluster_lock node_stop "$1"
  say "$1 is lost: its kubelet, containerd and containers were ended; \`cluster up\` brings it back"
}

command_assets() {
  [[ $(id -u) != 0 ]] || packages_ensure
  local images=
  if [[ $(id -u) == 0 ]]; then
    { pause_image_ensure && with_image_lock base_image_ensure; } &
    images=$!
  fi
  assets_locked assets_all
  [[ -z $images ]] || wait "$images" || die "the base image could not be made (see above)"
  say "assets are in $CACHE_DIR"
}
